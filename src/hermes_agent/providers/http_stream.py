"""Providers over HTTP: server-sent events, with timeouts; another thread can cancel a request."""

from __future__ import annotations

import contextlib
import email.utils
import functools
import json
import logging
import os
import queue
import re
import socket
import threading
import weakref
from abc import ABC, abstractmethod
from concurrent.futures import CancelledError, Future
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

import httpx2
import orjson

from hermes_agent.events import LENGTH_REASON, Failed, FailureKind, Notice, Reply
from hermes_agent.messages import Author, PartialCall, ToolCall, Usage
from hermes_agent.providers.base import Provider
from hermes_agent.providers.failures import (
    TRY_AGAIN,
    ErrorReport,
    connection_lost,
    http_failure,
    interrupted,
    invalid_response,
    is_context_error,
    pause_in,
    timed_out,
    unreachable,
)
from hermes_agent.providers.request_shape import Shaper
from hermes_agent.providers.rules import LearnedRules, lesson_of
from hermes_core import __version__
from hermes_core.errors import ConfigError
from hermes_core.isolate import Failure, attempt, attempt_each
from hermes_core.json_values import (
    CharacterJoiner,
    object_in,
    objects_in,
    parse_object,
    text_in,
    whole_characters,
)
from hermes_core.known_models import is_loopback

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.providers.rules import Rules
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonObject


log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 300.0
KEEP_ALIVE_SECONDS: Final = 60.0
# Compressed events would arrive late, because compression needs more data.
STREAM_HEADERS: Final = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
USER_AGENT: Final = f"Hermes/{__version__}"
REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "cf-ray")
PAGE_TITLE: Final = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
# Some servers send their events without a content type, or as plain text.
OTHER_FORMATS: Final = ("text/html", "application/json", "application/xml", "text/xml")
EVENT_STARTS: Final = ("data:", "event:", ":")
ANOTHER_ADDRESS: Final = "Choose another model: `hermes models use URL#NAME`."
REQUEST_ERRORS: Final = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
MAX_IDLE_THREADS: Final = 64


class StreamRequest(NamedTuple):
    """A request to a provider; `read` converts the lines of the response to events."""

    provider: Provider
    client: httpx2.Client
    url: httpx2.URL
    body: bytes  # JSON
    headers: dict[str, str]
    read: Callable[[Iterator[str]], Iterator[ProviderEvent]]
    read_whole: Callable[[JsonObject], Iterator[ProviderEvent]]  # a whole answer


