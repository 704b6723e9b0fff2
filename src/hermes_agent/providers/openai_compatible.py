"""Endpoints with OpenAI's chat completions API: OpenAI, OpenRouter, Ollama, vLLM, …"""

from __future__ import annotations

import itertools
import json
import operator
import re
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict, cast

import httpx2

from hermes_agent.events import REFUSAL_REASON, ReasoningDelta, Reply, TextDelta
from hermes_agent.messages import PartialCall, Usage, author_of, kept_blocks
from hermes_agent.providers.http_stream import AnswerReader, HttpProvider, encode, ssl_context
from hermes_agent.providers.request_shape import sent_arguments
from hermes_agent.providers.rules import rules_for
from hermes_core.json_values import (
    number_in,
    object_in,
    objects_in,
    parse_object,
    text_in,
    whole_characters,
)
from hermes_core.known_models import find_known_model, is_loopback
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.providers.catalog import ListedModel, ModelListAnswer
    from hermes_agent.providers.rules import Rules
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonData, JsonObject, JsonValue
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
# Fields of stored messages that the API accepts.
SENT_FIELDS: Final = ("role", "content", "tool_calls", "tool_call_id", "name")
# Google's word for a call that another model has made, which has no signature.
NO_SIGNATURE: Final = "skip_thought_signature_validator"
UNSIGNED: Final = {"google": {"thought_signature": NO_SIGNATURE}}


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
        rules: Rules | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        rules = rules or rules_for(base_url, model)
        super().__init__(model, base_url, "chat/completions", headers, rules)
        self.max_output = max_output
        self._effort = effort
        self.name = name or base_url.rsplit("//", maxsplit=1)[-1].split("/", maxsplit=1)[0]
        self._is_window_known = window > 0
        self.window = window or _assumed_window(base_url, model)
        self._extra = extra or {}
        self._encoded = EncodedMessages()

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
        rules = self.rules
        body: dict[str, JsonData] = {"model": self.model, "stream": True, **self._extra}
        if rules.counts_on_request:
            body["stream_options"] = {"include_usage": True}
        if request.tools and rules.has_tools:
            body["tools"] = [cast("JsonObject", tool) for tool in request.tools]
            if not request.may_call and rules.has_tool_choice:
                body["tool_choice"] = "none"
        limit = request.max_tokens or self.max_output
        if limit:
            body[rules.limit_field] = limit
        if self._effort and rules.has_effort:
            effort: dict[str, JsonData] = {"reasoning_effort": self._effort}
            body.update(
                {"reasoning": {"effort": self._effort}} if rules.effort_in_reasoning else effort
            )
        messages = b",".join(self._encoded.of(self.shaped(request), rules))
        return encode(body)[:-1] + b',"messages":[' + messages + b"]}"


def _assumed_window(base_url: str, model: str) -> int:
    known_model = None if is_loopback(base_url) else find_known_model(base_url, model)
    return (known_model.window if known_model is not None else 0) or DEFAULT_WINDOW


def wire_message(message: Message, rules: Rules) -> Message:
    """A message with the fields that the API accepts, and the reasoning that it gets back."""
    sent = {name: value for name in SENT_FIELDS if (value := message.get(name)) is not None}
    sent.update(content=_as_text_if_possible(sent.get("content", "")))
    if message["role"] != "assistant":
        return cast("Message", sent)
    calls = message.get("tool_calls")
    if calls:
        sent.update(tool_calls=_wire_calls(calls, rules))
    if calls or rules.reasoning_of_answers:
        sent.update(_reasoning(message, rules))
    if calls and rules.needs_reasoning:
        sent.setdefault(rules.reasoning_fields[0], "")
    blocks = [block for block in kept_blocks(message) if block != THINK_BLOCK]
    if rules.returns_details and blocks:
        sent["reasoning_details"] = blocks
    return cast("Message", sent)


def _reasoning(message: Message, rules: Rules) -> dict[str, object]:
    """The reasoning under the name under which the model has sent it, if that is accepted."""
    if author_of(message) is None:
        return {}
    name, value = "reasoning_content", message.get("reasoning_content")
    if value is None and kept_blocks(message) != [THINK_BLOCK]:
        name, value = "reasoning", message.get("reasoning") or None
    return {name: value} if value is not None and name in rules.reasoning_fields else {}


