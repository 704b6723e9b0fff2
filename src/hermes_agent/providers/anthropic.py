"""Anthropic's messages API: maps messages to content blocks and its events to ours."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, cast

from hermes_agent.events import ReasoningDelta, Reply, TextDelta
from hermes_agent.messages import PartialCall, Usage
from hermes_agent.providers.apis import ANTHROPIC, ANTHROPIC_VERSION
from hermes_agent.providers.http_stream import AnswerReader, HttpProvider, encode, within_window
from hermes_agent.providers.request_shape import CALL_PLACE, TEXT_PLACE, parts_in_order
from hermes_agent.providers.rules import ANTHROPIC as ANTHROPIC_RULES
from hermes_core.json_values import objects_in, parse_object, whole_characters
from hermes_core.known_models import find_known_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import Message, ModelRequest, ToolFunction
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonObject
    from hermes_core.messages import ToolCallDict


VERSION_PATTERN: Final = re.compile(r"claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
# Output limits in tokens of the models from a version on, the newest first.
OUTPUT_LIMITS: Final = (
    ((4, 6), 128_000),
    ((3, 7), 64_000),
    ((3, 5), 8_192),
    ((0, 0), 4_096),
)
EARLY_OPUS_LIMIT: Final = 32_000  # Opus 4 and 4.1
UNKNOWN_LIMIT: Final = 32_000  # of a model with another name; the server corrects it
ADAPTIVE_VERSION: Final = (4, 6)  # from here on a model chooses its thinking budget itself
THINKS_BY_DEFAULT: Final = (5, 0)
ALWAYS_THINKING: Final = frozenset({"opus", "fable"})  # families, from version 5 on
BUDGETS: Final = {"low": 4_096, "medium": 10_240, "high": 24_576}
MIN_BUDGET_TOKENS: Final = 1_024


class ThinkingOption(TypedDict, total=False):
    """The field `thinking` of a request."""

    type: str
    budget_tokens: int


class OutputConfig(TypedDict):
    """The field `output_config` of a request."""

    effort: str


class ThinkingFields(TypedDict, total=False):
    """The fields of a request that set the effort."""

    thinking: ThinkingOption
    output_config: OutputConfig


class ClaudeVersion(NamedTuple):
    """The family and version of a model."""

    family: str
    number: tuple[int, int]


def parse_version(model: str) -> ClaudeVersion | None:
    """The version in the name of a model; None for other names."""
    match = VERSION_PATTERN.search(model)
    if match is None:
        return None
    family = match[1] or next((name for name in ("opus", "sonnet", "haiku") if name in model), "")
    return ClaudeVersion(family, (int(match[2]), int(match[3] or 0)))


def output_limit(model: str) -> int:
    """The longest answer of a model in tokens."""
    version = parse_version(model)
    if version is None:
        return UNKNOWN_LIMIT
    if version.family == "opus" and (4, 0) <= version.number < (4, 2):
        return EARLY_OPUS_LIMIT
    return next(limit for number, limit in OUTPUT_LIMITS if version.number >= number)


def thinking_fields(model: str, effort: str, max_tokens: int) -> ThinkingFields:
    """The fields for an effort: none, low, medium or high; empty for the model's default."""
    if not effort:
        return {}
    version = parse_version(model)
    if version is not None and version.number >= ADAPTIVE_VERSION:
        return _adaptive_fields(version, effort)
    budget = min(BUDGETS.get(effort, 0), max_tokens - MIN_BUDGET_TOKENS)
    if budget < MIN_BUDGET_TOKENS:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _adaptive_fields(version: ClaudeVersion, effort: str) -> ThinkingFields:
    if effort != "none":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    if version.number < THINKS_BY_DEFAULT:
        return {}
    if version.family in ALWAYS_THINKING:
        return {"output_config": {"effort": "low"}}
    return {"thinking": {"type": "disabled"}}


DEFAULT_WINDOW: Final = 200_000  # of an unknown model
CACHE_CONTROL: Final = {"type": "ephemeral"}
CACHED_MESSAGES: Final = 3
FINISH_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
# Blocks that must be sent back unchanged while the calls of an answer are carried out.
THINKING_TYPES: Final = ("thinking", "redacted_thinking")


class ImageSource(TypedDict, total=False):
    """Where an image is: in the request, or at a URL."""

    type: str
    media_type: str
    data: str
    url: str