def stream_events(post: StreamRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
    """Send a request and yield the events of its response; failures become events.

    A cancel takes effect at once, also while the server sends nothing: another thread waits for
    the response, and the connection of a response is shut down.
    """
    if cancel.is_requested:
        yield interrupted()
        return
    response = _open(post, cancel)
    if isinstance(response, Failed):
        yield response
        return
    unsubscribe = cancel.on_request(lambda: _abort(response))
    events = attempt_each(f"read the answer of {post.provider.name}", _read(post, response, cancel))
    last: ProviderEvent | None = None
    try:
        for event in events:
            last = invalid_response(post.provider) if isinstance(event, Failure) else event
            yield last
            if isinstance(last, Reply | Failed):
                return
    finally:
        unsubscribe()
        if isinstance(last, Reply):
            # The end of the body is not waited for, but a connection is reused only after it.
            daemon_threads("hermes-provider").run(lambda: _finish(post, response, events))
        else:
            response.close()


def _open(post: StreamRequest, cancel: Cancel) -> httpx2.Response | Failed:
    """Send a request; the response as soon as its headers have arrived, or why there is none."""
    result: Future[httpx2.Response | Failed] = Future()

    def send() -> None:
        name = post.provider.name
        response = attempt(f"send a request to {name}", lambda: _send(post, cancel))
        if isinstance(response, Failure):
            response = invalid_response(post.provider)
        if result.set_running_or_notify_cancel():
            result.set_result(response)
        elif isinstance(response, httpx2.Response):
            response.close()

    unsubscribe = cancel.on_request(result.cancel)
    daemon_threads("hermes-provider").run(send)
    try:
        return result.result()
    except CancelledError:
        return interrupted()
    finally:
        unsubscribe()


def _send(post: StreamRequest, cancel: Cancel) -> httpx2.Response | Failed:
    headers = {**post.headers, **STREAM_HEADERS}
    try:
        request = post.client.build_request("POST", post.url, content=post.body, headers=headers)
        return post.client.send(request, stream=True)
    except REQUEST_ERRORS as error:
        return _request_failure(post.provider, error, cancel)


def _read(
    post: StreamRequest, response: httpx2.Response, cancel: Cancel
) -> Iterator[ProviderEvent]:
    try:
        if response.status_code != 200:
            yield _http_error(post.provider, response)
        elif response.headers.get("content-type", "").startswith(OTHER_FORMATS):
            yield from _other_format(post, response)
        else:
            yield from post.read(_lines(response.iter_raw()))
    except REQUEST_ERRORS as error:
        yield _request_failure(post.provider, error, cancel)


def _finish(post: StreamRequest, response: httpx2.Response, events: Iterator[object]) -> None:
    """Read what is left of a body; the connection is kept for the next request."""
    for _ in events:
        pass
    response.close()
    if post.client.is_closed:  # meanwhile: nothing else closes a connection that is returned now
        response.extensions["network_stream"].close()


def _request_failure(provider: Provider, error: Exception, cancel: Cancel) -> Failed:
    if isinstance(error, httpx2.TimeoutException):
        is_connect = isinstance(error, httpx2.ConnectTimeout)
        return timed_out(provider, CONNECT_SECONDS if is_connect else SILENCE_SECONDS)
    if isinstance(error, httpx2.ConnectError):
        return unreachable(provider, str(error) or type(error).__name__)
    log.info("connection to %s lost: %r", provider.name, error)
    return interrupted() if cancel.is_requested else connection_lost(provider.name)


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    """The lines of a body that arrives in chunks."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def endpoint(base_url: str, path: str) -> httpx2.URL:
    """The address of an operation of an API."""
    return httpx2.URL(f"{base_url.rstrip('/')}/{path}")


def encode(body: Mapping[str, Any]) -> bytes:
    """A body as JSON; halves of characters, which servers refuse, are replaced."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return whole_characters(json.dumps(body, ensure_ascii=False)).encode()


def client_for(base_url: str, owner: object) -> httpx2.Client:
    """Create a client for an endpoint; connections are reused between requests.

    It is closed at the latest when *owner* is deleted. A server on this machine is never reached
    through the proxy of the environment.
    """
    try:
        address = httpx2.URL(base_url.rstrip("/") + "/")
    except httpx2.InvalidURL as error:
        raise ConfigError(f"{base_url!r} is not a URL: {error}. {ANOTHER_ADDRESS}") from error
    client = httpx2.Client(
        base_url=address,
        limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS),
        timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        verify=ssl_context(),
        trust_env=not is_loopback(base_url),
        headers={"User-Agent": USER_AGENT},
    )
    weakref.finalize(owner, client.close).atexit = False
    return client


@functools.cache
def ssl_context() -> ssl.SSLContext:
    """The trusted certificates; cached because loading takes 30 ms and a megabyte each time."""
    return httpx2.create_ssl_context()


def reopened(client: httpx2.Client, owner: object) -> httpx2.Client:
    """Return the client, or a new one if it was closed: a closed provider may be used again."""
    if not client.is_closed:
        return client
    return client_for(str(client.base_url), owner)


def _abort(response: httpx2.Response) -> None:
    """Shut the connection down, which wakes the thread that reads the response."""
    stream = response.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _http_error(provider: Provider, response: httpx2.Response) -> Failed:
    response.read()
    return http_failure(error_report(response), provider)


def _other_format(post: StreamRequest, response: httpx2.Response) -> Iterator[ProviderEvent]:
    """A response that is not a stream of events: a whole answer, or a failure."""
    response.read()
    report = error_report(response)
    kind = response.headers.get("content-type", "").partition(";")[0]
    is_json = kind == "application/json"
    if is_json and (answer := parse_object(response.text)) and not answer.get("error"):
        yield from post.read_whole(answer)
    elif is_json and response.text.lstrip().startswith(EVENT_STARTS):
        yield from post.read(iter(response.text.split("\n")))
    elif is_json and '"error"' in response.text:  # some servers report errors with status 200
        yield http_failure(report._replace(status=400), post.provider)
    else:
        yield invalid_response(post.provider, f"{kind} instead of a stream of events")


