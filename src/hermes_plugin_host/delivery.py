"""Delivers stored session boundary events to plugins.

An event is delivered at least once to every registered callback, with an ID that identifies
repeats, with backoff after failures and a limited number of attempts. Each delivery is
recorded at once, so that the failure of one plugin does not repeat it for the others.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from hermes_core.isolate import attempt
from hermes_plugin_host.callbacks import CALLBACK_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from hermes_plugin_host.callbacks import Callback
    from hermes_state.delivery.boundaries import BoundaryEvent

HookFacts = dict[str, str | int | float | None]

log = logging.getLogger(__name__)

POLL_INTERVAL_SECONDS: Final = 0.5


class BoundaryStore(Protocol):
    """The store methods that delivery needs."""

    def claim(self, limit: int = 50) -> list[BoundaryEvent]: ...
    def consumers_of(self, event_id: str) -> set[str]: ...
    def record_delivery(self, event_id: str, consumer: str) -> None: ...
    def settle(self, event_id: str, error: str | None = None) -> None: ...


class CallbackSource(Protocol):
    """Where the callbacks of a hook come from."""

    def callbacks(self, hook: str) -> list[Callback]: ...


class HookCall(NamedTuple):
    """One hook to call for an event."""

    hook: str
    facts: HookFacts


def calls_for(event: BoundaryEvent) -> list[HookCall]:
    """The hooks to call for an event, in order."""
    calls = []
    platform = event.platform
    if event.is_final:
        facts: HookFacts = {"session_id": event.session_id, "platform": platform}
        calls.append(HookCall("on_session_finalize", facts))
    if event.is_reset:
        facts = {"session_id": event.new_session_id, "platform": platform}
        calls.append(HookCall("on_session_reset", facts))
    boundary: HookFacts = {
        "event_id": event.event_id,
        "kind": event.kind,
        "reason": event.reason,
        "old_session_id": event.old_session_id,
        "new_session_id": event.new_session_id,
        "session_id": event.session_id,
        "epoch": event.epoch,
        "platform": platform,
        "occurred_at": event.occurred_at,
    }
    calls.append(HookCall("on_session_boundary", boundary))
    return calls


class Delivery:
    """Delivers events to plugins."""

    def __init__(
        self,
        store: BoundaryStore,
        manager: CallbackSource,
        timeout_seconds: float = CALLBACK_TIMEOUT_SECONDS,
    ) -> None:
        self._store = store
        self._manager = manager
        self._timeout_seconds = timeout_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def deliver_due(self) -> int:
        """Deliver all due events; return how many were settled or postponed."""
        count = 0
        # One at a time: a claim counts as an attempt, and a plugin that kills the process
        # must not use up the attempts of events that were not started.
        while not self._stop.is_set() and (events := self._store.claim(limit=1)):
            for event in events:
                self._deliver(event)
            count += len(events)
        return count

    def _deliver(self, event: BoundaryEvent) -> None:
        taken = self._store.consumers_of(event.event_id)
        failures = []
        for facts, callback in self._ordered_calls(event):
            if callback.consumer in taken:
                continue
            outcome = callback.call(facts, self._timeout_seconds)
            if outcome.is_failure:
                failures.append(f"{callback.consumer}: {outcome.error}")
            else:
                self._store.record_delivery(event.event_id, callback.consumer)
        self._store.settle(event.event_id, "; ".join(failures) or None)

    def _ordered_calls(self, event: BoundaryEvent) -> list[tuple[HookFacts, Callback]]:
        """The callbacks with their arguments; each attempt starts with another plugin.

        Otherwise the plugins after one that kills the process would never be called.
        """
        calls = [
            (hook_call.facts, callback)
            for hook_call in calls_for(event)
            for callback in self._manager.callbacks(hook_call.hook)
        ]
        retries = event.attempts - 1
        if retries < 1:
            return calls
        plugins = list(dict.fromkeys(callback.plugin for _facts, callback in calls))
        first = retries % max(len(plugins), 1)
        order = [*plugins[first:], *plugins[:first]]
        return sorted(calls, key=lambda call: order.index(call[1].plugin))

    def start(self) -> None:
        """Deliver in a background thread."""
        self._thread = threading.Thread(target=self._run, name="hermes-delivery", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current event."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stop.is_set():
            attempt("deliver boundary events", self.deliver_due)
            self._stop.wait(POLL_INTERVAL_SECONDS)
