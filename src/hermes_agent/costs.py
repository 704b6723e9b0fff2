"""Costs of requests: as reported by the provider, otherwise estimated.

A request that failed or was cut off still costs tokens. Without a report they are estimated
from the request and the streamed text, and marked as an estimate.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from hermes_agent.context.window import estimate_tokens, tokens_in
from hermes_agent.events import Failed, FailureKind, ReasoningDelta, Reply, Retrying, TextDelta
from hermes_core.config.file import ConfigFile
from hermes_core.config.price_entries import ALLOWED_PRICE, SECTION, OwnPrice, is_price, parse_price
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError
from hermes_core.known_models import (
    KnownModel,
    find_known_model,
    is_loopback,
    price,
)
from hermes_state.sessions import usage
from hermes_state.sessions.usage import AnswerUsage

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest, Usage
    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.turn_control import Cancel
    from hermes_state.engine.transaction import Tx

# Failures after the server has started to process the request.
STARTED_FAILURES: Final = frozenset({FailureKind.CUT, FailureKind.TIMEOUT})
OWN_PRICE: Final = "config.yaml"
MAX_NAME_CHARACTERS: Final = 200


class SettledUsage(NamedTuple):
    """The usage of a finished request and the change that records it; None if it cost nothing.

    `answer` is what is shown with the answer.
    """

    usage: Usage
    record: Callable[[Tx], None] | None
    answer: AnswerUsage | None = None

    def changes(self, uid: str) -> list[Callable[[Tx], object]]:
        """What records the request: in the session, and with the answer of this identity."""
        record, answer = self.record, self.answer
        if record is None or answer is None:
            return []
        return [record, lambda tx: usage.record_by_uid(tx, uid, answer)]


class UsageMeter:
    """Counts the usage of one request with all its attempts."""

    def __init__(
        self, store: ConversationStore, provider_chain: FallbackProvider, request: ModelRequest
    ) -> None:
        self._store = store
        self._provider_chain = provider_chain
        self._request = request
        self._streamed: list[str] = []
        self._started_at = time.monotonic()

    def observe(self, event: ProviderEvent) -> None:
        """Handle an event; a failed attempt is counted at once."""
        if isinstance(event, TextDelta | ReasoningDelta):
            self._streamed.append(event.text)
        elif isinstance(event, Retrying) and any(event.usage):
            self._store.write(self._change(event.usage, None, is_estimate=False))

    def settle(self, last: Reply | Failed) -> Usage:
        """Count and record the finished request; returns its usage."""
        settled = self.settled(last)
        if settled.record is not None:
            self._store.write(settled.record)
        return settled.usage

    def settled(self, last: Reply | Failed) -> SettledUsage:
        """Count the finished request; the caller records it."""
        usage = self._estimate(last.usage) if self._needs_estimate(last) else last.usage
        if not any(usage) and last.cost is None:
            return SettledUsage(usage, None)
        provider = self._provider_chain.current
        is_estimate = usage != last.usage
        fields = billing_fields(usage, provider, last.cost, is_estimate=is_estimate)
        change = self._store.usage_change(usage, provider.model, **fields)
        return SettledUsage(usage, change, self._answer(usage, provider.model, fields))

    def _answer(self, usage: Usage, model: str, billing: BillingFields) -> AnswerUsage:
        cost, status = billing.get("estimated_cost_usd"), billing.get("cost_status", "unknown")
        return AnswerUsage(model, *usage, cost, status, time.monotonic() - self._started_at)

    def _needs_estimate(self, last: Reply | Failed) -> bool:
        """Whether the provider's report is missing or incomplete."""
        if isinstance(last, Reply):
            return not any(last.usage)
        return bool(self._streamed) or last.kind in STARTED_FAILURES

    def _estimate(self, usage: Usage) -> Usage:
        """The reported usage, completed by an estimate."""
        read = usage if usage.context else usage._replace(input=estimate_tokens(self._request))
        written = tokens_in("".join(self._streamed))
        return read._replace(output=max(read.output, written))

    def _change(
        self, usage: Usage, cost: float | None, *, is_estimate: bool
    ) -> Callable[[Tx], None]:
        provider = self._provider_chain.current
        fields = billing_fields(usage, provider, cost, is_estimate=is_estimate)
        return self._store.usage_change(usage, provider.model, **fields)


