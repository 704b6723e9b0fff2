"""Messages, tool calls and usage: plain data in the format of the store."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, cast

from hermes_core.media_store import REFERENCE_SCHEME
from hermes_core.messages import FunctionCall, Message, ToolCallDict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_core.json_values import JsonObject

__all__ = ["Message"]

UNFINISHED: Final = frozenset({"interrupted", "error", "crashed"})  # reasons of partial answers
IMAGE_REFERENCE_START: Final = f'"image": "{REFERENCE_SCHEME}'


class ToolCall(NamedTuple):
    """A tool call of the model; `arguments` is the JSON text as written."""

    id: str
    name: str
    arguments: str
    extra: JsonObject | None = None  # what the provider has sent with it, such as a signature

    def stored(self) -> ToolCallDict:
        """The call in the message format."""
        function: FunctionCall = {"name": self.name, "arguments": self.arguments}
        call: ToolCallDict = {"id": self.id, "type": "function", "function": function}
        return cast("ToolCallDict", {**self.extra, **call}) if self.extra else call


@dataclass(slots=True)
class PartialCall:
    """A tool call that is being streamed."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: JsonObject = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)  # of the arguments, until they are complete


class Author(NamedTuple):
    """The model that wrote an answer, and its provider."""

    provider: str
    model: str


AUTHOR_TYPE: Final = "author"  # of the first of the blocks that are kept of an answer


def author_block(author: Author) -> JsonObject:
    """The block that names the author of the others."""
    return {"type": AUTHOR_TYPE, **author._asdict()}


def author_of(message: Message) -> Author | None:
    """The model that wrote the reasoning of an answer; None if that is not known."""
    details = message.get("reasoning_details")
    first = details[0] if isinstance(details, list) and details else None
    if not isinstance(first, dict) or first.get("type") != AUTHOR_TYPE:
        return None
    return Author(str(first.get("provider")), str(first.get("model")))


def kept_blocks(message: Message) -> list[JsonObject]:
    """The blocks of an answer that its provider gets back, as it has sent them."""
    details = message.get("reasoning_details")
    if not isinstance(details, list):
        return []
    return [each for each in details if isinstance(each, dict) and each.get("type") != AUTHOR_TYPE]


class PromptIdentity(NamedTuple):
    """What identifies a user message: for the store, on its platform, and its sender."""

    uid: str | None = None
    aliases: tuple[str, ...] = ()  # identities of messages that were merged into it
    platform_message_id: str | None = None
    sender_id: str = ""  # the user ID of the person in a chat, for plugins


ANONYMOUS: Final = PromptIdentity()


class Usage(NamedTuple):
    """Tokens of one request; cached ones are not part of `input`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __add__(self, other: object) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def context(self) -> int:
        """The number of tokens in the context."""
        return self.input + self.cache_read + self.cache_write


class ToolFunction(TypedDict):
    """The name, purpose and parameters (a JSON schema) of a tool."""

    name: str
    description: str
    parameters: JsonObject


class ToolSchema(TypedDict):
    """A tool as a model sees it."""

    type: str
    function: ToolFunction


class ModelRequest(NamedTuple):
    """One request to a model."""

    messages: list[Message]
    tools: list[ToolSchema]
    max_tokens: int | None = None
    may_have_images: bool = True
    may_call: bool = True  # otherwise the tools are declared, but must not be called
    input_tokens: int = 0  # an estimate of the request; 0 if there is none


def calls_in(message: Message) -> Iterator[tuple[str, str]]:
    """The names and the arguments (JSON text) of the tool calls of a message."""
    for call in message.get("tool_calls") or []:
        function = call.get("function")
        if function:
            yield str(function.get("name") or ""), str(function.get("arguments") or "")


def result_message(call: ToolCall, result: str) -> Message:
    """A tool result as a message."""
    return {
        "role": "tool",
        "content": result,
        "tool_call_id": call.id,
        "tool_name": call.name,
    }


def image_in(message: Message) -> str:
    """The reference to the image of a tool result; empty if there is none."""
    content = message.get("content")
    if (
        message.get("role") != "tool"
        or not isinstance(content, str)
        or IMAGE_REFERENCE_START not in content
    ):
        return ""
    try:
        document = json.loads(content)
    except ValueError:  # a shortened result
        return ""
    reference = document.get("image") if isinstance(document, dict) else None
    return reference if isinstance(reference, str) else ""


def note_data(message: Message) -> JsonObject:
    """The note to the model that is stored beside a prompt, with its facts; empty without one."""
    data = message.get("display_metadata")
    return data if message.get("role") == "user" and isinstance(data, dict) else {}


def with_note(message: Message) -> Message:
    """A message as it is sent: with its note before its text."""
    note = note_data(message).get("note")
    if not isinstance(note, str):
        return message
    sent, content = cast("Message", {**message}), message.get("content")
    del sent["display_metadata"]
    if isinstance(content, list):
        sent["content"] = [{"type": "text", "text": note}, *content]
    else:
        sent["content"] = f"{note}\n\n{content or ''}"
    return sent