def _wire_calls(calls: list[ToolCallDict], rules: Rules) -> list[ToolCallDict]:
    sent = [_with_arguments(call, sent_arguments(call)) for call in calls]
    if rules.signs_calls and "extra_content" not in sent[0]:
        sent[0] = cast("ToolCallDict", {**sent[0], "extra_content": UNSIGNED})
    return sent


def _with_arguments(call: ToolCallDict, arguments: str) -> ToolCallDict:
    if call["function"].get("arguments") == arguments:
        return call
    return {**call, "function": {"name": call["function"]["name"], "arguments": arguments}}


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

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._encoded: list[bytes] = []
        self._rules: Rules | None = None

    def of(self, messages: list[Message], rules: Rules) -> list[bytes]:
        """Each message as JSON."""
        before = self._messages if rules == self._rules else []
        is_same = list(map(operator.is_, before, messages))
        same = is_same.index(False) if False in is_same else len(is_same)
        self._messages, self._rules = messages, rules
        new = (wire_message(message, rules) for message in messages[same:])
        # A copy: what orjson returns keeps a buffer of 4 KB.
        added = [memoryview(encode(each)).tobytes() for each in new]
        self._encoded = self._encoded[:same] + added
        return self._encoded


class FunctionDelta(TypedDict, total=False):
    """A part of the name and the arguments of a tool call."""

    name: str | None
    arguments: object  # text; some servers send the object itself


class CallDelta(TypedDict, total=False):
    """A part of a tool call."""

    index: int | str | None
    id: str | int | None
    function: FunctionDelta | None


class AnswerDelta(TypedDict, total=False):
    """More of an answer."""

    content: object  # text; some servers send a list of parts
    refusal: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: list[JsonObject] | None
    tool_calls: list[CallDelta | None] | None


class StreamChoice(TypedDict, total=False):
    """One of the answers; there is one."""

    delta: AnswerDelta | None
    message: AnswerDelta | None  # of a whole answer
    index: int | None
    error: object  # OpenRouter
    finish_reason: str | None
    usage: JsonObject | None  # Kimi


class StreamChunk(TypedDict, total=False):
    """An event of a stream."""

    type: str  # of another API
    choices: list[StreamChoice | None] | None
    usage: JsonObject | None
    x_groq: JsonObject | None


NO_DELTA: Final[AnswerDelta] = {}
NO_FUNCTION: Final[FunctionDelta] = {}
CALL_FIELDS: Final = frozenset({"index", "id", "type", "function"})
THINK_BLOCK: Final[JsonObject] = {"type": "think_tags"}  # reasoning that came as text
THINK_TAGS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "[THINK]": "[/THINK]",
}


