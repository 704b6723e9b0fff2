"""The order of deliveries to plugins, and stopping them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_plugin_host.callbacks import Callback
from hermes_plugin_host.delivery import Delivery
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("a", "b", "c")


class Plugins:
    """Three plugins with callbacks for every hook; those in `failing` fail."""

    def __init__(self) -> None:
        self.hook_calls: list[str] = []
        self.failing: set[str] = set()

    def callbacks(self, hook: str) -> list[Callback]:
        return [Callback(name, hook, self._function(f"{name}:{hook[11:]}")) for name in NAMES]

    def _function(self, label: str):
        def record(**_fields: object) -> None:
            self.hook_calls.append(label)
            if label[0] in self.failing:
                raise ValueError(label)

        return record


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        for name in ("one", "two"):
            store.create_session(name, "cli")
        yield store


def make_due(db: SessionDB) -> None:
    db.engine.write(lambda tx: tx.run("UPDATE hermes_boundary SET due_at = 0"))


def test_the_first_attempt_calls_each_hook_for_all_plugins_in_order(db: SessionDB) -> None:
    plugins = Plugins()
    db.end_session("one", "done")
    Delivery(db.boundaries, plugins).deliver_due()  # type: ignore[arg-type]
    assert plugins.hook_calls == [
        "a:finalize", "b:finalize", "c:finalize", "a:boundary", "b:boundary", "c:boundary",
    ]  # fmt: skip


def test_each_attempt_starts_with_another_plugin(db: SessionDB) -> None:
    plugins = Plugins()
    plugins.failing = set(NAMES)
    delivery = Delivery(db.boundaries, plugins)  # type: ignore[arg-type]
    db.end_session("one", "done")
    orders = []
    for _ in range(4):
        plugins.hook_calls.clear()
        delivery.deliver_due()
        make_due(db)
        orders.append("".join(label[0] for label in plugins.hook_calls))
    assert orders == ["abcabc", "bbccaa", "ccaabb", "aabbcc"]
    assert plugins.hook_calls[:2] == ["a:finalize", "a:boundary"]


def test_an_event_that_was_never_started_loses_no_attempt(db: SessionDB) -> None:
    plugins = Plugins()
    delivery = Delivery(db.boundaries, plugins)  # type: ignore[arg-type]
    for name in ("one", "two"):
        db.end_session(name, "done")
    delivery.stop()
    assert delivery.deliver_due() == 0
    assert plugins.hook_calls == []
    assert {event.attempts for event in db.boundaries.recent()} == {0}
