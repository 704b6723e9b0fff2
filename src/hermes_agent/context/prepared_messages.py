"""What requests need of the messages of a conversation, computed once for each message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hermes_agent.context.window import message_tokens, shorten
from hermes_agent.messages import image_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.messages import Message

CAPTION: Final = "[The images of the results above]"


def with_result_images(messages: Iterable[Message]) -> list[Message]:
    """The messages, with the images of results after each run of them."""
    shown: list[Message] = []
    pending: list[str] = []
    for message in messages:
        if pending and message.get("role") != "tool":
            shown.append(_image_message(pending))
            pending = []
        shown.append(message)
        reference = image_in(message)
        if reference:
            pending.append(reference)
    return [*shown, _image_message(pending)] if pending else shown


def _image_message(references: list[str]) -> Message:
    images = [{"type": "image_url", "image_url": {"url": url}} for url in references]
    return {"role": "user", "content": [{"type": "text", "text": CAPTION}, *images]}


LOST_RESULT_TEXT = "This call was interrupted; it is unknown whether it took effect."


def lost_result(call_id: str, name: str) -> Message:
    """The result of a call with an unknown outcome."""
    content = json.dumps({"output": "", "exit_code": None, "error": LOST_RESULT_TEXT})
    return {"role": "tool", "content": content, "tool_call_id": call_id, "tool_name": name}


def missing_results(messages: list[Message]) -> list[Message]:
    """Results to append for unanswered calls of the last message."""
    answered = {
        message.get("tool_call_id") for message in messages if message.get("role") == "tool"
    }
    last = next((message for message in reversed(messages) if message.get("role") != "tool"), None)
    if last is None or last.get("role") != "assistant":
        return []
    return [
        lost_result(call_id, name) for call_id, name in calls_of(last) if call_id not in answered
    ]


def calls_of(message: Message) -> list[tuple[str, str]]:
    """IDs and names of the calls of a message."""
    calls = message.get("tool_calls") or []
    pairs: list[tuple[str, str]] = []
    for call in calls:
        function = call.get("function")
        name = function.get("name") if function else ""
        pairs.append((str(call.get("id") or ""), str(name or "")))
    return pairs


def repaired(messages: list[Message]) -> list[Message]:
    """The conversation without what a provider would reject.

    Results without a call and empty answers are dropped; calls without a result get one.
    """
    result: list[Message] = []
    open_calls: dict[str, str] = {}
    for message in messages:
        role = message.get("role")
        if role == "tool":
            call_id = str(message.get("tool_call_id") or "")
            if call_id in open_calls:
                del open_calls[call_id]
                result.append(message)
            continue
        result += [lost_result(call_id, name) for call_id, name in open_calls.items()]
        open_calls = {}
        if role == "assistant":
            open_calls = dict(calls_of(message))
            if not open_calls and not message.get("content"):
                continue
        result.append(message)
    return result + [lost_result(call_id, name) for call_id, name in open_calls.items()]


class PreparedMessages:
    """The messages of a conversation as they are sent, and their estimated size.

    A conversation only grows, except when it is compacted or edited: then all are prepared again.
    """

    def __init__(self) -> None:
        self._characters = 0  # maximum of a tool result
        self._last: Message | None = None
        self.messages: list[Message] = []  # with long results shortened
        self.tokens = 0
        self.may_have_images = False

    def update(self, messages: list[Message], characters: int) -> None:
        """Prepare the messages that were added since the last call."""
        count = len(self.messages)
        is_continued = (
            characters == self._characters
            and len(messages) >= count
            and (count == 0 or messages[count - 1] is self._last)
        )
        if not is_continued:
            self._characters, self.messages, self.tokens, count = characters, [], 0, 0
            self.may_have_images = False
        added = [shorten(message, characters) for message in messages[count:]]
        self.messages += added
        self.tokens += sum(map(message_tokens, added))
        self.may_have_images |= any(map(_may_have_image, added))
        self._last = messages[-1] if messages else None


def _may_have_image(message: Message) -> bool:
    return not isinstance(message.get("content"), str) or bool(image_in(message))
