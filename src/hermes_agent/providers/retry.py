"""Asking again: pauses that grow, a little at random, and other models when one will not do.

Once something was shown, the same question is not asked again: the text would come
twice. The turn keeps what there is and says that it broke off.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from hermes_agent.events import Failed, FailureKind, ReasoningDelta, Retrying, TextDelta
from hermes_agent.providers.base import interrupted
from hermes_core.backoff import Backoff
from hermes_core.media_store import embed_media

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest
    from hermes_agent.providers.base import Provider
    from hermes_agent.turn_control import Cancel

MAX_ATTEMPTS: Final = 4
BACKOFF: Final = Backoff(0.5, 30.0)
# What another model may do better.
FALLBACK_KINDS: Final = frozenset(
    {
        FailureKind.KEY,
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


class FallbackProvider:
    """A chain of providers; the first is the one that was chosen, the others step in."""

    def __init__(
        self,
        providers: Sequence[Provider],
        *,
        tries: int = MAX_ATTEMPTS,
        backoff: Backoff = BACKOFF,
        jitter: random.Random | None = None,
    ) -> None:
        self._providers = providers
        self._tries = tries
        self._backoff = backoff
        self._jitter = jitter or random.Random()
        self.current = providers[0]

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Ask until somebody answers; exactly one Reply or Failed at the end."""
        failure: Failed | None = None
        request = _with_images(request)
        for number, provider in enumerate(self._providers):
            if failure is not None:  # what it cost is still the former one's
                yield Retrying(str(failure), 0.0, provider.model, failure.usage)
            self.current = provider
            failure = yield from self._ask(provider, request, cancel)
            is_last = number + 1 == len(self._providers)
            if failure is None:
                return
            if failure.kind not in FALLBACK_KINDS or is_last:
                yield failure
                return

    def copy(self) -> FallbackProvider:
        """The same providers for concurrent requests."""
        return FallbackProvider(self._providers, tries=self._tries, backoff=self._backoff)

    def close(self) -> None:
        """Let go of all of them."""
        for provider in self._providers:
            provider.close()

    def _ask(
        self, provider: Provider, request: ModelRequest, cancel: Cancel
    ) -> Generator[ProviderEvent, None, Failed | None]:
        """Ask one provider, again if need be; why another is to be asked, None if none is."""
        for attempt in range(1, self._tries + 1):
            was_shown = False
            last: ProviderEvent | None = None
            for event in provider.stream(request, cancel):
                last = event
                if isinstance(event, Failed):
                    break
                was_shown |= isinstance(event, TextDelta | ReasoningDelta) and bool(event.text)
                yield event
            if not isinstance(last, Failed):
                return None
            if was_shown:  # neither here nor elsewhere: it would come twice
                yield last._replace(is_passing=False)
                return None
            if not last.is_passing or attempt == self._tries:
                return last
            pause = self._pause(attempt, last)
            yield Retrying(str(last), pause, usage=last.usage)
            if cancel.wait(pause):
                return interrupted()
        return None

    def _pause(self, attempt: int, failure: Failed) -> float:
        if failure.retry_after is not None:
            return min(failure.retry_after, self._backoff.max_seconds)
        return self._backoff.jittered(attempt, self._jitter)


def _with_images(request: ModelRequest) -> ModelRequest:
    """A request whose pictures are in it; messages hold only where they are kept."""
    messages = [
        {**message, "content": embed_media(message.get("content"))} for message in request.messages
    ]
    return request._replace(messages=messages)
