"""Tokens, cost and time of each answer: stored with it, shown in branches, exported, purged."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import PortableFileError
from hermes_state import SessionDB
from hermes_state.sessions import usage as answer_usage
from hermes_state.sessions.usage import AnswerUsage
from state.portable_histories import export

if TYPE_CHECKING:
    from pathlib import Path

USAGE = AnswerUsage("m-1", 120, 34, 1000, 7, 5, 0.0125, "actual", 2.5)
UNPRICED = USAGE._replace(cost_usd=None, cost_status="unknown")


def add_answer(db: SessionDB, session_id: str, text: str, usage: AnswerUsage) -> int:
    draft = db.messages.draft(session_id)
    draft.write(text)
    return draft.finish(also=[lambda tx: answer_usage.record_by_uid(tx, draft.uid, usage)])


@pytest.mark.engines
def test_usage_is_kept_with_an_answer_and_shown_in_a_branch_and_gone_after_a_purge(
    db: SessionDB, session: str
) -> None:
    db.append_message(session, "user", "hi")
    first = add_answer(db, session, "hello", USAGE)
    db.append_message(session, "user", "again")
    second = add_answer(db, session, "hello again", UNPRICED)
    assert db.usage.answers(session) == {first: USAGE, second: UNPRICED}
    assert db.transcripts.page(session).usage == {first: USAGE, second: UNPRICED}
    branch = db.edits.branch(session)
    copies = [row.id for row in db.messages.rows(branch) if row.role == "assistant"]
    assert db.usage.answers(branch) == dict(zip(copies, (USAGE, UNPRICED), strict=True))
    assert set(db.transcripts.page(branch).usage.values()) == {USAGE, UNPRICED}
    db.delete_session(session)
    assert db.trash.purge(session)
    count = db.engine.read(lambda r: r.value(f"SELECT count(*) FROM {answer_usage.TABLE}"))
    assert count == 0


@pytest.fixture
def exported(tmp_path: Path) -> bytes:
    """An export of a conversation with an answer whose usage is known."""
    with SessionDB(tmp_path / "old.db") as db:
        db.create_session("one", "cli")
        db.append_message("one", "user", "hi")
        add_answer(db, "one", "hello", USAGE)
        return export(db)


def test_usage_is_exported_and_imported(tmp_path: Path, exported: bytes) -> None:
    with SessionDB(tmp_path / "new.db") as new:
        new.portable.import_file(io.BytesIO(exported))
        assert list(new.usage.answers("one").values()) == [USAGE]
        assert export(new) == exported


@pytest.mark.parametrize(
    "changed", [{"input_tokens": -1}, {"model": None}, {"seconds": "x"}, {"cost_usd": "free"}]
)
def test_an_export_with_invalid_usage_is_refused_before_anything_is_stored(
    tmp_path: Path, exported: bytes, changed: dict[str, object]
) -> None:
    old = json.dumps(json.dumps(USAGE._asdict(), separators=(",", ":"), sort_keys=True))
    new = json.dumps(json.dumps({**USAGE._asdict(), **changed}))
    broken = exported.decode().replace(old, new).encode()
    assert broken != exported
    with (
        SessionDB(tmp_path / "new.db") as db,
        pytest.raises(PortableFileError, match="hermes_usage is not valid"),
    ):
        db.portable.import_file(io.BytesIO(broken))
