"""Sessions: creation, end, reopening, boundary events, titles and lookup."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import AmbiguousSessionError, SessionNotFoundError, TitleError

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB


def test_a_session_has_the_columns_it_was_created_with(db: SessionDB) -> None:
    db.create_session(
        "s", "telegram", model="m", model_config={"max_tokens": 5}, system_prompt="Be kind",
        user_id="u", cwd="/x", session_key="agent:main:telegram:dm:1", chat_id="1",
    )  # fmt: skip
    row = db.get_session("s")
    assert row["source"] == "telegram"
    assert json.loads(row["model_config"]) == {"max_tokens": 5}
    assert row["system_prompt"] == "Be kind"
    assert row["session_key"] == "agent:main:telegram:dm:1"
    assert row["chat_id"] == "1"


def test_creating_a_session_again_fills_only_missing_columns(db: SessionDB) -> None:
    db.create_session("s", "cli", model="first")
    db.create_session("s", "tui", model="second", cwd="/x")
    row = db.get_session("s")
    assert (row["source"], row["model"], row["cwd"]) == ("cli", "first", "/x")


def test_the_first_end_reason_is_kept(db: SessionDB, session: str) -> None:
    db.end_session(session, "cli_close")
    db.end_session(session, "agent_close")
    assert db.get_session(session)["end_reason"] == "cli_close"


def test_an_end_is_announced_once_per_epoch(db: SessionDB, session: str) -> None:
    db.end_session(session, "new_session", new_session_id="next")
    db.end_session(session, "new_session")
    finals = [e for e in db.boundaries.recent(session) if e.is_final]
    assert len(finals) == 1
    assert (finals[0].kind, finals[0].reason) == ("new", "new_session")
    assert (finals[0].old_session_id, finals[0].new_session_id) == (session, "next")
    db.reopen_session(session)
    db.end_session(session, "idle")
    epochs = [e.epoch for e in db.boundaries.recent(session) if e.is_final]
    assert sorted(epochs) == [0, 1]


def test_reopening_clears_the_end(db: SessionDB, session: str) -> None:
    db.end_session(session, "cli_close")
    db.reopen_session(session)
    row = db.get_session(session)
    assert (row["ended_at"], row["end_reason"]) == (None, None)


def test_ending_a_missing_session_announces_nothing(db: SessionDB) -> None:
    db.end_session("nobody", "cli_close")
    assert db.boundaries.recent() == []


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("session_reset", "new"), ("idle", "idle"), ("daily", "daily"), ("suspended", "suspend"),
        ("resumed_other", "resume"), ("branched", "branch"), ("handoff", "handoff"),
        ("compression", "compaction"), ("idle_timeout", "expiry"), ("pruned", "prune"),
        ("tui_shutdown", "shutdown"), ("crashed", "crash"),
    ],
)  # fmt: skip
def test_every_kind_of_end_has_its_boundary(
    db: SessionDB, session: str, reason: str, kind: str
) -> None:
    db.end_session(session, reason)
    assert db.boundaries.recent(session)[0].kind == kind


@pytest.mark.engines
def test_boundaries_are_delivered_retried_and_given_up(
    db: SessionDB, session: str, clock: ManualClock
) -> None:
    db.end_session(session, "idle")
    seen = set()
    for _ in range(20):
        clock.advance(3600)
        for event in db.boundaries.claim():
            seen.add(event.event_id)
            db.boundaries.settle(event.event_id, error="hook failed")
    event = db.boundaries.recent(session)[0]
    assert len(seen) == 1
    assert (event.state, event.attempts, event.error) == ("dead", 8, "hook failed")


def test_a_delivered_boundary_is_not_claimed_again(db: SessionDB, session: str) -> None:
    db.end_session(session, "idle")
    (event,) = db.boundaries.claim()
    assert db.boundaries.claim() == []
    db.boundaries.settle(event.event_id)
    assert db.boundaries.claim() == []
    assert db.boundaries.recent(session)[0].state == "delivered"


def test_a_users_title_is_never_overwritten(db: SessionDB, session: str) -> None:
    assert db.set_session_title(session, "guess", source="llm")
    assert db.set_session_title(session, "mine")
    assert not db.set_session_title(session, "better guess", source="llm")
    assert db.get_session_title(session) == "mine"
    assert db.set_session_title(session, "still mine")


@pytest.mark.engines
def test_titles_are_clean_and_unique(db: SessionDB, session: str) -> None:
    other = db.create_session("other", "cli")
    db.set_session_title(session, "  my\u200b \n title ")
    assert db.get_session_title(session) == "my title"
    with pytest.raises(ValueError, match="taken"):
        db.set_session_title(other, "my title")
    with pytest.raises(TitleError, match="too long"):
        db.set_session_title(other, "x" * 101)
    assert db.set_session_title("nobody", "x") is False


def test_a_numbered_title_resolves_to_the_latest(db: SessionDB) -> None:
    for session_id, title in (("a", "blog"), ("b", "blog #2"), ("c", "blog #10"), ("d", "blog %")):
        db.create_session(session_id, "cli")
        db.set_session_title(session_id, title)
    assert db.resolve_session_by_title("blog") == "c"
    assert db.get_next_title_in_lineage("blog #2") == "blog #11"
    assert db.get_next_title_in_lineage("new") == "new"
    assert db.get_session_by_title("blog #2")["id"] == "b"


@pytest.mark.engines
def test_a_session_is_resolved_by_id_prefix_or_title(db: SessionDB, clock: ManualClock) -> None:
    for session_id in ("20260101_120000_aaaaaa", "20260101_120000_bbbbbb", "20260202_x"):
        clock.advance(1)
        db.create_session(session_id, "cli")
    db.set_session_title("20260202_x", "Fix the cart")
    assert db.lookup.resolve("20260101_120000_a") == "20260101_120000_aaaaaa"
    assert db.lookup.resolve("Fix the cart") == "20260202_x"
    assert db.lookup.resolve("Fix") == "20260202_x"
    assert db.lookup.resolve("last") == "20260202_x"
    with pytest.raises(AmbiguousSessionError, match="bbbbbb"):
        db.lookup.resolve("20260101")
    for unknown in ("nothing", "", "%"):
        with pytest.raises(SessionNotFoundError):
            db.lookup.resolve(unknown)
    assert db.resolve_session_id("20260202") == "20260202_x"
    assert db.resolve_session_id("2026") is None


@pytest.mark.engines
def test_usage_is_added_or_set(db: SessionDB, session: str) -> None:
    db.update_token_counts(session, input_tokens=10, output_tokens=5, estimated_cost_usd=0.5)
    db.update_token_counts(session, input_tokens=10, model="m-2", api_call_count=1)
    row = db.get_session(session)
    assert (row["input_tokens"], row["output_tokens"], row["estimated_cost_usd"]) == (20, 5, 0.5)
    db.update_token_counts(session, absolute=True, input_tokens=7)
    assert db.get_session(session)["input_tokens"] == 7
    assert db.usage_totals()["input_tokens"] == 7


@pytest.mark.engines
def test_archiving_and_pinning_are_stored(db: SessionDB, session: str) -> None:
    assert db.set_session_pinned(session)
    assert db.set_session_archived(session)
    assert db.list_sessions_rich() == []
    (row,) = db.list_sessions_rich(archived_only=True)
    assert row["pinned"] == 1
    assert db.set_session_pinned("nobody") is False


def test_configuration_keeps_the_markers_of_lineage(db: SessionDB) -> None:
    db.create_session("s", "cli", model_config={"_branched_from": "p", "max_tokens": 1})
    db.update_session_meta("s", {"max_tokens": 2}, model="m")
    assert json.loads(db.get_session("s")["model_config"]) == {
        "_branched_from": "p",
        "max_tokens": 2,
    }


@pytest.mark.engines
def test_one_compaction_at_a_time(db: SessionDB, session: str, clock: ManualClock) -> None:
    assert db.try_acquire_compression_lock(session, "one")
    assert not db.try_acquire_compression_lock(session, "two")
    assert db.get_compression_lock_holder(session) == "one"
    clock.advance(301)
    assert db.try_acquire_compression_lock(session, "two")
    db.release_compression_lock(session, "one")
    assert db.get_compression_lock_holder(session) == "two"


@pytest.mark.engines
def test_a_handoff_is_claimed_once(db: SessionDB, session: str) -> None:
    assert db.request_handoff(session, "telegram")
    assert not db.request_handoff(session, "matrix")
    assert [row["id"] for row in db.list_pending_handoffs()] == [session]
    assert db.claim_handoff(session)
    assert not db.claim_handoff(session)
    assert db.fail_handoff(session, "no such chat")
    assert db.get_handoff_state(session) == {
        "state": "failed",
        "platform": "telegram",
        "error": "no such chat",
    }


@pytest.mark.engines
def test_notes_are_stored_by_key(db: SessionDB) -> None:
    db.set_meta("k", "1")
    db.set_meta("k", "2")
    assert db.get_meta("k") == "2"
    assert db.get_meta("none") is None


@pytest.mark.engines
def test_statistics_count_every_source(db: SessionDB, session: str) -> None:
    db.create_session("m", "matrix")
    db.append_message(session, "user", "x")
    stats = db.statistics.stats()
    assert (stats.sessions, stats.messages, stats.open_sessions) == (2, 1, 2)
    assert stats.by_source["matrix"] == (1, 0)
    assert db.session_count() == 2
    assert db.session_count("matrix") == 1
    assert db.session_count_by_source() == {"cli": 1, "matrix": 1}
