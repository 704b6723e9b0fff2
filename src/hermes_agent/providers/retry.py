"""Retries with exponential backoff and jitter, and fallback to other models.

The text of an answer that was cut off is replaced by that of the next attempt; after the last one
the turn keeps it and reports the failure. A provider that requests a longer pause than
`llm.max_wait_seconds` is not waited for: the error states how long it would take. One that has
failed permanently is left alone for five minutes while another one answers.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import Failed, FailureKind, ReasoningDelta, Reply, Retrying, TextDelta
from hermes_agent.messages import Usage, image_in
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
MAX_EMPTY_ANSWERS: Final = 2
REST_SECONDS: Final = 300.0  # in which a provider that has failed is not asked
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
        self.selected = self.current = providers[0]
        self._failed_at: dict[int, float] = {}  # shared by copies

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request to each provider in turn; yield exactly one Reply or Failed at the end."""
        request = _with_images(request, self._media)
        candidates = self._candidates()
        for provider in candidates:
            self.current = provider
            is_last = provider is candidates[-1]
            attempt = yield from self._try_provider(provider, request, cancel)
            failure = attempt.failure
            if failure is None:
                self._failed_at.pop(id(provider), None)
                return
            if failure.kind not in FALLBACK_KINDS:
                yield failure
                return
            self._failed_at[id(provider)] = time.monotonic()
            if is_last:
                yield failure
                return
            following = candidates[candidates.index(provider) + 1]
            yield Retrying(
                failure.message,
                0.0,
                following.model,
                failure.usage,  # that of the provider that failed
                drops_text=attempt.has_streamed,
            )

    def _candidates(self) -> list[Provider]:
        """Those that have not failed permanently in the last minutes; if there are none, all."""
        now = time.monotonic()
        alive = [
            each
            for each in self._providers
            if now - self._failed_at.get(id(each), -REST_SECONDS) >= REST_SECONDS
        ]
        return alive or list(self._providers)

    def copy(self) -> FallbackProvider:
        """The same providers for concurrent requests."""
        copied = FallbackProvider(
            self._providers,
            max_attempts=self._max_attempts,
            backoff=self._backoff,
            max_wait_seconds=self._max_wait_seconds,
            media=self._media,
        )
        copied._failed_at = self._failed_at
        return copied

    def close(self) -> None:
        """Close all providers."""
        for provider in self._providers:
            provider.close()

    def _try_provider(
        self, provider: Provider, request: ModelRequest, cancel: Cancel
    ) -> Generator[ProviderEvent, None, _Attempt]:
        """Send a request with retries; yields the reply, or returns the failure."""
        has_streamed = False
        for attempt in range(1, self._max_attempts + 1):
            last: ProviderEvent | None = None
            for event in events_of(provider, request, cancel):
                last = event
                if isinstance(event, Failed | Reply):
                    break
                has_streamed |= isinstance(event, TextDelta | ReasoningDelta) and bool(event.text)
                yield event
            if isinstance(last, Reply) and not (last.is_empty and attempt < MAX_EMPTY_ANSWERS):
                yield last
                return _Attempt(None)
            failed = last if isinstance(last, Failed) else _empty(provider, last)
            final = self._final_failure(failed, attempt)
            if final is not None:
                return _Attempt(final, has_streamed)
            pause = self._pause_seconds(attempt, failed)
            yield Retrying(
                failed.message,
                pause,
                usage=failed.usage,
                attempt=attempt + 1,
                max_attempts=self._max_attempts,
                drops_text=has_streamed,
            )
            has_streamed = False
            if cancel.wait(pause):
                return _Attempt(interrupted())
        return _Attempt(interrupted())

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


class _Attempt(NamedTuple):
    """How the attempts at one provider ended; without a failure, its reply was yielded."""

    failure: Failed | None
    has_streamed: bool = False


def _empty(provider: Provider, last: ProviderEvent | None) -> Failed:
    """The failure of an answer without text and calls, or of a stream without an end."""
    usage = last.usage if isinstance(last, Reply) else Usage()
    reason = f"{provider.model} returned an empty answer."
    return Failed(FailureKind.BROKEN, reason, is_transient=True, usage=usage)


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
    return request._replace(messages=[_with_media(message, media) for message in request.messages])


def _with_media(message: Message, media: MediaStore | None) -> Message:
    content: object = message.get("content")
    reference = image_in(message)
    if reference:
        image = {"type": "image_url", "image_url": {"url": reference}}
        content = [{"type": "text", "text": content}, image]
    if isinstance(content, str):
        return message
    return {**message, "content": embed_media(content, media)}
