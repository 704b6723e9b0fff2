"""What providers behind an HTTP API share: sending a request, and reading a streamed answer."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from hermes_agent.events import Failed, FailureKind
from hermes_agent.messages import PartialCall, Usage
from hermes_agent.providers.base import Provider
from hermes_agent.providers.failures import (
    TRY_AGAIN,
    ErrorReport,
    connection_lost,
    context_exceeded,
    interrupted,
    invalid_response,
    is_context_error,
)
from hermes_agent.providers.http_stream import (
    StreamRequest,
    client_for,
    endpoint,
    load_chunk,
    reopened,
    stream_events,
)
from hermes_core.json_values import CharacterJoiner, text_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hermes_agent.events import ProviderEvent, Reply
    from hermes_agent.messages import ModelRequest
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonObject

Event = TypeVar("Event", bound="Mapping[str, object]")

STREAM_END: Final = "[DONE]"
OVERLOADED: Final = "overloaded_error"
MIN_OUTPUT_TOKENS: Final = 1_024
INPUT_MARGIN: Final = 1.4  # the number of tokens of a request is only estimated
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

    def __init__(self, model: str, base_url: str, path: str, headers: dict[str, str]) -> None:
        self.model = model
        self.base_url = base_url
        self._headers = headers
        self._client = client_for(base_url, self)
        self._url = endpoint(base_url, path)

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request; once more if the server rejects it and names its output limit."""
        if not cancel.is_requested:
            self._client = reopened(self._client, self)
        for event in self._send(request, cancel):
            limit = _learned_limit(event, self.max_output) if isinstance(event, Failed) else 0
            if limit:
                self.max_output = limit
                yield from self._send(request, cancel)
                return
            yield event

    def _send(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        read = self.reader(cancel).read
        body = self.body(request)
        post = StreamRequest(self, self._client, self._url, body, self._headers, read)
        return stream_events(post, cancel)

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

    def __init__(self, provider: Provider, cancel: Cancel) -> None:
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
        for line in lines:
            if not line.startswith("data:"):
                continue
            data = line[5:].strip()
            if data == STREAM_END:
                self._is_complete = True
                break
            try:
                event: Event = load_chunk(data)
            except ValueError:
                yield invalid_response(self._provider)
                return
            if failure := self._problem(event):
                yield failure
                return
            yield from self.handle(event)
        yield self._last_event()
        for _ in lines:  # a connection is reused only after the end of the body
            pass

    @abstractmethod
    def other_format(self, event: Event) -> str:
        """The API that an event belongs to, if it is another one."""

    @abstractmethod
    def handle(self, event: Event) -> Iterable[ProviderEvent]:
        """Take in an event of the stream; what there is to show."""

    @abstractmethod
    def reply(self) -> Reply:
        """The answer, from all events."""

    def _problem(self, event: Event) -> Failed | None:
        api = self.other_format(event)
        if api:
            return invalid_response(self._provider, f"it is in the format of {api}'s API")
        error = event.get("error")
        return self._stream_error(error) if error else None

    def _stream_error(self, error: object) -> Failed:
        facts: JsonObject = error if isinstance(error, dict) else {"message": str(error)}
        message = text_in(facts, "message")
        if is_context_error(message):
            failed = context_exceeded(self._provider.model, ErrorReport(400, message))
            return failed._replace(usage=self._usage)
        return Failed(
            FailureKind.SERVER,
            f"Error from {self._provider.name}: {message.rstrip('.')}.",
            TRY_AGAIN,
            is_transient=text_in(facts, "type") == OVERLOADED,
            usage=self._usage,
        )

    def _last_event(self) -> ProviderEvent:
        if self._cancel.is_requested:
            return interrupted()._replace(usage=self._usage, cost=self._cost)
        if self._is_complete:
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
