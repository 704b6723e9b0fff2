"""Endpoints with OpenAI's chat completions API: OpenAI, OpenRouter, Ollama, vLLM, …"""

from __future__ import annotations

import functools
import operator
import re
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict, cast

import httpx2
import orjson

from hermes_agent.events import LENGTH_REASON, REFUSAL_REASON, ReasoningDelta, Reply, TextDelta
from hermes_agent.messages import PartialCall, ToolCall, Usage
from hermes_agent.providers.http_stream import AnswerReader, HttpProvider, encode, ssl_context
from hermes_core.json_values import number_in, object_in, whole_characters
from hermes_core.known_models import find_known_model, host_of, is_loopback
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.providers.catalog import ListedModel, ModelListAnswer
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_core.messages import ToolCallDict

PROBE_SECONDS: Final = 0.5  # timeout of each request
# Fields of model lists: vLLM; LM Studio (loaded, then maximum); others.
WINDOW_FIELDS: Final = (
    "max_model_len",
    "loaded_context_length",
    "max_context_length",
    "context_length",
)
OLLAMA_DEFAULT_WINDOW: Final = 4096  # Ollama's default for num_ctx
NUM_CTX: Final = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


class GenerationSettings(TypedDict):
    """A part of the answer of llama.cpp's `GET /props`."""

    n_ctx: int


class ServerProperties(TypedDict):
    """The answer of llama.cpp's `GET /props`."""

    default_generation_settings: GenerationSettings


class LoadedModel(TypedDict):
    """A model in the answer of Ollama's `GET /api/ps`."""

    name: str
    context_length: NotRequired[int]


class LoadedModels(TypedDict):
    """The answer of Ollama's `GET /api/ps`."""

    models: list[LoadedModel]


class StoredModel(TypedDict):
    """The answer of Ollama's `POST /api/show`."""

    parameters: NotRequired[str | None]
    model_info: dict[str, int]


def probe_window(base_url: str, model: str, headers: dict[str, str]) -> int:
    """Query the context window of *model* from its server; 0 when it is not reported."""
    root = base_url.rstrip("/").removesuffix("/v1")
    with httpx2.Client(timeout=PROBE_SECONDS, headers=headers, verify=ssl_context()) as client:
        probes: tuple[Callable[[], int], ...] = (
            lambda: _window_from_list(client.get(f"{root}/v1/models").json(), model),
            lambda: _window_from_llama_server(client.get(f"{root}/props").json()),
            lambda: _window_of_loaded_model(client.get(f"{root}/api/ps").json(), model),
            lambda: _window_of_stored_model(
                client.post(f"{root}/api/show", json={"model": model}).json()
            ),
        )
        try:
            return next((window for probe in probes if (window := _try_probe(probe))), 0)
        except (httpx2.HTTPError, httpx2.InvalidURL):  # unreachable or busy: no further requests
            return 0


def _try_probe(probe: Callable[[], int]) -> int:
    """Run one probe; an unsupported route may return a body of any form."""
    try:
        return probe()
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0


def _window_from_list(answer: ModelListAnswer, model: str) -> int:
    models: list[ListedModel] = [*answer["data"], {}]
    entry = next(item for item in models if item.get("id", model) == model)
    windows = (entry.get(name) for name in WINDOW_FIELDS)
    return next((window for window in windows if isinstance(window, int)), 0)


def _window_from_llama_server(answer: ServerProperties) -> int:
    return int(answer["default_generation_settings"]["n_ctx"])


def _window_of_loaded_model(answer: LoadedModels, model: str) -> int:
    windows = {item["name"]: item.get("context_length", 0) for item in answer["models"]}
    return int(windows.get(model) or windows.get(f"{model}:latest") or 0)


def _window_of_stored_model(answer: StoredModel) -> int:
    """The window that Ollama will load a model with; it silently drops longer input."""
    match = NUM_CTX.search(answer.get("parameters") or "")
    if match is not None:
        return int(match[1])
    sizes = (
        size for name, size in answer["model_info"].items() if name.endswith(".context_length")
    )
    return min(OLLAMA_DEFAULT_WINDOW, *(int(size) for size in sizes), OLLAMA_DEFAULT_WINDOW)


DEFAULT_WINDOW: Final = 128_000  # of an unknown model
# DeepSeek, Kimi and others need the reasoning of an answer with tool calls back. They send it as
# `reasoning_content`, so only what came under this name is returned.
STRICT_HOST: Final = "api.openai.com"  # refuses fields that it does not know
OPENROUTER_HOST: Final = "openrouter.ai"
# Fields of stored messages that the API accepts.
SENT_FIELDS: Final = ("role", "content", "tool_calls", "tool_call_id", "name")


