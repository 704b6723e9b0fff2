"""A conversation as a provider accepts it: the one place where its rules are applied.

What is stored is what the provider of that time has sent. Here call IDs are mapped, neighbours
of one role are merged, images stand where they may, and reasoning goes back only to the model
that wrote it. The result depends on nothing but the messages before it, so that the beginning
of the next request is the same, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import orjson

from hermes_agent.messages import Message, author_of, calls_in, kept_blocks
from hermes_agent.providers.rules import TOOL_NAME
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from hermes_agent.messages import Author
    from hermes_agent.providers.rules import Rules
    from hermes_core.messages import ToolCallDict

CAPTION: Final = "[The images of the results above]"
BLANK: Final = "(no text)"  # in place of a prompt without any
NO_IMAGE: Final = "[an image, which this model cannot see]"
# What stands where a provider requires an answer or a prompt.
FILLER_ANSWER: Final[Message] = {"role": "assistant", "content": "Noted."}
FILLER_PROMPT: Final[Message] = {
    "role": "user",
    "content": "(The conversation begins with an answer.)",
}
REASONING_FIELDS: Final = ("reasoning", "reasoning_content", "reasoning_details")
CALL_FIELDS: Final = frozenset({"id", "type", "function"})
NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")


class _Derived(NamedTuple):
    """A message that was made of others; these are kept, so that their identity stays theirs."""

    sources: tuple[Message, ...]
    message: Message


class Shaper:
    """Shapes the messages of one conversation after another, each for the same model."""

    def __init__(self, author: Author) -> None:
        self._author = author
        self._made: dict[Hashable, _Derived] = {}  # of the last request
        self._rules: Rules | None = None

    def shape(self, messages: Iterable[Message], rules: Rules, *, has_tools: bool) -> list[Message]:
        """The messages as the provider accepts them; unchanged ones are the same objects."""
        before = self._made if rules == self._rules else {}
        shape = _Shape(self._author, rules, before)
        for message in messages if has_tools else map(without_calls, messages):
            shape.add(message)
        self._made, self._rules = shape.made, rules
        return shape.finish()


class _Shape:
    """One request that is being shaped."""

    def __init__(self, author: Author, rules: Rules, before: dict[Hashable, _Derived]) -> None:
        self.made: dict[Hashable, _Derived] = {}
        self._author = author
        self._rules = rules
        self._before = before
        self._out: list[Message] = []
        self._used_ids: set[str] = set()
        # The IDs and names under which calls without a result are sent, by their own ID.
        self._sent: dict[str, list[tuple[str, str]]] = {}
        self._pictures: list[Message] = []  # results whose images come after them

    def add(self, message: Message) -> None:
        role = message["role"]
        if role == "tool":
            self._add_result(message)
            return
        self._add_pictures()
        if role == "assistant":
            self._add_answer(message)
        elif role == "user":
            self._add_prompt(self._seen(message))
        elif self._rules.has_system_role:
            self._out.append(message)
        else:
            self._add_prompt(self._make("prompt", (message,), lambda: _as_prompt(message)))

    def finish(self) -> list[Message]:
        self._add_pictures()
        return self._out

    def _make(
        self, key: Hashable, sources: tuple[Message, ...], make: Callable[[], Message]
    ) -> Message:
        """A changed message, the same object as in the last request if nothing has changed."""
        key = (*map(id, sources), key)
        known = self._before.get(key)
        made = known if known is not None else _Derived(sources, make())
        self.made[key] = made
        return made.message

    def _add_prompt(self, message: Message) -> None:
        if not plain_text(message.get("content")).strip():
            message = self._make("blank", (message,), lambda: {**message, "content": BLANK})
        last = self._out[-1] if self._out else None
        if last is not None and last["role"] == "user":
            self._out[-1] = self._make("joined", (last, message), lambda: _joined(last, message))
            return
        if last is not None and last["role"] == "tool" and self._rules.answer_before_prompt:
            self._out.append(FILLER_ANSWER)
        self._out.append(message)

    def _add_answer(self, message: Message) -> None:
        if not message.get("tool_calls") and not plain_text(message.get("content")).strip():
            return  # no provider accepts an empty answer
        if self._rules.prompt_first and all(each["role"] == "system" for each in self._out):
            self._out.append(FILLER_PROMPT)
        is_own = author_of(message) == self._author
        is_changed = not is_own and any(message.get(name) for name in REASONING_FIELDS)
        calls = message.get("tool_calls") or []
        ids = tuple([self._new_id(call) for call in calls])
        if ids != tuple(call.get("id") for call in calls):
            is_changed = True
        elif not is_own:
            is_changed |= any(call.keys() - CALL_FIELDS for call in calls)
        is_changed |= any(sent_name(name) != name for name, _ in calls_in(message))
        if is_changed:
            message = self._make(
                (ids, is_own), (message,), lambda: _answer(message, ids, is_own=is_own)
            )
        last = self._out[-1] if self._out else None
        if last is not None and last["role"] == "assistant" and not last.get("tool_calls"):
            self._out[-1] = self._make("joined", (last, message), lambda: _joined(last, message))
        else:
            self._out.append(message)

    def _new_id(self, call: ToolCallDict) -> str:
        """The ID under which a call is sent: its own if the provider accepts it."""
        call_id = str(call.get("id") or "")
        rules, new, number = self._rules, call_id, 0
        while new in self._used_ids or not rules.call_ids.fullmatch(new):
            digest = hashlib.sha256(f"{call_id} {number}".encode()).hexdigest()
            new, number = rules.id_prefix + digest[: rules.id_characters], number + 1
        self._used_ids.add(new)
        name = sent_name(call["function"]["name"])
        self._sent.setdefault(call_id, []).append((new, name))
        return new

    def _add_result(self, message: Message) -> None:
        message = self._seen(message)
        call_id = str(message.get("tool_call_id") or "")
        name = message.get("tool_name") or ""
        waiting = self._sent.get(call_id)
        sent = waiting.pop(0) if waiting else (call_id, name)
        keeps = self._rules.images_in_results
        parts = isinstance(message.get("content"), list)
        if sent != (call_id, name) or (parts and not keeps):
            if _images(message) and not keeps:
                self._pictures.append(message)
            message = self._make(
                (sent, keeps), (message,), lambda: _result(message, *sent, keeps_images=keeps)
            )
        self._out.append(message)

    def _add_pictures(self) -> None:
        """The images of the results before, as a prompt."""
        if self._pictures:
            sources = tuple(self._pictures)
            self._pictures = []
            self._add_prompt(self._make("pictures", sources, lambda: _pictures(sources)))

    def _seen(self, message: Message) -> Message:
        """A message without the images that the model cannot see."""
        if self._rules.sees_images or not _images(message):
            return message
        return self._make("unseen", (message,), lambda: _unseen(message))


def _parts(message: Message) -> list[Any]:
    content = message.get("content")
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _images(message: Message) -> list[Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [each for each in content if isinstance(each, dict) and each.get("type") == "image_url"]


def _joined(first: Message, second: Message) -> Message:
    """Two messages of one role as one."""
    one, other = first.get("content"), second.get("content")
    joined = cast("Message", {**first, **second})
    if isinstance(one, str) and isinstance(other, str):
        joined["content"] = "\n\n".join(filter(None, (one, other)))
    else:
        joined["content"] = [*_parts(first), *_parts(second)]
    return joined


def _answer(message: Message, ids: tuple[str, ...], *, is_own: bool) -> Message:
    """An answer whose calls have other IDs, without what another model has to get back."""
    answer = cast("Message", dict(message))
    if not is_own:
        for name in REASONING_FIELDS:
            answer.pop(name, None)  # type: ignore[misc]
    calls = message.get("tool_calls") or []
    if calls:
        answer["tool_calls"] = [
            _call(call, new, is_own=is_own) for call, new in zip(calls, ids, strict=True)
        ]
    return answer


def _call(call: ToolCallDict, new: str, *, is_own: bool) -> ToolCallDict:
    kept = {name: each for name, each in call.items() if is_own or name in CALL_FIELDS}
    function = {**call["function"], "name": sent_name(call["function"]["name"])}
    return cast("ToolCallDict", {**kept, "id": new, "function": function})


def sent_name(name: str) -> str:
    """The name of a tool as providers accept it; models also call tools that do not exist."""
    if TOOL_NAME.fullmatch(name):
        return name
    name = NOT_IN_NAMES.sub("_", name)
    return (name if name[:1].isalpha() or name.startswith("_") else f"_{name}")[:64]


def sent_arguments(call: ToolCallDict) -> str:
    """The arguments of a call as servers can read them; others than objects are dropped."""
    arguments = call["function"].get("arguments") or "{}"
    try:
        return arguments if isinstance(orjson.loads(arguments), dict) else "{}"
    except (orjson.JSONDecodeError, TypeError):
        return "{}"


def _result(message: Message, call_id: str, name: str, *, keeps_images: bool) -> Message:
    content = message.get("content")
    if isinstance(content, list) and not keeps_images:
        texts = [each for each in content if each not in _images(message)]
        content = plain_text(texts)
    return {**message, "tool_call_id": call_id, "tool_name": name, "content": content}


def _as_prompt(message: Message) -> Message:
    return {"role": "user", "content": message["content"]}


def _pictures(results: tuple[Message, ...]) -> Message:
    images = [image for result in results for image in _images(result)]
    return {"role": "user", "content": [{"type": "text", "text": CAPTION}, *images]}


def _unseen(message: Message) -> Message:
    images = _images(message)
    parts = [
        {"type": "text", "text": NO_IMAGE} if each in images else each for each in _parts(message)
    ]
    return {**message, "content": parts}


def without_calls(message: Message) -> Message:
    """A message for a request without tools: calls and results become text."""
    if message["role"] == "tool":
        text = plain_text(message.get("content"))
        return {"role": "user", "content": f"[result of {message.get('tool_name')}]\n{text}"}
    if not message.get("tool_calls"):
        return message
    calls = [f"[called {name} with {arguments}]" for name, arguments in calls_in(message)]
    text = plain_text(message.get("content"))
    return {"role": "assistant", "content": "\n".join(filter(None, (text, *calls)))}


# Blocks that stand for the text and the calls of an answer, where these do not come last.
TEXT_PLACE: Final = "text_place"
CALL_PLACE: Final = "call_place"
PLACES: Final = (TEXT_PLACE, CALL_PLACE)


def parts_in_order(message: Message) -> list[tuple[str, Any]]:
    """The text, the calls and the blocks of an answer, in the order of its provider."""
    text = plain_text(message.get("content"))
    calls = list(message.get("tool_calls") or [])
    blocks = kept_blocks(message)
    lengths = [int(str(each["characters"])) for each in blocks if each.get("type") == TEXT_PLACE]
    places = sum(each.get("type") == CALL_PLACE for each in blocks)
    if sum(lengths) != len(text) or places != len(calls):  # a plugin has changed the answer
        blocks = [block for block in blocks if block.get("type") not in PLACES]
    ordered: list[tuple[str, Any]] = []
    for block in blocks:
        if block.get("type") == TEXT_PLACE:
            size = lengths.pop(0)
            ordered.append(("text", text[:size]))
            text = text[size:]
        elif block.get("type") == CALL_PLACE:
            ordered.append(("call", calls.pop(0)))
        else:
            ordered.append(("block", block))
    if text:
        ordered.append(("text", text))
    return [*ordered, *(("call", call) for call in calls)]
