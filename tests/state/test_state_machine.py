"""Random sequences of operations: the store agrees with a simple model."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from acceptance.campaign import size
from hermes_core.clock import ManualClock
from hermes_state import SessionDB
from hermes_state.upkeep.health import examine
from state.foreign_files import make_schema_16, make_schema_26
from support.identities import act_as_dead_process

LIVE, UNDONE, COMPACTED = (1, 0), (0, 0), (0, 1)


@dataclass(eq=False)
class Row:
    role: str
    content: str
    state: tuple[int, int] = LIVE
    is_summary: bool = False  # not a user message


@dataclass
class SessionModel:
    """The model of a session."""

    rows: list[Row] = field(default_factory=list)
    undone: list[tuple[int, list[Row]]] = field(default_factory=list)
    reason: str | None = None
    is_owned: bool = True
    in_trash: bool = False
    was_open: bool = False
    lifetime: int = 0

    def live(self) -> list[Row]:
        return [row for row in self.rows if row.state == LIVE]

    def prompts(self) -> list[Row]:
        return [row for row in self.live() if row.role == "user" and not row.is_summary]

    def append(self, role: str, content: str) -> None:
        self.rows.append(Row(role, content))
        self.lifetime += 1
        self.in_trash, self.reason = False, None  # appending restores and reopens it

    def undo_from(self, first: Row) -> None:
        undone = [row for row in self.rows[self.rows.index(first) :] if row.state == LIVE]
        if undone:
            for row in undone:
                row.state = UNDONE
            self.undone.append((len(self.rows), undone))


class StoreAgainstModel(RuleBasedStateMachine):
    """A store file that is opened by one process after another."""

    sessions = Bundle("sessions")
    identities = Bundle("identities")

    @initialize(make=st.sampled_from([None, make_schema_16, make_schema_26]))
    def begin(self, make) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "state.db"
        if make is not None:
            make(self.path)
        self.clock = ManualClock()
        self.model: dict[str, SessionModel] = {}
        self.seen: dict[tuple[str, str], str] = {}
        self.generation = 0
        self.db = self.open()

    def open(self) -> SessionDB:
        """Open the store as a process that the next one considers dead."""
        db = SessionDB(self.path, clock=self.clock)
        self.generation += 1
        name = f"generation-{self.generation}"
        act_as_dead_process(db, name)
        return db

    @rule(target=sessions, source=st.sampled_from(["cli", "telegram"]))
    def create(self, source: str) -> str:
        session_id = f"s{len(self.model)}"
        self.db.create_session(session_id, source)
        self.model[session_id] = SessionModel()
        return session_id

    @rule(target=identities)
    def new_identity(self) -> str:
        return self.db.ids.new()

    @rule(session=sessions, role=st.sampled_from(["user", "assistant", "tool"]), text=st.text())
    def append(self, session: str, role: str, text: str) -> None:
        if session in self.model:
            self.db.append_message(session, role, text)
            self.model[session].append(role, text)

    @rule(session=sessions, uid=identities, text=st.text())
    def append_with_identity(self, session: str, uid: str, text: str) -> None:
        if session not in self.model:
            return
        self.db.append_message(session, "user", text, uid=uid)
        if (session, uid) not in self.seen:
            self.seen[session, uid] = text
            self.model[session].append("user", text)

    @rule(session=sessions, count=st.integers(1, 3))
    def undo(self, session: str, count: int) -> None:
        if session not in self.model:
            return
        state = self.model[session]
        users = state.prompts()
        self.db.edits.undo(session, count)
        if users:
            state.undo_from(users[-min(count, len(users))])

    @rule(session=sessions)
    def redo(self, session: str) -> None:
        if session not in self.model:
            return
        state = self.model[session]
        self.db.edits.redo(session)
        if state.undone and state.undone[-1][0] == len(state.rows):
            for row in state.undone.pop()[1]:
                row.state = LIVE

    @rule(session=sessions)
    def retry(self, session: str) -> None:
        if session not in self.model:
            return
        state = self.model[session]
        users = state.prompts()
        question = self.db.edits.retry(session)
        assert (question is None) == (not users)
        if users:
            after = [r for r in state.rows[state.rows.index(users[-1]) + 1 :] if r.state == LIVE]
            if after:
                state.undo_from(after[0])

    @rule(session=sessions, text=st.text(min_size=1))
    def compact(self, session: str, text: str) -> None:
        if session not in self.model:
            return
        state = self.model[session]
        # A summary equal to a message counts as that message.
        repeated = next((r for r in state.live() if (r.role, r.content) == ("user", text)), None)
        self.db.archive_and_compact(session, [{"role": "user", "content": text}])
        for row in state.live():
            row.state = COMPACTED
        state.append("user", text)
        state.rows[-1].is_summary = repeated is None or repeated.is_summary
        state.lifetime -= 1  # a summary is not counted

    @rule(target=sessions, session=sessions)
    def branch(self, session: str) -> str:
        if session not in self.model or self.model[session].in_trash:
            return session
        new_id = f"s{len(self.model)}"
        self.db.edits.branch(session, new_id)
        copies = [replace(row) for row in self.model[session].rows]
        self.model[new_id] = SessionModel(rows=copies)
        return new_id

    @rule(session=sessions, reason=st.sampled_from(["cli_close", "idle"]))
    def end(self, session: str, reason: str) -> None:
        self.db.end_session(session, reason)
        state = self.model.get(session)
        if state is not None and state.reason is None:
            state.reason, state.is_owned = reason, False

    @rule(session=sessions)
    def reopen(self, session: str) -> None:
        state = self.model.get(session)
        if state is None or state.in_trash:
            return
        self.db.reopen_session(session)
        state.reason, state.is_owned = None, True

    @rule(session=sessions)
    def delete(self, session: str) -> None:
        state = self.model.get(session)
        assert self.db.delete_session(session) == (state is not None and not state.in_trash)
        if state is not None and not state.in_trash:
            state.in_trash, state.was_open = True, state.reason is None
            if state.was_open:
                state.reason, state.is_owned = "deleted", False

    @rule(session=sessions)
    def restore(self, session: str) -> None:
        state = self.model.get(session)
        if state is None or not state.in_trash:
            return
        self.db.trash.restore(session)
        state.in_trash = False
        if state.was_open:
            state.reason = None

    @rule(text=st.text(min_size=1), session=sessions)
    def crash(self, text: str, session: str) -> None:
        state = self.model.get(session)
        if state is not None:
            draft = self.db.messages.draft(session)
            draft.write(text)
            draft.flush()
            if not state.in_trash:  # what was deleted stays deleted
                state.append("assistant", text)
                state.reason, state.is_owned = "crashed", False
        self.db.close()
        self.db = self.open()
        for other in self.model.values():
            if other.is_owned and other.reason is None:
                other.reason = "crashed"
            other.is_owned = False

    @rule(seconds=st.integers(-5000, 5000))
    def set_clock(self, seconds: int) -> None:
        self.clock.jump(seconds)

    @invariant()
    def every_row_has_its_state(self) -> None:
        for session, state in getattr(self, "model", {}).items():
            rows = self.db.get_messages(session, include_inactive=True)
            actual = [(m["role"], m["content"], (m["active"], m["compacted"])) for m in rows]
            assert actual == [(row.role, row.content, row.state) for row in state.rows]

    @invariant()
    def ends_and_lists_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        listed = {row["id"] for row in self.db.list_sessions_rich(limit=-1)}
        assert listed == {name for name, state in self.model.items() if not state.in_trash}
        for session, state in self.model.items():
            assert self.db.get_session(session)["end_reason"] == state.reason
        lifetime = sum(state.lifetime for state in self.model.values())
        assert self.db.statistics.stats().lifetime_messages == lifetime

    def teardown(self) -> None:
        if not hasattr(self, "db"):
            return
        self.db.close()
        findings = [
            f for f in examine(self.path) if f.status == "failed" or f.name == "session index"
        ]
        assert all(finding.status in ("ok", "skipped") for finding in findings), findings
        self.folder.cleanup()


TestStoreAgainstModel = pytest.mark.slow(StoreAgainstModel.TestCase)
StoreAgainstModel.TestCase.settings = settings(
    max_examples=size(50, 2000),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
