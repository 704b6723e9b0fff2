"""Delivering session boundaries to plugins from the rows in which they are kept.

An event is given to every plugin that listens until each has taken it: at least once,
with an id that tells repeats apart, longer apart after each failure, and not for ever.
What a plugin has taken is noted at once, so that another one's failure does not make it
hear the same thing again.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from hermes_core.config.probe import may_be_set
from hermes_plugin_host.callbacks import LIMIT_SECONDS

if TYPE_CHECKING:
    from hermes_plugin_host.callbacks import Callback
    from hermes_plugin_host.manager import PluginManager

log = logging.getLogger(__name__)

FACTS: Final = (
    "event_id", "kind", "reason", "old_session_id", "new_session_id", "session_id", "epoch",
    "platform", "occurred_at",
)  # fmt: skip
PAUSE_SECONDS: Final = 0.5


class KeepsBoundaries(Protocol):
    """What delivery asks of the store."""

    def claim_boundaries(self, limit: int = 50) -> list[dict[str, Any]]: ...
    def taken_by(self, event_id: str) -> set[str]: ...
    def note_taken(self, event_id: str, consumer: str) -> None: ...
    def settle_boundary(self, event_id: str, error: str | None = None) -> None: ...


class Call(NamedTuple):
    """One hook to call for an event."""

    hook: str
    facts: dict[str, Any]


def calls_for(event: dict[str, Any]) -> list[Call]:
    """The hooks that an event is announced by, in order."""
    calls = []
    platform = event["platform"]
    if event["is_final"]:
        facts = {"session_id": event["session_id"], "platform": platform}
        calls.append(Call("on_session_finalize", facts))
    if event["new_session_id"] and event["kind"] in ("new", "idle", "daily"):
        facts = {"session_id": event["new_session_id"], "platform": platform}
        calls.append(Call("on_session_reset", facts))
    calls.append(Call("on_session_boundary", {name: event[name] for name in FACTS}))
    return calls


class Delivery:
    """Gives events to plugins."""

    def __init__(
        self,
        store: KeepsBoundaries,
        manager: PluginManager,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> None:
        self._store = store
        self._manager = manager
        self._limit_seconds = limit_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def deliver_due(self) -> int:
        """Deliver what is due now; how many events were settled or postponed."""
        count = 0
        # One at a time: a claim counts as an attempt, and a plugin that ends the process
        # must not use up the attempts of events that were never begun.
        while not self._stop.is_set() and (events := self._store.claim_boundaries(limit=1)):
            for event in events:
                self._deliver(event)
            count += len(events)
        return count

    def _deliver(self, event: dict[str, Any]) -> None:
        taken = self._store.taken_by(event["event_id"])
        failures = []
        for facts, callback in self._turns(event):
            if callback.consumer in taken:
                continue
            outcome = callback.call(facts, self._limit_seconds)
            if outcome.is_failure:
                failures.append(f"{callback.consumer}: {outcome.error}")
            else:
                self._store.note_taken(event["event_id"], callback.consumer)
        self._store.settle_boundary(event["event_id"], "; ".join(failures) or None)

    def _turns(self, event: dict[str, Any]) -> list[tuple[dict[str, Any], Callback]]:
        """Who is called with what, in order; with each attempt another plugin begins.

        Whoever comes after a plugin that ends the process would never be called otherwise.
        """
        turns = [
            (call.facts, callback)
            for call in calls_for(event)
            for callback in self._manager.callbacks(call.hook)
        ]
        again = event["attempts"] - 1
        if again < 1:
            return turns
        plugins = list(dict.fromkeys(callback.plugin for _facts, callback in turns))
        first = again % max(len(plugins), 1)
        order = [*plugins[first:], *plugins[:first]]
        return sorted(turns, key=lambda turn: order.index(turn[1].plugin))

    def start(self) -> None:
        """Go on delivering in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="hermes-delivery", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the event at hand."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.deliver_due()
            self._stop.wait(PAUSE_SECONDS)


def deliver_due(store: KeepsBoundaries) -> None:
    """Tell the user's plugins what is due now; whoever has none pays nothing."""
    if not may_be_set("plugins.enabled"):
        return
    import hermes_plugin_host  # noqa: PLC0415 - it imports this module

    Delivery(store, hermes_plugin_host.active()).deliver_due()