class BillingFields(TypedDict, total=False):
    """Columns of a session about the cost of a request."""

    billing_provider: str
    billing_base_url: str
    estimated_cost_usd: float
    cost_status: str
    cost_source: str
    pricing_version: str


def billing_fields(
    usage: Usage, provider: Provider, cost: float | None = None, *, is_estimate: bool = False
) -> BillingFields:
    """The billing fields of a request; without an amount if no price is known."""
    fields: BillingFields = {
        "billing_provider": provider.name,
        "billing_base_url": provider.base_url,
    }
    if cost is not None:
        return {**fields, **_priced(cost, "actual", provider.name)}
    own = own_price(provider.model)
    if own is not None:
        known = KnownModel(0, own.input, own.cache_read, own.cache_write, own.output, OWN_PRICE)
        priced = _priced(price(usage, known) or 0.0, "estimated", OWN_PRICE)
        return {**fields, **priced, "pricing_version": OWN_PRICE}
    if provider.is_free or is_loopback(provider.base_url):
        # An estimated number of tokens is marked as such even if it is free.
        return {**fields, **_priced(0.0, "estimated" if is_estimate else "included", "local")}
    known_model = find_known_model(provider.base_url, provider.model)
    amount = price(usage, known_model) if known_model is not None else None
    if known_model is None or amount is None:
        return {**fields, "cost_status": "unknown", "cost_source": "none"}
    priced = _priced(amount, "estimated", "price table")
    return {**fields, **priced, "pricing_version": known_model.version}


def _priced(amount: float, status: str, source: str) -> BillingFields:
    return {"estimated_cost_usd": amount, "cost_status": status, "cost_source": source}


def complete(
    provider: FallbackProvider,
    request: ModelRequest,
    cancel: Cancel,
    store: ConversationStore | None,
) -> Reply | Failed:
    """Send a request and count its usage in a conversation, if any; returns the final event."""
    meter = None if store is None else UsageMeter(store, provider, request)
    for event in provider.stream(request, cancel):
        if isinstance(event, Reply | Failed):
            return event if meter is None else event._replace(usage=meter.settle(event))
        if meter is not None:
            meter.observe(event)
    return Failed(FailureKind.BROKEN, "The provider ended the stream without a reply.")


# Prices of the section `prices` of config.yaml


def own_prices(config: ConfigFile | None = None) -> dict[str, OwnPrice]:
    """The prices that the user has set, without invalid entries, which `hermes doctor` reports.

    They replace the prices of the providers' lists and of the table of known models, for example
    for a negotiated rate or for a server of one's own.
    """
    block = (config or ConfigFile.of_home()).block(SECTION)
    found = {name: parse_price(fields) for name, fields in block.items()}
    return {name: price for name, price in found.items() if price is not None}


def own_price(model: str) -> OwnPrice | None:
    """The price of a model, if the user has set one."""
    if not is_set(SECTION):
        return None
    try:
        return own_prices().get(model)
    except ConfigError:
        return None  # a turn continues; `hermes doctor` reports the section


def set_price(config: ConfigFile, model: str, price: OwnPrice) -> None:
    """Store the price of a model."""
    if not model.strip() or len(model) > MAX_NAME_CHARACTERS:
        raise ConfigError(f"The name of a model has 1 to {MAX_NAME_CHARACTERS} characters.")
    for name, value in price._asdict().items():
        if value is not None and not is_price(value):
            raise ConfigError(f"{name} {ALLOWED_PRICE}.")
    for name, value in price._asdict().items():
        config.set_option(SECTION, model, name, None if value is None else float(value))


def remove_price(config: ConfigFile, model: str) -> bool:
    """Use the known price of a model again; whether another one was set."""
    if model not in config.block(SECTION):
        return False
    config.set_entry(SECTION, model, None)
    return True
