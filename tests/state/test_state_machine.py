"""Whatever is done in whatever order, the store agrees with a model of a few lists."""

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

LIVE, UNDONE, COMPACTED = (1, 0), (0, 0), (0, 1)


@dataclass(eq=False)
class Row:
    role: str
    content: str
    state: tuple[int, int] = LIVE
    is_summary: bool = False  # nobody said it


@dataclass
class Talk:
    """What the model knows of one session."""

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
        if self.in_trash:  # somebody goes on with it
            self.in_trash = False
            if self.was_open:
                self.reason = None

    def undo_from(self, first: Row) -> None:
        taken = [row for row in self.rows[self.rows.index(first) :] if row.state == LIVE]
        if taken:
            for row in taken:
                row.state = UNDONE
            self.undone.append((len(self.rows), taken))


class StoreAgainstModel(RuleBasedStateMachine):
    """One store file, opened by one process after another."""

    sessions = Bundle("sessions")
    identities = Bundle("identities")

    @initialize(make=st.sampled_from([None, make_schema_16, make_schema_26]))
    def begin(self, make) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "state.db"
        if make is not None:
            make(self.path)
        self.clock = ManualClock()
        self.model: dict[str, Talk] = {}
        self.seen: dict[tuple[str, str], str] = {}
        self.generation = 0
        self.db = self.open()

    def open(self) -> SessionDB:
        """A process that will be found dead by the next one."""
        db = SessionDB(self.path, clock=self.clock)
        self.generation += 1
        name = f"generation-{self.generation}"
        db.identity = db.identity._replace(process_id=name, pid=2**22 + 1, birth="1")
        return db

    @rule(target=sessions, source=st.sampled_from(["cli", "telegram"]))
    def create(self, source: str) -> str:
        session_id = f"s{len(self.model)}"
        self.db.create_session(session_id, source)
        self.model[session_id] = Talk()
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
        talk = self.model[session]
        users = talk.prompts()
        self.db.undo(session, count)
        if len(users) >= count:
            talk.undo_from(users[-count])

    @rule(session=sessions)
    def redo(self, session: str) -> None:
        if session not in self.model:
            return
        talk = self.model[session]
        self.db.redo(session)
        if talk.undone and talk.undone[-1][0] == len(talk.rows):
            for row in talk.undone.pop()[1]:
                row.state = LIVE

    @rule(session=sessions)
    def retry(self, session: str) -> None:
        if session not in self.model:
            return
        talk = self.model[session]
        users = talk.prompts()
        question = self.db.retry(session)
        assert (question is None) == (not users)
        if users:
            after = [r for r in talk.rows[talk.rows.index(users[-1]) + 1 :] if r.state == LIVE]
            if after:
                talk.undo_from(after[0])

    @rule(session=sessions, text=st.text(min_size=1))
    def compact(self, session: str, text: str) -> None:
        if session not in self.model:
            return
        talk = self.model[session]
        # What says the same as a message is that message, kept.
        kept = next((r for r in talk.live() if (r.role, r.content) == ("user", text)), None)
        self.db.archive_and_compact(session, [{"role": "user", "content": text}])
        for row in talk.live():
            row.state = COMPACTED
        talk.append("user", text)
        talk.rows[-1].is_summary = kept is None or kept.is_summary
        talk.lifetime -= 1  # a summary is nothing that anybody said

    @rule(target=sessions, session=sessions)
    def branch(self, session: str) -> str:
        if session not in self.model or self.model[session].in_trash:
            return session
        new_id = f"s{len(self.model)}"
        self.db.branch_session(session, new_id)
        copies = [replace(row) for row in self.model[session].rows]
        self.model[new_id] = Talk(rows=copies)
        return new_id

    @rule(session=sessions, reason=st.sampled_from(["cli_close", "idle"]))
    def end(self, session: str, reason: str) -> None:
        self.db.end_session(session, reason)
        talk = self.model.get(session)
        if talk is not None and talk.reason is None:
            talk.reason, talk.is_owned = reason, False

    @rule(session=sessions)
    def reopen(self, session: str) -> None:
        talk = self.model.get(session)
        if talk is None or talk.in_trash:
            return
        self.db.reopen_session(session)
        if talk.reason is not None:
            talk.reason, talk.is_owned = None, True

    @rule(session=sessions)
    def delete(self, session: str) -> None:
        talk = self.model.get(session)
        assert self.db.delete_session(session) == (talk is not None and not talk.in_trash)
        if talk is not None and not talk.in_trash:
            talk.in_trash, talk.was_open = True, talk.reason is None
            if talk.was_open:
                talk.reason, talk.is_owned = "deleted", False

    @rule(session=sessions)
    def restore(self, session: str) -> None:
        talk = self.model.get(session)
        if talk is None or not talk.in_trash:
            return
        self.db.restore_session(session)
        talk.in_trash = False
        if talk.was_open:
            talk.reason = None

    @rule(text=st.text(min_size=1), session=sessions)
    def crash(self, text: str, session: str) -> None:
        talk = self.model.get(session)
        if talk is not None:
            draft = self.db.draft(session)
            draft.write(text)
            draft.flush()
            talk.append("assistant", text)
        self.db.close()
        self.db = self.open()
        for one in self.model.values():
            if one.is_owned and one.reason is None:
                one.reason = "crashed"
            one.is_owned = False

    @rule(seconds=st.integers(-5000, 5000))
    def set_clock(self, seconds: int) -> None:
        self.clock.jump(seconds)

    @invariant()
    def every_row_is_there_in_its_state(self) -> None:
        for session, talk in getattr(self, "model", {}).items():
            rows = self.db.get_messages(session, include_inactive=True)
            found = [(m["role"], m["content"], (m["active"], m["compacted"])) for m in rows]
            assert found == [(row.role, row.content, row.state) for row in talk.rows]

    @invariant()
    def ends_and_lists_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        listed = {row["id"] for row in self.db.list_sessions_rich(limit=-1)}
        assert listed == {name for name, talk in self.model.items() if not talk.in_trash}
        for session, talk in self.model.items():
            assert self.db.get_session(session)["end_reason"] == talk.reason
        lifetime = sum(talk.lifetime for talk in self.model.values())
        assert self.db.stats()["lifetime_messages"] == lifetime

    def teardown(self) -> None:
        if not hasattr(self, "db"):
            return
        self.db.close()
        bad = [f for f in examine(self.path) if f.status == "failed" or f.name == "session index"]
        assert all(finding.status in ("ok", "skipped") for finding in bad), bad
        self.folder.cleanup()


TestStoreAgainstModel = pytest.mark.slow(StoreAgainstModel.TestCase)
StoreAgainstModel.TestCase.settings = settings(
    max_examples=size(50, 2000),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
