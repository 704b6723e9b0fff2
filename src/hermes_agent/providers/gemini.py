"""Google's own API for Gemini: contents of parts, which carry signatures of their thoughts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.events import FILTER_REASON, LENGTH_REASON, ReasoningDelta, Reply, TextDelta
from hermes_agent.messages import PartialCall, Usage
from hermes_agent.providers.http_stream import AnswerReader, HttpProvider, encode
from hermes_agent.providers.openai_compatible import UNSIGNED
from hermes_agent.providers.request_shape import parts_in_order
from hermes_agent.providers.rules import GEMINI, for_model
from hermes_core.json_values import (
    number_in,
    object_in,
    objects_in,
    parse_object,
    text_in,
    whole_characters,
)
from hermes_core.known_models import find_known_model
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_core.messages import ToolCallDict

    Part = dict[str, JsonData]

DEFAULT_WINDOW: Final = 1_000_000  # of an unknown model
SIGNATURE: Final = "thoughtSignature"
BUDGETS: Final = {"none": 0, "low": 2_048, "medium": 8_192, "high": 24_576}
LEVELS: Final = {"none": "low", "low": "low", "medium": "medium", "high": "high"}
END_REASONS: Final = {
    "STOP": "stop",
    "MAX_TOKENS": LENGTH_REASON,
    "SAFETY": FILTER_REASON,
    "RECITATION": FILTER_REASON,
    "BLOCKLIST": FILTER_REASON,
    "PROHIBITED_CONTENT": FILTER_REASON,
    "SPII": FILTER_REASON,
    "MALFORMED_FUNCTION_CALL": "stop",  # without a part: it is asked again
}


class GoogleGemini(HttpProvider):
    """A model behind `POST /models/MODEL:streamGenerateContent`."""

    api_name = "gemini"
    api_mode = "gemini_generate_content"
    name = "gemini"

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
        path = f"models/{model.removeprefix('models/')}:streamGenerateContent?alt=sse"
        rules = for_model(GEMINI, model)
        super().__init__(model, base_url, path, {"x-goog-api-key": key}, rules)
        self.max_output = max_output
        self._effort = effort
        known = None if window else find_known_model(base_url, model)
        self.window = window or (known.window if known is not None else 0) or DEFAULT_WINDOW

    def reader(self, cancel: Cancel) -> _PartReader:
        """What reads one answer."""
        return _PartReader(self, cancel)

    def body(self, request: ModelRequest) -> bytes:
        """The body of a request."""
        messages = self.shaped(request)
        body: dict[str, JsonData] = {"contents": contents(messages, signs=self.rules.signs_calls)}
        system = [str(each["content"]) for each in messages if each["role"] == "system"]
        if system:
            body["systemInstruction"] = {"parts": [{"text": "\n\n".join(system)}]}
        if request.tools and self.rules.has_tools:
            declared: list[JsonData] = [
                {
                    "name": tool["function"]["name"],
                    "description": tool["function"]["description"],
                    "parametersJsonSchema": tool["function"]["parameters"] or {"type": "object"},
                }
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
            if not request.may_call:
                body["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
        options: dict[str, JsonData] = {}
        limit = request.max_tokens or self.max_output
        if limit:
            options["maxOutputTokens"] = limit
        if self._effort and self.rules.has_effort:
            options["thinkingConfig"] = self._thinking()
        if options:
            body["generationConfig"] = options
        return encode(body)

    def _thinking(self) -> Part:
        if self.rules.signs_calls:  # from Gemini 3 on
            return {"includeThoughts": True, "thinkingLevel": LEVELS[self._effort]}
        return {"includeThoughts": True, "thinkingBudget": BUDGETS[self._effort]}


def contents(messages: list[Message], *, signs: bool) -> list[dict[str, JsonData]]:
    """The messages as alternating contents of the user and the model."""
    turns: list[tuple[str, list[Part]]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        role = "model" if message["role"] == "assistant" else "user"
        if role == "model":
            parts = _answer_parts(message, signs=signs)
        elif message["role"] == "tool":
            parts = [_result_part(message)]
        else:
            parts = _prompt_parts(message.get("content"))
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        else:
            turns.append((role, parts))
    return [{"role": role, "parts": parts or [{"text": " "}]} for role, parts in turns]


def _answer_parts(message: Message, *, signs: bool) -> list[Part]:
    parts: list[Part] = []
    is_first_call = True
    for kind, part in parts_in_order(message):
        if kind == "text":
            parts.append({"text": part})
        elif kind == "call":
            called = _call_part(part, UNSIGNED if signs and is_first_call else {})
            parts.append(called)
            is_first_call = False
    for kind, part in parts_in_order(message):
        if kind == "block" and part.get(SIGNATURE):  # of the text
            parts.append({"text": "", SIGNATURE: part[SIGNATURE]})
    return parts


def _call_part(part: Any, unsigned: Any) -> Part:
    call: ToolCallDict = part
    function = call["function"]
    arguments = parse_object(function.get("arguments") or "{}") or {}
    sent: Part = {"functionCall": {"name": function["name"], "args": arguments}}
    signature = (part.get("extra_content") or unsigned).get("google", {}).get("thought_signature")
    return {**sent, SIGNATURE: signature} if signature else sent


def _result_part(message: Message) -> Part:
    result = {"result": plain_text(message.get("content"))}
    return {"functionResponse": {"name": message.get("tool_name") or "tool", "response": result}}


def _prompt_parts(content: object) -> list[Part]:
    if not isinstance(content, list):
        return [{"text": str(content or " ")}]
    return [_prompt_part(part) for part in content]


def _prompt_part(part: Any) -> Part:
    if part.get("type") != "image_url":
        return {"text": plain_text(part)}
    url = str((part.get("image_url") or {}).get("url") or "")
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return {"inlineData": {"mimeType": head.removeprefix("data:"), "data": data}}
    return {"fileData": {"fileUri": url}}


class _PartReader(AnswerReader["JsonObject"]):
    """Assembles one streamed answer from its parts."""

    def __init__(self, provider: GoogleGemini, cancel: Cancel) -> None:
        super().__init__(provider, cancel)
        self._signature = ""  # of the text

    def other_format(self, event: JsonObject) -> str:
        """The API that an event belongs to, if it is another one."""
        return "OpenAI" if "choices" in event else ""

    def events_in(self, answer: JsonObject) -> list[JsonObject]:
        """The events of a stream that would make up this answer."""
        return [answer]

    def handle(self, event: JsonObject) -> Iterator[ProviderEvent]:
        """Take in an event of the stream; what there is to show."""
        counts = object_in(event, "usageMetadata")
        if counts:
            self._usage = read_usage(counts)
        if text_in(object_in(event, "promptFeedback"), "blockReason"):
            self._finish = FILTER_REASON
        for candidate in objects_in(event, "candidates")[:1]:
            for part in objects_in(object_in(candidate, "content"), "parts"):
                yield from self._handle_part(part)
            reason = text_in(candidate, "finishReason")
            if reason:
                self._finish = END_REASONS.get(reason, reason.lower())

    def _handle_part(self, part: JsonObject) -> Iterator[ProviderEvent]:
        call, signature = object_in(part, "functionCall"), text_in(part, SIGNATURE)
        if call:
            extra: JsonObject = {}
            if signature:
                extra = {"extra_content": {"google": {"thought_signature": signature}}}
            number = len(self._calls)
            arguments = json.dumps(object_in(call, "args"), ensure_ascii=False)
            call_id = text_in(call, "id")
            self._calls[number] = PartialCall(call_id, text_in(call, "name"), arguments, extra)
            return
        self._signature = signature or self._signature
        text = self._characters.add(text_in(part, "text"))
        if not text:
            return
        if part.get("thought"):
            self._reasoning.append(text)
            yield ReasoningDelta(text)
        else:
            self._text.append(text)
            yield TextDelta(text)

    def reply(self) -> Reply:
        """The answer, from all parts."""
        calls = self.tool_calls(self._finish)
        finish = "tool_calls" if calls and self._finish == "stop" else self._finish or "stop"
        blocks = [{"type": "text_signature", SIGNATURE: self._signature}] if self._signature else []
        return Reply(
            "".join(self._text) + self._characters.end(),
            whole_characters("".join(self._reasoning)),
            calls,
            finish,
            self._usage,
            reasoning_details=tuple(blocks),
            author=self._provider.author,
        )


def read_usage(counts: JsonObject) -> Usage:
    """The tokens of a request."""
    cached, thoughts = (
        number_in(counts, "cachedContentTokenCount"),
        number_in(counts, "thoughtsTokenCount"),
    )
    return Usage(
        input=max(0, number_in(counts, "promptTokenCount") - cached),
        output=number_in(counts, "candidatesTokenCount") + thoughts,
        cache_read=cached,
        reasoning=thoughts,
    )
