"""The lifecycle of a conversation: random sequences of changes follow the table."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hermes_core.clock import ManualClock
from hermes_core.errors import IllegalChangeError
from hermes_state import SessionDB
from hermes_state.delivery.routes import Route
from hermes_state.sessions.lifecycle import (
    KIND_OF_REASON,
    TRANSITIONS,
    AnnouncedBoundary,
    LifecycleChange,
    SessionState,
    state_of,
    transition,
)
from hermes_state.upkeep.crash_recovery import release_process

PAGE = Path(__file__).parents[2] / "docs/explanation/life-of-a-conversation.md"
IDS = [f"s{number}" for number in range(5)]
PLACES = ["p0", "p1"]
REASONS = sorted({*KIND_OF_REASON, "shutdown", "cli_close"} - {"compression", "branched"})


def test_a_transition_that_is_not_in_the_table_is_refused() -> None:
    for state, change in set(itertools.product(SessionState, LifecycleChange)) - set(TRANSITIONS):
        with pytest.raises(IllegalChangeError, match="cannot"):
            transition(state, change)


def test_the_documentation_shows_the_table() -> None:
    row = re.compile(r"^\| (\w+) \| (\w+) \| (\w+) \| ([\w ]+) \|$", re.MULTILINE)
    rows = row.findall(PAGE.read_text())
    shown = {(state, change): (to, announced) for state, change, to, announced in rows}
    expected = {
        (str(state), str(change)): (str(step.to), str(step.announced))
        for (state, change), step in TRANSITIONS.items()
    }
    assert shown == expected


class LifecycleMachine(RuleBasedStateMachine):
    """Conversations of two places and a terminal, changed at random, with crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        os.environ["HERMES_HOME"] = self.folder.name
        self.db = SessionDB(Path(self.folder.name) / "state.db", clock=ManualClock(1000.0))
        self.states: dict[str, SessionState] = dict.fromkeys(IDS, SessionState.ABSENT)
        self.finals: dict[str, int] = dict.fromkeys(IDS, 0)
        self.epochs: dict[str, int] = dict.fromkeys(IDS, 0)
        self.owned: set[str] = set()
        self.routes: dict[str, str] = {}

    def teardown(self) -> None:
        self.db.close()
        self.folder.cleanup()

    # The model uses only the table

    def change(self, session_id: str, change: LifecycleChange) -> None:
        step = transition(self.states[session_id], change)
        self.states[session_id] = step.to
        self.finals[session_id] += step.announced is AnnouncedBoundary.FINAL
        self.epochs[session_id] += step.begins_epoch
        if step.to is not SessionState.OPEN:
            self.owned.discard(session_id)

    @initialize()
    def begin(self) -> None:
        self.create(IDS[0])

    @rule(session_id=st.sampled_from(IDS))
    def create(self, session_id: str) -> None:
        is_new = self.states[session_id] is SessionState.ABSENT
        self.db.create_session(session_id, "cli")
        self.change(session_id, LifecycleChange.BEGIN)
        if is_new:
            self.owned.add(session_id)

    @rule(session_id=st.sampled_from(IDS), reason=st.sampled_from(REASONS))
    def end(self, session_id: str, reason: str) -> None:
        self.db.end_session(session_id, reason)
        self.change(session_id, LifecycleChange.END)

    @rule(session_id=st.sampled_from(IDS))
    def reopen(self, session_id: str) -> None:
        was = self.states[session_id]
        self.db.reopen_session(session_id)
        self.change(session_id, LifecycleChange.REOPEN)
        if was is not SessionState.ABSENT and session_id not in self.routes.values():
            self.owned.add(session_id)  # the conversation of a chat has no participants

    def _route(self, place: str, session_id: str) -> Route:
        return Route(place, f"key-{place}", session_id, 1.0, {})

    @rule(place=st.sampled_from(PLACES), session_id=st.sampled_from(IDS))
    def route(self, place: str, session_id: str) -> None:
        """A first message, or a message to a conversation that was ended elsewhere."""
        if self.routes.get(place, session_id) != session_id:
            return
        self.db.routes.begin(self._route(place, session_id), "telegram", {})
        self._opened(session_id)
        self.routes[place] = session_id

    @rule(
        place=st.sampled_from(PLACES),
        session_id=st.sampled_from(IDS),
        reason=st.sampled_from(["session_reset", "idle", "daily", "session_switch", "handoff"]),
    )
    def move(self, place: str, session_id: str, reason: str) -> None:
        """`/new`, `/resume`, a reset by policy."""
        old = self.routes.get(place)
        if old is None or old == session_id:
            return
        self.db.routes.move(self._route(place, session_id), old, reason, "telegram", {})
        self.change(old, LifecycleChange.END)
        self._opened(session_id)
        self.routes[place] = session_id

    def _opened(self, session_id: str) -> None:
        is_new = self.states[session_id] is SessionState.ABSENT
        self.change(session_id, LifecycleChange.BEGIN if is_new else LifecycleChange.REOPEN)
        self.owned.discard(session_id)

    @rule(place=st.sampled_from(PLACES))
    def prune(self, place: str) -> None:
        session_id = self.routes.pop(place, None)
        if session_id is not None:
            self.db.routes.drop([self._route(place, session_id)])
            self.change(session_id, LifecycleChange.END)

    @precondition(lambda self: SessionState.OPEN in self.states.values())
    @rule(data=st.data())
    def compact(self, data: Any) -> None:
        session_id = data.draw(
            st.sampled_from([i for i in IDS if self.states[i] is SessionState.OPEN])
        )
        self.db.archive_and_compact(session_id, [{"role": "user", "content": "summary"}])
        self.change(session_id, LifecycleChange.PASS)

    @rule(session_id=st.sampled_from(IDS))
    def append(self, session_id: str) -> None:
        """A message of any front end; after the end, it is stored with a resume event."""
        if self.states[session_id] is not SessionState.ABSENT:
            self.db.append_message(session_id, "user", "hello")
            self.change(session_id, LifecycleChange.REOPEN)

    @rule(session_id=st.sampled_from(IDS))
    def purge(self, session_id: str) -> None:
        if session_id in self.routes.values():
            return
        self.db.trash.purge(session_id)
        self.change(session_id, LifecycleChange.END)
        self.change(session_id, LifecycleChange.PURGE)

    @rule()
    def crash(self) -> None:
        """The process dies; the next one settles what it held."""
        process_id = self.db.identity.process_id
        self.db.engine.write(lambda tx: release_process(tx, process_id, self.db.ids))
        for session_id in sorted(self.owned):
            self.change(session_id, LifecycleChange.END)

    # Invariants

    @invariant()
    def states_agree(self) -> None:
        states = {i: self.db.engine.read(lambda r, i=i: state_of(r, i)) for i in IDS}
        assert states == self.states

    @invariant()
    def every_end_was_announced_once(self) -> None:
        events = self.db.boundaries.recent(limit=10_000)
        finals = [(event.session_id, event.epoch) for event in events if event.is_final]
        assert len(finals) == len(set(finals))
        for session_id in IDS:
            count = sum(1 for final_id, _ in finals if final_id == session_id)
            assert count == self.finals[session_id]

    @invariant()
    def every_resumption_was_announced_once(self) -> None:
        events = self.db.boundaries.recent(limit=10_000)
        reopened = Counter(event.session_id for event in events if event.reason == "reopened")
        assert reopened == Counter({name: n for name, n in self.epochs.items() if n})

    @invariant()
    def every_place_is_routed_to_its_conversation(self) -> None:
        assert {route.place: route.session_id for route in self.db.routes.all()} == self.routes


@pytest.mark.timeout(600)
def test_random_changes_follow_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", os.environ.get("HERMES_HOME", ""))
    is_full = os.environ.get("HERMES_CAMPAIGN") == "full"
    LifecycleMachine.TestCase.settings = settings(
        max_examples=300 if is_full else 50,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    case = LifecycleMachine.TestCase("runTest")
    case.runTest()