class Block(TypedDict, total=False):
    """A part of a message: text, an image, a tool call or a tool result."""

    type: str
    text: str
    source: ImageSource
    id: str
    name: str
    input: JsonObject
    tool_use_id: str
    content: str | list[Block]
    is_error: bool
    thinking: str
    signature: str
    data: str  # of redacted thinking
    cache_control: Mapping[str, str]


class RoleBlocks(TypedDict):
    """The blocks of one side."""

    role: str
    content: list[Block]


class AnthropicTool(TypedDict):
    """A tool as the API describes it."""

    name: str
    description: str
    input_schema: JsonObject


class RequestBody(TypedDict, total=False):
    """A request."""

    model: str
    max_tokens: int
    messages: list[RoleBlocks]
    stream: bool
    system: list[Block]
    tools: list[AnthropicTool]
    tool_choice: Mapping[str, str]
    thinking: ThinkingOption
    output_config: OutputConfig


class TokenCounts(TypedDict, total=False):
    """Tokens of a request."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int


class BlockDelta(TypedDict, total=False):
    """More of a block, or the end of the message."""

    text: str
    thinking: str
    partial_json: str
    signature: str
    stop_reason: str | None


class StartedMessage(TypedDict, total=False):
    """The beginning of an answer."""

    usage: TokenCounts


class StreamEvent(TypedDict, total=False):
    """An event of a stream."""

    type: str
    index: int
    message: StartedMessage
    content_block: Block
    delta: BlockDelta
    usage: TokenCounts


NO_DELTA: Final[BlockDelta] = {}
NO_COUNTS: Final[TokenCounts] = {}


class Anthropic(HttpProvider):
    """A model behind `POST /messages`."""

    api_name = "anthropic"
    api_mode = "anthropic_messages"
    name = "anthropic"

    def __init__(
        self,
        model: str,
        key: str,
        base_url: str = ANTHROPIC,
        *,
        window: int = 0,
        max_output: int = 0,
        effort: str = "",
    ) -> None:
        headers = {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION}
        super().__init__(model, base_url, "messages", headers, ANTHROPIC_RULES)
        self.max_output = max_output or output_limit(model)
        self._effort = effort
        known_model = None if window else find_known_model(base_url, model)
        self.window = (
            window or (known_model.window if known_model is not None else 0) or DEFAULT_WINDOW
        )

    def reader(self, cancel: Cancel) -> _EventReader:
        """What reads one answer."""
        return _EventReader(self, cancel)

    def body(self, request: ModelRequest) -> bytes:
        """The body of a request."""
        limit = within_window(request.max_tokens or self.max_output, request, self.window)
        version = parse_version(self.model)
        has_budget = version is None or version.number < ADAPTIVE_VERSION
        effort = self._effort if self.rules.has_effort else ""
        thinking = thinking_fields(self.model, effort, limit)
        system, messages = as_blocks(self.shaped(request))
        if has_budget and not has_its_thinking(messages):
            thinking = {}
        if has_budget and version is not None and not thinking:
            messages = without_thinking(messages)
        body: RequestBody = {
            "model": self.model,
            "max_tokens": limit,
            "messages": with_cache_points(messages),
            "stream": True,
        }
        if "thinking" in thinking:
            body["thinking"] = thinking["thinking"]
        if "output_config" in thinking:
            body["output_config"] = thinking["output_config"]
        if system:
            body["system"] = [{"type": "text", "text": system, "cache_control": CACHE_CONTROL}]
        if request.tools and self.rules.has_tools:
            body["tools"] = [_tool_schema(tool["function"]) for tool in request.tools]
            if not request.may_call:
                body["tool_choice"] = {"type": "none"}
        return encode(body)


def has_its_thinking(messages: list[RoleBlocks]) -> bool:
    """Whether the last answer begins with its thinking, if its calls are being carried out."""
    answer: RoleBlocks | None = None
    for message in messages:
        is_result = any(block["type"] == "tool_result" for block in message["content"])
        if message["role"] == "assistant":
            answer = message
        elif not is_result:
            answer = None
        if is_result and answer and answer["content"][0]["type"] not in THINKING_TYPES:
            return False
    return True


def without_thinking(messages: list[RoleBlocks]) -> list[RoleBlocks]:
    """The messages for a request without thinking."""
    kept: list[RoleBlocks] = []
    for message in messages:
        blocks = [block for block in message["content"] if block["type"] not in THINKING_TYPES]
        kept.append({"role": message["role"], "content": blocks})
    return [message for message in kept if message["content"]]


def with_cache_points(messages: list[RoleBlocks]) -> list[RoleBlocks]:
    """The messages; the beginning of the next request is read from the cache up to the last."""
    for message in messages[-CACHED_MESSAGES:]:
        blocks = message["content"]
        for place in range(len(blocks) - 1, -1, -1):
            if blocks[place]["type"] not in THINKING_TYPES:  # these cannot be marked
                blocks[place] = {**blocks[place], "cache_control": CACHE_CONTROL}
                break
    return messages


def _tool_schema(function: ToolFunction) -> AnthropicTool:
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"] or {"type": "object"},
    }


def as_blocks(messages: list[Message]) -> tuple[str, list[RoleBlocks]]:
    """Return the system prompt, and the messages as alternating turns of blocks."""
    system = "\n\n".join(
        str(message["content"]) for message in messages if message["role"] == "system"
    )
    turns: list[RoleBlocks] = []
    for message in messages:
        role = message["role"]
        if role == "system":
            continue
        if role == "assistant":
            blocks = [*map(_answer_block, parts_in_order(message))]
        else:
            role = "user"
            blocks = [_result_block(message)] if message["role"] == "tool" else _blocks(message)
        blocks = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return system, turns


def _blocks(message: Message) -> list[Block]:
    content = message.get("content")
    if isinstance(content, list):
        return [_part_block(part) for part in content]
    return [{"type": "text", "text": str(content or "")}]


def _result_block(message: Message) -> Block:
    content = message.get("content")
    block: Block = {
        "type": "tool_result",
        "tool_use_id": message.get("tool_call_id") or "",
        "content": _blocks(message) if isinstance(content, list) else str(content or ""),
    }
    if message.get("is_error"):
        block["is_error"] = True
    return block


def _answer_block(part: tuple[str, Any]) -> Block:
    kind, value = part
    if kind == "text":
        return {"type": "text", "text": value}
    if kind == "block":
        return cast("Block", value)
    call: ToolCallDict = value
    function = call["function"]
    return {
        "type": "tool_use",
        "id": call["id"],
        "name": function["name"],
        "input": _parse_object(function.get("arguments")),
    }


def _part_block(part: Any) -> Block:
    """A part of a message, such as an image, as a block."""
    if part.get("type") != "image_url":
        return {"type": "text", "text": str(part.get("text") or "")}
    url = str((part.get("image_url") or {}).get("url") or "")
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        kind = head.removeprefix("data:")
        source: ImageSource = {"type": "base64", "media_type": kind, "data": data}
    else:
        source = {"type": "url", "url": url}
    return {"type": "image", "source": source}


def _parse_object(text: Any) -> JsonObject:
    try:
        data = json.loads(text or "{}")
    except (TypeError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


class _EventReader(AnswerReader[StreamEvent]):
    """Assembles one streamed answer from its events."""

    def __init__(self, provider: Anthropic, cancel: Cancel) -> None:
        super().__init__(provider, cancel)
        self._thinking: dict[int, Block] = {}
        self._lengths: dict[int, int] = {}  # of texts, by block
        self._places: dict[int, int] = {}  # of the blocks, by their index
        self._last_place = -1

    def reply(self) -> Reply:
        """The answer, from all events."""
        finish = FINISH_REASONS.get(self._finish, self._finish or "stop")
        return Reply(
            "".join(self._text) + self._characters.end(),
            whole_characters("".join(self._reasoning)),
            self.tool_calls(finish),
            finish,
            self._usage,
            reasoning_details=tuple(self._blocks_in_order()),
            author=self._provider.author,
        )

    def _blocks_in_order(self) -> list[object]:
        """The blocks to send back; with the places of text and calls, unless they come last."""
        thinking = list(self._thinking)
        others = [*self._lengths, *self._calls]
        if not thinking or not others or max(thinking) < min(others):
            return [self._thinking[place] for place in sorted(thinking)]
        found: dict[int, object] = {
            **self._thinking,
            **{at: {"type": TEXT_PLACE, "characters": size} for at, size in self._lengths.items()},
            **{at: {"type": CALL_PLACE} for at in self._calls},
        }
        return [found[place] for place in sorted(found)]

    def other_format(self, event: StreamEvent) -> str:
        """The API that an event belongs to, if it is another one."""
        return "OpenAI" if "choices" in event else ""

    def events_in(self, answer: JsonObject) -> Iterator[StreamEvent]:
        """The events of a stream that would make up this answer."""
        yield cast("StreamEvent", {"type": "message_start", "message": answer})
        for index, block in enumerate(objects_in(answer, "content")):
            start = {**block, "text": "", "thinking": "", "input": {}}
            yield cast(
                "StreamEvent",
                {"type": "content_block_start", "index": index, "content_block": start},
            )
            delta = {**block, "partial_json": json.dumps(block.get("input") or {})}
            yield cast(
                "StreamEvent", {"type": "content_block_delta", "index": index, "delta": delta}
            )
        ended = {"stop_reason": answer.get("stop_reason")}
        yield cast(
            "StreamEvent",
            {"type": "message_delta", "delta": ended, "usage": answer.get("usage")},
        )
        yield {"type": "message_stop"}

    def handle(self, event: StreamEvent) -> Iterator[ProviderEvent]:
        """Take in an event of the stream; what there is to show."""
        kind = event.get("type")
        if kind == "message_start":
            message = event.get("message")
            self._add_usage(message.get("usage") if message else None)
        elif kind == "content_block_start":
            yield from self._begin_block(self._new_place(event), event.get("content_block") or {})
        elif kind == "content_block_delta":
            index = event.get("index", 0)
            place = self._places.get(index, index)
            yield from self._handle_delta(place, event.get("delta") or NO_DELTA)
        elif kind == "message_delta":
            self._add_usage(event.get("usage"))
            delta = event.get("delta") or NO_DELTA
            self._finish = delta.get("stop_reason") or self._finish
        elif kind == "message_stop":
            self._is_complete = True

    def _new_place(self, event: StreamEvent) -> int:
        """The place of a block that begins; some servers give each the same index, or none."""
        index = event.get("index", 0)
        self._last_place = max(index, self._last_place + 1)
        self._places[index] = self._last_place
        return self._last_place

    def _begin_block(self, place: int, block: Block) -> Iterator[ProviderEvent]:
        kind = block.get("type")
        if kind == "tool_use":
            given = json.dumps(block["input"]) if block.get("input") else ""
            self._calls[place] = PartialCall(block.get("id") or "", block.get("name") or "", given)
        elif kind in THINKING_TYPES:
            self._thinking[place] = {**block}
            if thinking := block.get("thinking"):
                self._reasoning.append(thinking)
                yield ReasoningDelta(thinking)
        elif kind == "text" and block.get("text"):
            yield from self._add_text(place, block["text"])

    def _add_text(self, index: int, text: str) -> Iterator[ProviderEvent]:
        text = self._characters.add(text)
        self._text.append(text)
        self._lengths[index] = self._lengths.get(index, 0) + len(text)
        yield TextDelta(text)

    def _handle_delta(self, index: int, delta: BlockDelta) -> Iterator[ProviderEvent]:
        if delta.get("text"):
            yield from self._add_text(index, delta["text"])
        if thinking := delta.get("thinking"):
            self._reasoning.append(thinking)
            if index in self._thinking:
                block = self._thinking[index]
                block["thinking"] = block.get("thinking", "") + thinking
            yield ReasoningDelta(thinking)
        if (signature := delta.get("signature")) and index in self._thinking:
            self._thinking[index]["signature"] = signature
        if (arguments := delta.get("partial_json")) and index in self._calls:
            call = self._calls[index]
            is_whole = parse_object(call.arguments or " ") is not None  # from the beginning
            call.arguments = arguments if is_whole else call.arguments + arguments

    def _add_usage(self, usage: TokenCounts | None) -> None:
        """Merge token counts: input arrives at the start, output at the end."""
        counts = usage or NO_COUNTS
        self._usage = Usage(
            input=counts.get("input_tokens") or self._usage.input,
            output=counts.get("output_tokens") or self._usage.output,
            cache_read=counts.get("cache_read_input_tokens") or self._usage.cache_read,
            cache_write=counts.get("cache_creation_input_tokens") or self._usage.cache_write,
        )