def error_report(response: httpx2.Response) -> ErrorReport:
    """What an error response reports; its body has been read."""
    headers = response.headers
    request_id = next((headers[name] for name in REQUEST_ID_HEADERS if name in headers), "")
    text, code = _error_texts(response)
    return ErrorReport(response.status_code, text, code, request_id, retry_seconds(headers))


def _error_texts(response: httpx2.Response) -> tuple[str, str]:
    """The message of an error response, without the JSON around it, and its code."""
    with contextlib.suppress(ValueError):
        data = response.json()
        if isinstance(data, list) and data:  # Google sends a list with one error
            data = data[0]
        if isinstance(data, dict):
            error = data.get("error", data)
            if not isinstance(error, dict):
                return str(error), ""
            codes = (error.get(name) for name in ("code", "type", "status"))
            code = " ".join(str(each) for each in codes if each)
            message = error.get("message") or error.get("detail") or data.get("detail")
            if message:
                return " ".join(filter(None, (str(message), _details_of(error)))), code
    is_page = "html" in response.headers.get("content-type", "")
    return _page_title(response.text) if is_page else response.text, ""


def _details_of(error: JsonObject) -> str:
    """What an error states beside its message."""
    raw = text_in(object_in(error, "metadata"), "raw")  # OpenRouter: of the provider behind it
    delays = [text_in(each, "retryDelay") for each in objects_in(error, "details")]  # Google
    delay = next(filter(None, delays), "")
    is_stated = not delay or pause_in(text_in(error, "message")) is not None
    return " ".join(filter(None, (raw, "" if is_stated else f"Please retry in {delay}.")))


def _page_title(page: str) -> str:
    """The title of an HTML page, which proxies send as an error."""
    match = PAGE_TITLE.search(page)
    return match[1].strip() if match else "an HTML page"


def retry_seconds(headers: Mapping[str, str]) -> float | None:
    """The pause that a provider requests: seconds, milliseconds, or a date."""
    milliseconds = headers.get("retry-after-ms", "")
    if _is_number(milliseconds):
        return float(milliseconds) / 1000
    text = headers.get("retry-after", "")
    if _is_number(text):
        return float(text)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


class DaemonThreads:
    """A pool that starts a thread when all others are busy; it never makes work wait."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[queue.SimpleQueue[Callable[[], object]]] = []

    def run(self, work: Callable[[], object]) -> None:
        """Run *work* in a thread; a failure is logged."""
        try:
            jobs = self._idle.pop()
        except IndexError:
            jobs = queue.SimpleQueue()
            serve = functools.partial(self._serve, jobs)
            threading.Thread(target=serve, name=self._name, daemon=True).start()
        jobs.put(work)

    def _serve(self, jobs: queue.SimpleQueue[Callable[[], object]]) -> None:
        while True:
            attempt(self._name, jobs.get())
            if len(self._idle) >= MAX_IDLE_THREADS:
                return
            self._idle.append(jobs)


@functools.lru_cache(maxsize=8)
def _of_process(name: str, _pid: int) -> DaemonThreads:
    return DaemonThreads(name)


def daemon_threads(name: str) -> DaemonThreads:
    """The pool of this process with this name; a forked process has its own."""
    return _of_process(name, os.getpid())


class StreamedData(NamedTuple):
    """The JSON of an event, and whether the server calls it an error."""

    value: Any
    is_error: bool


def events_in_lines(lines: Iterator[str]) -> Iterator[StreamedData]:
    """The events of a stream, until its end mark; raises ValueError for what is not JSON.

    The JSON of an event may have several lines. Some servers send errors that are not events.
    """
    held, is_error = "", False
    for line in lines:
        name, colon, data = line.strip().removeprefix("\ufeff").partition(":")
        data = data.strip()
        if not name:
            if held and not colon:
                raise ValueError(held)
            is_error = is_error and bool(colon)
        elif name == "event":
            is_error = data == "error"
        elif name in {"data", "error"} or name.startswith("{"):
            data = f"{name}:{data}" if name.startswith("{") else data
            if data.strip('"') == STREAM_END:
                yield StreamedData(STREAM_END, is_error=False)
                return
            held = f"{held}\n{data}".strip()
            with contextlib.suppress(ValueError):  # there may be more of it
                yield StreamedData(load_chunk(held), is_error or name == "error")
                held = ""


def load_chunk(data: str) -> Any:
    """The JSON value of an event; raises ValueError. Halves of a character are kept."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