class OpenAICompatible(HttpProvider):
    """A model behind `POST /chat/completions`."""

    def __init__(
        self,
        model: str,
        base_url: str,
        key: str = "",
        *,
        name: str = "",
        window: int = 0,
        max_output: int = 0,
        effort: str = "",
        extra: Mapping[str, JsonData] | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        super().__init__(model, base_url, "chat/completions", headers)
        self.max_output = max_output
        self._effort = effort
        self.name = name or base_url.rsplit("//", maxsplit=1)[-1].split("/", maxsplit=1)[0]
        self._is_window_known = window > 0
        self.window = window or _assumed_window(base_url, model)
        self._extra = extra or {}
        self._encoded = EncodedMessages(returns_reasoning=STRICT_HOST not in base_url)

    def reader(self, cancel: Cancel) -> _ChunkReader:
        """What reads one answer."""
        return _ChunkReader(self, cancel)

    def resolve_window(self) -> int:
        """Return the context window; a local server is probed once."""
        if not self._is_window_known and is_loopback(self.base_url):
            self.window = probe_window(self.base_url, self.model, self._headers) or self.window
        self._is_window_known = True
        return self.window

    def body(self, request: ModelRequest) -> bytes:
        """The body of a request."""
        body: dict[str, JsonData] = {
            "model": self.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._extra,
        }
        if request.tools:
            body["tools"] = [cast("JsonObject", tool) for tool in request.tools]
        limit = request.max_tokens or self.max_output
        if limit:
            is_strict = host_of(self.base_url) == STRICT_HOST
            body["max_completion_tokens" if is_strict else "max_tokens"] = limit
        if self._effort:
            body.update(effort_fields(self.base_url, self._effort))
        messages = b",".join(self._encoded.of(request.messages))
        return encode(body)[:-1] + b',"messages":[' + messages + b"]}"


def effort_fields(base_url: str, effort: str) -> dict[str, JsonData]:
    """The fields of a request that set the effort: none, low, medium or high."""
    if host_of(base_url) == OPENROUTER_HOST:
        return {"reasoning": {"effort": effort}}
    return {"reasoning_effort": effort}


def _assumed_window(base_url: str, model: str) -> int:
    known_model = None if is_loopback(base_url) else find_known_model(base_url, model)
    return (known_model.window if known_model is not None else 0) or DEFAULT_WINDOW


def _wire_message(message: Message, *, returns_reasoning: bool) -> Message:
    sent = {name: value for name in SENT_FIELDS if (value := message.get(name)) is not None}
    sent.update(content=_as_text_if_possible(sent.get("content", "")))
    calls = message.get("tool_calls")
    if calls and not all(_has_valid_arguments(call) for call in calls):
        sent.update(tool_calls=[_with_valid_arguments(call) for call in calls])
    reasoning = message.get("reasoning_content")
    if returns_reasoning and reasoning is not None and "tool_calls" in sent:
        sent["reasoning_content"] = reasoning
    return cast("Message", sent)


def _has_valid_arguments(call: ToolCallDict) -> bool:
    try:
        orjson.loads(call["function"]["arguments"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False
    return True


def _with_valid_arguments(call: ToolCallDict) -> ToolCallDict:
    """A call whose arguments servers can parse; incomplete ones are dropped."""
    if _has_valid_arguments(call):
        return call
    name = call.get("function", {}).get("name", "")
    return {**call, "function": {"name": name, "arguments": "{}"}}


def _as_text_if_possible(content: object) -> object:
    """Parts that are all text as one text: small servers accept no other content."""
    if not isinstance(content, list) or not content:
        return content
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    is_text = len(texts) == len(content) and all(isinstance(text, str) for text in texts)
    return "\n\n".join(map(str, texts)) if is_text else content


class EncodedMessages:
    """The messages of the last request as JSON.

    The next request of a conversation starts with the same objects, which are not encoded again.
    """

    def __init__(self, *, returns_reasoning: bool = False) -> None:
        self._messages: list[Message] = []
        self._encoded: list[bytes] = []
        self._to_wire = functools.partial(_wire_message, returns_reasoning=returns_reasoning)

    def of(self, messages: list[Message]) -> list[bytes]:
        """Each message as JSON."""
        before, encoded = self._messages, self._encoded
        is_same = list(map(operator.is_, before, messages))
        same = is_same.index(False) if False in is_same else len(is_same)
        self._messages = messages
        new = map(self._to_wire, messages[same:])
        # A copy: what orjson returns keeps a buffer of 4 KB.
        self._encoded = encoded[:same] + [memoryview(encode(each)).tobytes() for each in new]
        return self._encoded


class FunctionDelta(TypedDict, total=False):
    """A part of the name and the arguments of a tool call."""

    name: str | None
    arguments: str | None


class CallDelta(TypedDict, total=False):
    """A part of a tool call."""

    index: int | None
    id: str | None
    function: FunctionDelta | None


class AnswerDelta(TypedDict, total=False):
    """More of an answer."""

    content: str | None
    refusal: str | None
    reasoning: str | None
    reasoning_content: str | None
    tool_calls: list[CallDelta] | None


class StreamChoice(TypedDict, total=False):
    """One of the answers; there is one."""

    delta: AnswerDelta | None
    finish_reason: str | None


class StreamChunk(TypedDict, total=False):
    """An event of a stream."""

    type: str  # of another API
    choices: list[StreamChoice] | None
    usage: JsonObject | None


NO_DELTA: Final[AnswerDelta] = {}
NO_FUNCTION: Final[FunctionDelta] = {}


class _ChunkReader(AnswerReader[StreamChunk]):
    """Assembles one streamed answer from its chunks."""

    def __init__(self, provider: OpenAICompatible, cancel: Cancel) -> None:
        super().__init__(provider, cancel)
        self._is_refused = False
        self._reasoning_content: list[str] = []
        self._has_reasoning_content = False

    def other_format(self, event: StreamChunk) -> str:
        """The API that an event belongs to, if it is another one."""
        return "Anthropic" if event.get("type") == "message_start" else ""

    def handle(self, event: StreamChunk) -> list[ProviderEvent]:
        """Take in an event of the stream; what there is to show."""
        events: list[ProviderEvent] = []
        usage = event.get("usage")
        if isinstance(usage, dict):
            self._usage = _usage(usage)
            cost = usage.get("cost")  # in dollars; requested from OpenRouter
            self._cost = float(cost) if isinstance(cost, int | float) else None
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or NO_DELTA
            content = delta.get("reasoning_content")
            if isinstance(content, str):  # an empty one counts
                self._has_reasoning_content = True
                self._reasoning_content.append(content)
            reasoning = content or delta.get("reasoning")
            if isinstance(reasoning, str) and reasoning:
                self._reasoning.append(reasoning)
                events.append(ReasoningDelta(reasoning))
            self._is_refused |= bool(delta.get("refusal"))
            # Some servers send a list of parts instead of a text.
            text = self._characters.add(
                plain_text(delta.get("content")) or delta.get("refusal") or ""
            )
            if text:
                self._text.append(text)
                events.append(TextDelta(text))
            for part in delta.get("tool_calls") or ():
                self._add_call_part(part)
            self._finish = choice.get("finish_reason") or self._finish
        self._is_complete = bool(self._finish)
        return events

    def _add_call_part(self, part: CallDelta) -> None:
        """Merge a part of a tool call; parts with the same index belong together."""
        index = part.get("index")
        index = len(self._calls) if index is None else int(index)
        call = self._calls.setdefault(index, PartialCall())
        function = part.get("function") or NO_FUNCTION
        call.id = part.get("id") or call.id
        call.name += function.get("name") or ""
        call.arguments += function.get("arguments") or ""

    def reply(self) -> Reply:
        """The answer, from all events."""
        no_arguments = "" if self._finish == LENGTH_REASON else "{}"
        calls = tuple(
            ToolCall(call.id or f"call_{index}", call.name, call.arguments or no_arguments)
            for index, call in sorted(self._calls.items())
        )
        finish = self._finish or ("tool_calls" if calls else "stop")
        finish = REFUSAL_REASON if self._is_refused and finish == "stop" else finish
        text = "".join(self._text) + self._characters.end()
        reasoning = whole_characters("".join(self._reasoning))
        content = "".join(self._reasoning_content) if self._has_reasoning_content else None
        return Reply(text, reasoning, calls, finish, self._usage, self._cost, content)


def _usage(counts: JsonObject) -> Usage:
    cached = number_in(object_in(counts, "prompt_tokens_details"), "cached_tokens")
    return Usage(
        input=max(0, number_in(counts, "prompt_tokens") - cached),
        output=number_in(counts, "completion_tokens"),
        cache_read=cached,
        reasoning=number_in(object_in(counts, "completion_tokens_details"), "reasoning_tokens"),
    )