class _ChunkReader(AnswerReader[StreamChunk]):
    """Assembles one streamed answer from its chunks."""

    def __init__(self, provider: OpenAICompatible, cancel: Cancel) -> None:
        super().__init__(provider, cancel)
        self._is_refused = False
        self._reasoning_content: list[str] = []
        self._has_reasoning_content = False
        self._details: list[JsonObject] = []
        self._tags = ThinkTags()

    def other_format(self, event: StreamChunk) -> str:
        """The API that an event belongs to, if it is another one."""
        return "Anthropic" if event.get("type") == "message_start" else ""

    def events_in(self, answer: JsonObject) -> list[StreamChunk]:
        """The events of a stream that would make up this answer."""
        return [cast("StreamChunk", answer)]

    def handle(self, event: StreamChunk) -> list[ProviderEvent]:
        """Take in an event of the stream; what there is to show."""
        events: list[ProviderEvent] = []
        self._count(event.get("usage") or (event.get("x_groq") or {}).get("usage"))
        for choice in event.get("choices") or ():
            if not choice or choice.get("index"):  # one answer was asked for
                continue
            if error := choice.get("error"):
                return [self.stream_error(error)]
            self._count(choice.get("usage"))
            delta = choice.get("delta")
            if delta is None:
                delta = choice.get("message") or NO_DELTA
            events += self._handle_delta(delta)
            self._finish = choice.get("finish_reason") or self._finish
        return events

    def _count(self, usage: object) -> None:
        if isinstance(usage, dict):
            self._usage = read_usage(usage)
            cost = usage.get("cost")  # in dollars; requested from OpenRouter
            self._cost = float(cost) if isinstance(cost, int | float) else None

    def _handle_delta(self, delta: AnswerDelta) -> Iterator[ProviderEvent]:
        content = delta.get("reasoning_content")
        if isinstance(content, str):  # an empty one counts
            self._has_reasoning_content = True
            self._reasoning_content.append(content)
        given = cast("JsonObject", delta)
        details = objects_in(given, "reasoning_details")
        for detail in details:
            _add_detail(self._details, detail)
        in_details = "".join(text_in(each, "text") or text_in(each, "summary") for each in details)
        in_parts, text = _split_parts(delta.get("content"))
        yield from self._add_reasoning(content or delta.get("reasoning") or in_details or in_parts)
        self._is_refused |= bool(delta.get("refusal"))
        text = self._characters.add(text or delta.get("refusal") or "")
        thought, text = self._tags.split(text)
        yield from self._add_reasoning(thought)
        yield from self._add_text(text)
        for part in filter(None, delta.get("tool_calls") or ()):
            self._add_call_part(part)

    def _add_reasoning(self, text: object) -> Iterator[ProviderEvent]:
        if isinstance(text, str) and text:
            self._reasoning.append(text)
            yield ReasoningDelta(text)

    def _add_text(self, text: str) -> Iterator[ProviderEvent]:
        if text:
            self._text.append(text)
            yield TextDelta(text)

    def _add_call_part(self, part: CallDelta) -> None:
        """Merge a part of a tool call into the call that it belongs to."""
        function = part.get("function") or NO_FUNCTION
        name, arguments = function.get("name") or "", function.get("arguments")
        call = self._call_of(part, name, arguments)
        call.id = call.id or _id_of(part)
        if not name.startswith(call.name):  # some servers repeat the name in each part
            name = call.name + name
        call.name = name if len(name) > len(call.name) else call.name
        if isinstance(arguments, str):
            call.parts.append(arguments)
        elif arguments is not None:  # the object itself
            call.parts = [json.dumps(arguments)]
        call.extra.update(_extra_members(part))

    def _call_of(self, part: CallDelta, name: str, arguments: object) -> PartialCall:
        """The call of a part: by its index, else by its ID, else the last one.

        Servers number calls in many ways: each with index 0, with IDs alone, or not at all; a
        name begins another call if the one before is complete, unless it is only repeated.
        """
        calls, call_id, index = self._calls, _id_of(part), part.get("index")
        by_id = next((key for key, each in calls.items() if call_id and each.id == call_id), None)
        key = by_id if by_id is not None else max(calls, default=0)
        if isinstance(index, int) or (isinstance(index, str) and index.isdigit()):
            key = int(index) if by_id is None or name else key
        call = calls.get(key)
        if call is not None and name:
            has_other_id = bool(call_id and call.id and call.id != call_id)
            is_again = by_id is not None and [arguments] == call.parts
            is_more = arguments and not is_again and _is_object("".join(call.parts))
            if has_other_id or is_more:
                call, key = None, max(calls) + 1
        return call if call is not None else calls.setdefault(key, PartialCall())

    def reply(self) -> Reply:
        """The answer, from all events."""
        thought, rest = self._tags.split(self._characters.end(), is_end=True)
        for call in self._calls.values():
            call.arguments = _joined(call.parts)
        calls = self.tool_calls(self._finish)
        finish = self._finish or ("tool_calls" if calls else "stop")
        finish = REFUSAL_REASON if self._is_refused and finish == "stop" else finish
        blocks = [THINK_BLOCK] if self._tags.found else self._details
        return Reply(
            "".join(self._text) + rest,
            whole_characters("".join(self._reasoning) + thought),
            calls,
            finish,
            self._usage,
            self._cost,
            "".join(self._reasoning_content) if self._has_reasoning_content else None,
            tuple(blocks),
            self._provider.author,
        )


