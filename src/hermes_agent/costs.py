"""What requests cost: counted by the provider where it counts, estimated where it does not.

A request that failed or was cut off has been read and partly answered all the same. When
nobody says how much, it is estimated from what was sent and shown, and marked as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_agent.context.window import estimated, tokens_in
from hermes_agent.events import Failed, FailureKind, ReasoningDelta, Reply, Retrying, TextDelta
from hermes_agent.providers.known_models import is_on_this_machine, known

if TYPE_CHECKING:
    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest, Usage
    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.known_models import KnownModel
    from hermes_agent.providers.retry import FallbackProvider

MILLION: Final = 1_000_000
# The server had begun to work on it.
UNDER_WAY: Final = frozenset({FailureKind.CUT, FailureKind.TIMEOUT})
FREE: Final = frozenset({"local", "script"})


class Meter:
    """Counts one request, with all its tries."""

    def __init__(
        self, keeping: ConversationStore, patient: FallbackProvider, request: ModelRequest
    ) -> None:
        self._keeping = keeping
        self._patient = patient
        self._request = request
        self._shown: list[str] = []

    def see(self, event: ProviderEvent) -> None:
        """Something came; a try that failed is counted at once."""
        if isinstance(event, TextDelta | ReasoningDelta):
            self._shown.append(event.text)
        elif isinstance(event, Retrying) and any(event.usage):
            self._spend(event.usage, None, is_guess=False)

    def settle(self, last: Reply | Failed) -> Usage:
        """The request is over; its tokens, which are counted now."""
        usage = self._completed(last.usage) if self._is_uncounted(last) else last.usage
        is_guess = usage != last.usage
        if any(usage) or last.cost is not None:
            self._spend(usage, last.cost, is_guess=is_guess)
        return usage

    def _is_uncounted(self, last: Reply | Failed) -> bool:
        """Whether more was read and written than the provider says: some never count."""
        if isinstance(last, Reply):
            return not any(last.usage)
        return bool(self._shown) or last.kind in UNDER_WAY

    def _completed(self, usage: Usage) -> Usage:
        """What was counted, and an estimate of what was not."""
        read = usage if usage.context else usage._replace(input=estimated(self._request))
        written = tokens_in("".join(self._shown))
        return read._replace(output=max(read.output, written))

    def _spend(self, usage: Usage, cost: float | None, *, is_guess: bool) -> None:
        provider = self._patient.current
        facts = bill(usage, provider, cost, is_guess=is_guess)
        self._keeping.spend(usage, provider.model, **facts)


def bill(
    usage: Usage, provider: Provider, cost: float | None = None, *, is_guess: bool = False
) -> dict[str, Any]:
    """What a session is told about the price of a request; no amount where none is known."""
    facts: dict[str, Any] = {
        "billing_provider": provider.name,
        "billing_base_url": provider.base_url,
    }
    if cost is not None:
        return {**facts, **_priced(cost, "actual", provider.name)}
    if provider.api_mode in FREE or is_on_this_machine(provider.base_url):
        # A guessed number of tokens is a guess, also where it costs nothing.
        return {**facts, **_priced(0.0, "estimated" if is_guess else "included", "local")}
    found = known(provider.base_url, provider.model)
    amount = price(usage, found) if found is not None else None
    if found is None or amount is None:
        return {**facts, "cost_status": "unknown", "cost_source": "none"}
    priced = _priced(amount, "estimated", "price table")
    return {**facts, **priced, "pricing_version": found.version}


def _priced(amount: float, status: str, source: str) -> dict[str, Any]:
    return {"estimated_cost_usd": amount, "cost_status": status, "cost_source": source}


def price(usage: Usage, model: KnownModel) -> float | None:
    """Dollars for *usage*; cached tokens cost what others do where no other price is known."""
    if model.input is None or model.output is None:
        return None
    read = model.input if model.cache_read is None else model.cache_read
    write = model.input if model.cache_write is None else model.cache_write
    total = (
        usage.input * model.input
        + usage.cache_read * read
        + usage.cache_write * write
        + usage.output * model.output
    )
    return total / MILLION
