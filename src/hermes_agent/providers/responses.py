"""OpenAI's Responses API: its reasoning is kept between calls, encrypted, and not stored there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from hermes_agent.events import (
    FILTER_REASON,
    LENGTH_REASON,
    REFUSAL_REASON,
    ReasoningDelta,
    Reply,
    TextDelta,
)
from hermes_agent.messages import PartialCall, Usage
from hermes_agent.providers.http_stream import AnswerReader, HttpProvider, encode
from hermes_agent.providers.request_shape import (
    CALL_PLACE,
    TEXT_PLACE,
    parts_in_order,
    sent_arguments,
)
from hermes_agent.providers.rules import RESPONSES
from hermes_core.json_values import number_in, object_in, objects_in, text_in, whole_characters
from hermes_core.known_models import find_known_model
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_core.messages import ToolCallDict

DEFAULT_WINDOW: Final = 128_000  # of an unknown model
ENCRYPTED: Final = "reasoning.encrypted_content"
END_REASONS: Final = {"max_output_tokens": LENGTH_REASON, "content_filter": FILTER_REASON}
TEXT_EVENTS: Final = ("response.output_text.delta", "response.refusal.delta")
REASONING_EVENTS: Final = (
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
)
END_EVENTS: Final = ("response.completed", "response.incomplete", "response.failed")


class Responses(HttpProvider):
    """A model behind `POST /responses`."""

    api_name = "responses"
    api_mode = "codex_responses"  # as in hermes-agent

    def __init__(
        self,
        model: str,
        base_url: str,
        key: str = "",
        *,
        window: int = 0,
        max_output: int = 0,
        effort: str = "",
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        super().__init__(model, base_url, "responses", headers, RESPONSES)
        self.name = self.author.provider or base_url
        self.max_output = max_output
        self._effort = effort
        known = None if window else find_known_model(base_url, model)
        self.window = window or (known.window if known is not None else 0) or DEFAULT_WINDOW

    def reader(self, cancel: Cancel) -> _ItemReader:
        """What reads one answer."""
        return _ItemReader(self, cancel)

    def body(self, request: ModelRequest) -> bytes:
        """The body of a request."""
        messages = self.shaped(request)
        system = [str(each["content"]) for each in messages if each["role"] == "system"]
        body: dict[str, JsonData] = {
            "model": self.model,
            "stream": True,
            "store": False,
            "instructions": "\n\n".join(system),
            "input": [item for message in messages for item in input_items(message)],
        }
        if self.rules.keeps_reasoning_encrypted:
            body["include"] = [ENCRYPTED]
        if request.tools and self.rules.has_tools:
            body["tools"] = [
                {"type": "function", "strict": False, **cast("JsonObject", tool["function"])}
                for tool in request.tools
            ]
            if not request.may_call:
                body["tool_choice"] = "none"
        limit = request.max_tokens or self.max_output
        if limit:
            body["max_output_tokens"] = limit
        reasoning: dict[str, JsonData] = {}
        if self._effort and self.rules.has_effort:
            reasoning["effort"] = self._effort
        if self.rules.has_summaries and self.rules.keeps_reasoning_encrypted:
            reasoning["summary"] = "auto"
        if reasoning:
            body["reasoning"] = reasoning
        return encode(body)


def input_items(message: Message) -> Iterator[dict[str, JsonData]]:
    """A message as items of a request."""
    role, content = message["role"], message.get("content")
    if role == "tool":
        output = _content(content) if isinstance(content, list) else str(content or "")
        call_id = message.get("tool_call_id") or ""
        yield {"type": "function_call_output", "call_id": call_id, "output": output}
    elif role == "user":
        yield {"type": "message", "role": "user", "content": _content(content)}
    elif role == "assistant":
        for kind, part in parts_in_order(message):
            yield _answer_item(kind, part)


def _content(content: object) -> list[dict[str, JsonData]]:
    if not isinstance(content, list):
        return [{"type": "input_text", "text": str(content or "")}]
    return [_content_part(part) for part in content]


def _content_part(part: Any) -> dict[str, JsonData]:
    if part.get("type") == "image_url":
        url = str((part.get("image_url") or {}).get("url") or "")
        return {"type": "input_image", "image_url": url}
    return {"type": "input_text", "text": plain_text(part)}


def _answer_item(kind: str, part: Any) -> dict[str, JsonData]:
    if kind == "text":
        text = {"type": "output_text", "text": part}
        return {"type": "message", "role": "assistant", "content": [text]}
    if kind == "block":
        return cast("dict[str, JsonData]", part)
    call: ToolCallDict = part
    function = call["function"]
    return {
        "type": "function_call",
        "call_id": call["id"],
        "name": function["name"],
        "arguments": sent_arguments(call),
    }


class _ItemReader(AnswerReader["JsonObject"]):
    """Assembles one streamed answer from its events."""

    def __init__(self, provider: Responses, cancel: Cancel) -> None:
        super().__init__(provider, cancel)
        self._items: dict[int, JsonObject] = {}  # reasoning, by its place
        self._lengths: dict[int, int] = {}  # of texts, by their place
        self._places: dict[str, int] = {}  # of items without a place, by their ID
        self._is_refused = False

    def other_format(self, event: JsonObject) -> str:
        """The API that an event belongs to, if it is another one."""
        if "choices" in event:
            return "OpenAI (chat completions)"
        return "Anthropic" if event.get("type") == "message_start" else ""

    def events_in(self, answer: JsonObject) -> list[JsonObject]:
        """The events of a stream that would make up this answer."""
        return [{"type": f"response.{text_in(answer, 'status', 'completed')}", "response": answer}]

    def handle(self, event: JsonObject) -> Iterator[ProviderEvent]:
        """Take in an event of the stream; what there is to show."""
        kind, place = text_in(event, "type"), self._place(event)
        if kind in TEXT_EVENTS:
            self._is_refused |= kind == TEXT_EVENTS[1]
            yield from self._add_text(place, text_in(event, "delta"))
        elif kind in REASONING_EVENTS:
            yield from self._add_reasoning(text_in(event, "delta"))
        elif kind == "response.output_item.added":
            self._add_call(place, object_in(event, "item"))
        elif kind == "response.function_call_arguments.delta" and place in self._calls:
            self._calls[place].arguments += text_in(event, "delta")
        elif kind == "response.function_call_arguments.done" and place in self._calls:
            self._calls[place].arguments = text_in(event, "arguments")
        elif kind == "response.output_item.done":
            yield from self._finish_item(place, object_in(event, "item"))
        elif kind in END_EVENTS:
            yield from self._end(object_in(event, "response"))

    def _place(self, event: JsonObject) -> int:
        """The place of an event's item; some servers send only the ID of the item."""
        place = event.get("output_index")
        if isinstance(place, int):
            return place
        item_id = text_in(event, "item_id") or text_in(object_in(event, "item"), "id")
        return self._places.setdefault(item_id, len(self._places))

    def _add_text(self, place: int, text: str) -> Iterator[ProviderEvent]:
        text = self._characters.add(text)
        if text:
            self._text.append(text)
            self._lengths[place] = self._lengths.get(place, 0) + len(text)
            yield TextDelta(text)

    def _add_reasoning(self, text: str) -> Iterator[ProviderEvent]:
        if text:
            self._reasoning.append(text)
            yield ReasoningDelta(text)

    def _add_call(self, place: int, item: JsonObject) -> None:
        if item.get("type") == "function_call":
            call_id = text_in(item, "call_id") or text_in(item, "id")
            arguments = self._calls[place].arguments if place in self._calls else ""
            arguments = text_in(item, "arguments") or arguments
            self._calls[place] = PartialCall(call_id, text_in(item, "name"), arguments)

    def _finish_item(self, place: int, item: JsonObject) -> Iterator[ProviderEvent]:
        """Take in a whole item; what of it was not sent in parts."""
        self._add_call(place, item)
        if item.get("type") == "reasoning":
            if item.get("encrypted_content"):  # without it the server cannot find the item again
                self._items[place] = {n: each for n, each in item.items() if n != "status"}
            if not self._reasoning:
                for part in objects_in(item, "summary"):
                    yield from self._add_reasoning(text_in(part, "text"))
        elif item.get("type") == "message" and place not in self._lengths:
            for part in objects_in(item, "content"):
                self._is_refused |= "refusal" in part
                yield from self._add_text(place, text_in(part, "text") or text_in(part, "refusal"))

    def _end(self, response: JsonObject) -> Iterator[ProviderEvent]:
        counts = object_in(response, "usage")
        cached = number_in(object_in(counts, "input_tokens_details"), "cached_tokens")
        self._usage = Usage(
            input=max(0, number_in(counts, "input_tokens") - cached),
            output=number_in(counts, "output_tokens"),
            cache_read=cached,
            reasoning=number_in(object_in(counts, "output_tokens_details"), "reasoning_tokens"),
        )
        error = response.get("error")
        if error:
            yield self.stream_error(error)
            return
        if not (self._text or self._calls):  # only the whole answer was sent
            for place, item in enumerate(objects_in(response, "output")):
                yield from self._finish_item(place, item)
        reason = text_in(object_in(response, "incomplete_details"), "reason")
        self._finish = END_REASONS.get(reason, reason) or "stop"
        self._is_complete = True

    def reply(self) -> Reply:
        """The answer, from all events."""
        finish = self._finish or "stop"
        if finish == "stop":
            finish = REFUSAL_REASON if self._is_refused else "tool_calls" if self._calls else finish
        return Reply(
            "".join(self._text) + self._characters.end(),
            whole_characters("".join(self._reasoning)),
            self.tool_calls(finish),
            finish,
            self._usage,
            reasoning_details=tuple(self._items_in_order()),
            author=self._provider.author,
        )

    def _items_in_order(self) -> list[object]:
        """The items to send back; each stands before what it led to, or is not sent."""
        last = max([*self._lengths, *self._calls], default=-1)
        items = {at: item for at, item in self._items.items() if at < last}
        if not items:
            return []
        found: dict[int, object] = {
            **items,
            **{at: {"type": TEXT_PLACE, "characters": size} for at, size in self._lengths.items()},
            **{at: {"type": CALL_PLACE} for at in self._calls},
        }
        return [found[place] for place in sorted(found)]