def _extra_members(part: CallDelta) -> JsonObject:
    return {
        name: cast("JsonValue", value)
        for name, value in part.items()
        if name not in CALL_FIELDS and value is not None
    }


def _id_of(part: CallDelta) -> str:
    call_id = part.get("id")
    return "" if call_id is None else str(call_id)


def _is_object(arguments: str) -> bool:
    return arguments.rstrip().endswith("}") and parse_object(arguments) is not None


def _joined(parts: list[str]) -> str:
    """The arguments of a call; some servers repeat all in each part, or begin with `{}`."""
    arguments = "".join(parts)
    if len(parts) < 2 or _is_object(arguments):
        return arguments
    if all(after.startswith(before) for before, after in itertools.pairwise(parts)):
        return parts[-1]
    rest = arguments.removeprefix("{}")
    return rest if _is_object(rest) else arguments


def _split_parts(content: object) -> tuple[str, str]:
    """The reasoning and the text of a content, which some servers send as a list of parts."""
    if not isinstance(content, list):
        return "", plain_text(content)
    parts = [each for each in content if isinstance(each, dict)]
    thoughts = [each.get("thinking") for each in parts if each.get("type") == "thinking"]
    return plain_text(thoughts), plain_text([p for p in parts if p.get("type") != "thinking"])


def _add_detail(details: list[JsonObject], added: JsonObject) -> None:
    """Add a detail of the reasoning; parts of one text are joined."""
    last = details[-1] if details else {}
    is_same = all(last.get(name) == added.get(name) for name in ("type", "index", "format"))
    texts = [name for name in ("text", "summary") if isinstance(added.get(name), str)]
    if not details or not is_same or (last.get("id") and added.get("id") not in {None, last["id"]}):
        details.append({**added})
        return
    for name in texts:
        added = {**added, name: f"{last.get(name) or ''}{added[name]}"}
    last.update({name: value for name, value in added.items() if value is not None})


class ThinkTags:
    """Separates the reasoning that a model writes into its text, between tags at the beginning."""

    def __init__(self) -> None:
        self.found = False
        self._held = ""  # what may be the beginning of a tag
        self._end = ""  # the tag that ends the reasoning
        self._is_over = False
        self._is_before_text = True

    def split(self, text: str, *, is_end: bool = False) -> tuple[str, str]:
        """The reasoning and the text of what has arrived."""
        if self._is_over:
            return "", self._after(text)
        text, self._held = self._held + text, ""
        if not self._end:
            start = text.lstrip()
            tag = next((tag for tag in THINK_TAGS if start.startswith(tag)), "")
            may_come = any(each.startswith(start) for each in THINK_TAGS)
            if not tag and may_come and not is_end:
                self._held = text
                return "", ""
            if not tag:
                self._is_over, self._is_before_text = True, False
                return "", text
            self.found, self._end, text = True, THINK_TAGS[tag], start.removeprefix(tag)
        thought, tag, rest = text.partition(self._end)
        if tag:
            self._is_over = True
            return thought, self._after(rest)
        if not is_end:
            held = next(
                (n for n in range(len(self._end) - 1, 0, -1) if text.endswith(self._end[:n])), 0
            )
            thought, self._held = text[: len(text) - held], text[len(text) - held :]
        return thought, ""

    def _after(self, text: str) -> str:
        """Text after the reasoning, without the blank lines between them."""
        if self._is_before_text:
            text = text.lstrip()
            self._is_before_text = not text
        return text


def read_usage(counts: JsonObject) -> Usage:
    """The tokens of a request, with the names of all providers for those from a cache."""
    details = object_in(counts, "prompt_tokens_details")
    cached = (
        number_in(details, "cached_tokens")
        or number_in(counts, "prompt_cache_hit_tokens")  # DeepSeek
        or number_in(counts, "cached_tokens")  # Kimi
    )
    written = number_in(details, "cache_write_tokens")  # OpenRouter
    return Usage(
        input=max(0, number_in(counts, "prompt_tokens") - cached - written),
        output=number_in(counts, "completion_tokens"),
        cache_read=cached,
        cache_write=written,
        reasoning=number_in(object_in(counts, "completion_tokens_details"), "reasoning_tokens"),
    )
