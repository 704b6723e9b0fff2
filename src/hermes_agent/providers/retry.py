"""Retries with exponential backoff and jitter, and fallback to other models.

A request is not repeated once text was streamed, because the text would appear twice.
The turn keeps the partial answer and reports the failure. A provider that requests a longer pause
than `llm.max_wait_seconds` is not waited for: the error states how long it would take.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from hermes_agent.context.window import with_result_images
from hermes_agent.events import Failed, FailureKind, ReasoningDelta, Retrying, TextDelta
from hermes_agent.providers.failures import crashed, interrupted
from hermes_core.backoff import Backoff
from hermes_core.human_format import duration
from hermes_core.isolate import Failure, attempt_each
from hermes_core.media_store import embed_media

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.providers.base import Provider
    from hermes_agent.turn_control import Cancel
    from hermes_core.media_store import MediaStore

MAX_ATTEMPTS: Final = 4
MAX_WAIT_SECONDS: Final = 300.0  # of a pause that a provider requests
BACKOFF: Final = Backoff(0.5, 30.0)
# Failures after which the next model is tried.
FALLBACK_KINDS: Final = frozenset(
    {
        FailureKind.KEY,
        FailureKind.FORBIDDEN,
        FailureKind.MODEL,
        FailureKind.CREDIT,
        FailureKind.LIMIT,
        FailureKind.SERVER,
        FailureKind.UNREACHABLE,
        FailureKind.TIMEOUT,
        FailureKind.CUT,
        FailureKind.BROKEN,
    }
)


def events_of(provider: Provider, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
    """What a provider yields; an exception of its code is its last event."""

    def streamed() -> Iterator[ProviderEvent]:
        yield from provider.stream(request, cancel)

    for event in attempt_each(f"provider {provider.name}", streamed()):
        yield crashed(provider.name, event) if isinstance(event, Failure) else event


class FallbackProvider:
    """A chain of providers: the chosen one first, then its fallbacks."""

    def __init__(
        self,
        providers: Sequence[Provider],
        *,
        max_attempts: int = MAX_ATTEMPTS,
        backoff: Backoff = BACKOFF,
        jitter: random.Random | None = None,
        max_wait_seconds: float = MAX_WAIT_SECONDS,
        media: MediaStore | None = None,
    ) -> None:
        self._media = media
        self._max_wait_seconds = max_wait_seconds
        self._providers = providers
        self._max_attempts = max_attempts
        self._backoff = backoff
        self._jitter = jitter or random.Random()
        self.current = providers[0]

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request to each provider in turn; yield exactly one Reply or Failed at the end."""
        failure: Failed | None = None
        request = _with_images(request, self._media)
        for number, provider in enumerate(self._providers):
            if failure is not None:  # the usage is that of the previous provider
                yield Retrying(failure.message, 0.0, provider.model, failure.usage)
            self.current = provider
            failure = yield from self._try_provider(provider, request, cancel)
            is_last = number + 1 == len(self._providers)
            if failure is None:
                return
            if failure.kind not in FALLBACK_KINDS or is_last:
                yield failure
                return

    def copy(self) -> FallbackProvider:
        """The same providers for concurrent requests."""
        return FallbackProvider(
            self._providers,
            max_attempts=self._max_attempts,
            backoff=self._backoff,
            max_wait_seconds=self._max_wait_seconds,
            media=self._media,
        )

    def close(self) -> None:
        """Close all providers."""
        for provider in self._providers:
            provider.close()

    def _try_provider(
        self, provider: Provider, request: ModelRequest, cancel: Cancel
    ) -> Generator[ProviderEvent, None, Failed | None]:
        """Send a request with retries; return the failure, None if no fallback is to be tried."""
        for attempt in range(1, self._max_attempts + 1):
            is_streamed = False
            last: ProviderEvent | None = None
            for event in events_of(provider, request, cancel):
                last = event
                if isinstance(event, Failed):
                    break
                is_streamed |= isinstance(event, TextDelta | ReasoningDelta) and bool(event.text)
                yield event
            if not isinstance(last, Failed):
                return None
            if is_streamed:  # no retry and no fallback: the text would appear twice
                yield last._replace(is_transient=False)
                return None
            final = self._final_failure(last, attempt)
            if final is not None:
                return final
            pause = self._pause_seconds(attempt, last)
            yield Retrying(
                last.message,
                pause,
                usage=last.usage,
                attempt=attempt + 1,
                max_attempts=self._max_attempts,
            )
            if cancel.wait(pause):
                return interrupted()
        return None

    def _final_failure(self, failure: Failed, attempt: int) -> Failed | None:
        """The failure to report; None if the request is repeated."""
        if not failure.is_transient:
            return failure
        if (failure.retry_after or 0.0) > self._max_wait_seconds:
            return _too_long_a_pause(failure)
        if attempt == self._max_attempts:
            return failure._replace(message=f"{failure.message} Tried {attempt} times.")
        return None

    def _pause_seconds(self, attempt: int, failure: Failed) -> float:
        if failure.retry_after is not None:
            return failure.retry_after
        return self._backoff.jittered(attempt, self._jitter)


def _too_long_a_pause(failure: Failed) -> Failed:
    """A failure after which the user would have to wait too long."""
    pause = duration(failure.retry_after or 0.0)
    return failure._replace(
        message=f"{failure.message} The provider requests a pause of {pause}.",
        advice=f"Ask again in {pause} with /retry, or choose another model with /model. The "
        "setting llm.max_wait_seconds makes Hermes wait longer.",
        is_transient=False,
    )


def _with_images(request: ModelRequest, media: MediaStore | None) -> ModelRequest:
    """Embed the images of a request; stored messages hold only references to them."""
    if not request.may_have_images:
        return request
    messages = with_result_images(request.messages)
    return request._replace(messages=[_with_media(message, media) for message in messages])


def _with_media(message: Message, media: MediaStore | None) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return message
    return {**message, "content": embed_media(content, media)}