Event = TypeVar("Event", bound="Mapping[str, object]")

STREAM_END: Final = "[DONE]"
# The status codes of the errors that a stream reports by name.
STATUS_BY_NAME: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "api_error": 500,
    "server_error": 500,
    "internal": 500,
    "internal_error": 500,
    "unavailable": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
}
MIN_OUTPUT_TOKENS: Final = 1_024
INPUT_MARGIN: Final = 1.4  # the number of tokens of a request is only estimated
MAX_LESSONS: Final = 6  # of one request
# Error messages that name the limit of a model.
LIMIT_PATTERNS: Final = (
    re.compile(r"max_tokens: [\d,]+ > ([\d,]+)"),
    re.compile(r"supports at most ([\d,]+) completion tokens"),
    re.compile(
        r"max(?:imum)?(?: allowed)?(?: number of)? (?:output|completion) tokens\D{1,40}([\d,]+)"
    ),
)


class HttpProvider(Provider, ABC):
    """A model behind an HTTP API that streams its answers."""

    def __init__(
        self, model: str, base_url: str, path: str, headers: dict[str, str], rules: Rules
    ) -> None:
        self.model = model
        self.base_url = base_url
        self.author = Author(urlsplit(base_url).netloc, model)
        self._headers = headers
        self._client = client_for(base_url, self)
        self._url = endpoint(base_url, path)
        self._lessons = LearnedRules(f"{base_url}#{model}")
        self.rules = self._lessons.applied_to(rules)
        self._shaper = Shaper(self.author)

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request; again if the server rejects it for a reason that teaches its rules."""
        if not cancel.is_requested:
            self._client = reopened(self._client, self)
        for _ in range(MAX_LESSONS):
            notice: str | None = None
            for event in self._send(request, cancel):
                notice = self._learn(event, request) if isinstance(event, Failed) else None
                if notice is None:
                    yield event
            if notice is None:
                return
            if notice:
                yield Notice(notice.format(model=self.model))
        yield from self._send(request, cancel)

    def _learn(self, failed: Failed, request: ModelRequest) -> str | None:
        """Learn from a refused request; the notice for the user, None if it teaches nothing."""
        limit = _learned_limit(failed, self.max_output)
        if limit:
            self.max_output = limit
            return ""
        lesson = lesson_of(self.rules, failed, request)
        if lesson is None:
            return None
        self.rules = self._lessons.add(lesson, self.rules)
        return lesson.notice

    def _send(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        reader = self.reader(cancel)
        body = self.body(request)
        post = StreamRequest(
            self, self._client, self._url, body, self._headers, reader.read, reader.read_whole
        )
        return stream_events(post, cancel)

    def shaped(self, request: ModelRequest) -> list[Message]:
        """The messages of a request as the provider accepts them."""
        has_tools = self.rules.has_tools and bool(request.tools)
        return self._shaper.shape(request.messages, self.rules, has_tools=has_tools)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @abstractmethod
    def body(self, request: ModelRequest) -> bytes:
        """The body of a request."""

    @abstractmethod
    def reader(self, cancel: Cancel) -> AnswerReader[Any]:
        """What reads one answer."""


class AnswerReader(ABC, Generic[Event]):
    """Assembles one streamed answer from its events."""

    def __init__(self, provider: HttpProvider, cancel: Cancel) -> None:
        self._provider = provider
        self._cancel = cancel
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, PartialCall] = {}
        self._characters = CharacterJoiner()
        self._finish = ""
        self._usage = Usage()
        self._cost: float | None = None
        self._is_complete = False

    def read(self, lines: Iterator[str]) -> Iterator[ProviderEvent]:
        """Convert the lines to events; the last one is a Reply or Failed."""
        lines = self._until_cut(lines)
        try:
            for data in events_in_lines(lines):
                if data.value == STREAM_END:
                    self._is_complete = True
                elif isinstance(data.value, dict):
                    event = cast("Event", data.value)
                    yield from self._handled(event, is_error=data.is_error)
        except ValueError:
            yield invalid_response(self._provider)
            return
        yield self._last_event()
        for _ in lines:  # a connection is reused only after the end of the body
            pass

    def read_whole(self, answer: JsonObject) -> Iterator[ProviderEvent]:
        """Convert a whole answer, sent although a stream was asked for."""
        for event in self.events_in(answer):
            yield from self._handled(event)
        yield self._last_event()

    def _handled(self, event: Event, *, is_error: bool = False) -> Iterable[ProviderEvent]:
        """What an event shows, or the failure that it reports, which is the last one."""
        failure = self._problem(event, is_error=is_error)
        return [failure] if failure else self.handle(event)

    def _until_cut(self, lines: Iterator[str]) -> Iterator[str]:
        """The lines; a connection that is lost after the end of the answer has lost nothing."""
        try:
            yield from lines
        except REQUEST_ERRORS:
            if not (self._is_complete or self._finish) or self._cancel.is_requested:
                raise

    @abstractmethod
    def events_in(self, answer: JsonObject) -> Iterable[Event]:
        """The events of a stream that would make up this answer."""

    @abstractmethod
    def other_format(self, event: Event) -> str:
        """The API that an event belongs to, if it is another one."""

    @abstractmethod
    def handle(self, event: Event) -> Iterable[ProviderEvent]:
        """Take in an event of the stream; what there is to show."""

    @abstractmethod
    def reply(self) -> Reply:
        """The answer, from all events."""

    def _problem(self, event: Event, *, is_error: bool) -> Failed | None:
        api = self.other_format(event)
        if api:
            return invalid_response(self._provider, f"it is in the format of {api}'s API")
        is_error |= "error" in {event.get("type"), event.get("object")}
        error = event.get("error") or (event if is_error else None)
        return self.stream_error(error) if error else None

    def tool_calls(self, finish: str) -> tuple[ToolCall, ...]:
        """The calls in their order, each with an ID of its own."""
        no_arguments = "" if finish == LENGTH_REASON else "{}"
        calls: dict[str, ToolCall] = {}
        for place, call in sorted(self._calls.items()):
            call_id = call.id or f"call_{place}"
            while call_id in calls:
                call_id += f"_{place}"
            arguments = call.arguments or no_arguments
            calls[call_id] = ToolCall(call_id, call.name, arguments, call.extra or None)
        return tuple(calls.values())

    def stream_error(self, error: object) -> Failed:
        """The failure that a stream reports, as if it were the status of the response."""
        facts: JsonObject = error if isinstance(error, dict) else {"message": str(error)}
        names = [str(facts.get(name) or "") for name in ("code", "type", "status")]
        codes = [int(name) for name in names if name.isdigit()]
        known = [STATUS_BY_NAME[name.lower()] for name in names if name.lower() in STATUS_BY_NAME]
        status = next((code for code in [*codes, *known] if 400 <= code < 600), 0)
        message = " ".join(filter(None, (text_in(facts, "message"), _details_of(facts))))
        report = ErrorReport(status or 400, message, " ".join(filter(None, names)))
        if status or is_context_error(message):
            return http_failure(report, self._provider)._replace(usage=self._usage)
        return Failed(
            FailureKind.SERVER,
            f"Error from {self._provider.name}{report.quoted}",
            TRY_AGAIN,
            is_transient=True,
            usage=self._usage,
        )

    def _last_event(self) -> ProviderEvent:
        if self._cancel.is_requested:
            return interrupted()._replace(usage=self._usage, cost=self._cost)
        if self._is_complete or self._finish:
            return self.reply()
        return connection_lost(self._provider.name)._replace(usage=self._usage)


def within_window(limit: int, request: ModelRequest, window: int) -> int:
    """The limit as far as the context window has room for it beside the request."""
    room = int(window - request.input_tokens * INPUT_MARGIN)
    return min(limit, max(room, MIN_OUTPUT_TOKENS))


def _learned_limit(event: Failed, sent: int) -> int:
    """The lower output limit that a rejected request names; 0 if it names none."""
    if event.status_code != 400:
        return 0
    for pattern in LIMIT_PATTERNS:
        match = pattern.search(event.message)
        if match is not None:
            limit = int(match[1].replace(",", ""))
            return limit if 0 < limit < sent else 0
    return 0
