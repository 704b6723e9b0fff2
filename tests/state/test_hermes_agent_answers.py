"""Methods that answer as those of hermes-agent do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import TitleError
from hermes_state import SessionDB
from state.foreign_files import write_as_hermes_agent
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB(hermes_home / "state.db") as store:
        yield store


def test_a_continued_conversation_gets_the_name_of_its_first_row(db: SessionDB) -> None:
    db.create_session("first", "cli")
    db.set_session_title("first", "Long talk")
    db.end_session("first", "compression")
    db.create_session("second", "cli", parent_session_id="first")
    db.set_session_title("second", "Long talk #2")
    db.create_session("other", "cli")
    assert db.set_session_title("second", "Long talk")
    assert db.get_session_title("second") == "Long talk"
    assert db.get_session_title("first") is None
    with pytest.raises(TitleError, match="taken by session second"):
        db.set_session_title("other", "Long talk")


def test_an_empty_session_with_a_title_or_children_is_kept(db: SessionDB) -> None:
    db.create_session("titled", "cli")
    db.set_session_title("titled", "A plan")
    db.create_session("parent", "cli")
    db.create_session("child", "cli", parent_session_id="parent")
    db.create_session("empty", "cli")
    results = {name: db.delete_session_if_empty(name) for name in ("titled", "parent", "empty")}
    assert results == {"titled": False, "parent": False, "empty": True}


def test_an_archived_empty_session_is_kept(db: SessionDB) -> None:
    for name in ("archived", "empty"):
        db.create_session(name, "cli")
        db.end_session(name, "cli_close")
    db.set_session_archived("archived", True)
    assert db.delete_empty_sessions() == 1
    assert db.get_session("archived") is not None


@pytest.mark.parametrize("value", ["x", "", "nan"])
def test_an_unreadable_time_of_house_keeping_means_that_it_is_due(
    db: SessionDB, value: str
) -> None:
    assert db.wait_for_index(30)  # house-keeping of the opening, in the background
    db.set_meta("last_auto_prune", value)
    assert db.retention.is_house_keeping_due()
    assert not db.retention.keep_house().is_skipped
    assert not db.retention.is_house_keeping_due()


def test_usage_of_a_side_task_does_not_change_the_model(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.update_token_counts("s", model="large", input_tokens=10)
    db.update_token_counts("s", model="small", input_tokens=1)
    row = db.get_session("s")
    assert row is not None
    assert (row["model"], row["input_tokens"]) == ("large", 11)


def test_a_lineage_that_another_program_completed_later_is_listed_right(
    hermes_home: Path,
) -> None:
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        db.create_session("parent", "cli")
        db.append_message("parent", "user", "hello")
        db.create_session("child", "cli", parent_session_id="parent")
    end = "UPDATE sessions SET ended_at = 6, end_reason = 'compression' WHERE id = 'parent'"
    write_as_hermes_agent(path, [(end, ()), ("DELETE FROM state_meta", ())])
    with SessionDB(path) as db:
        wait_until(lambda: [row["id"] for row in db.list_sessions_rich()] == ["child"])


# Names and positions of parameters


def test_parameters_have_the_names_of_hermes_agent(db: SessionDB) -> None:
    db.ensure_session("s", "cli", "a/model")
    ids = [db.append_message("s", "user", f"message {n}") for n in range(4)]
    db.update_token_counts("s", 5, 7)
    row = db.get_session("s")
    assert row is not None
    assert (row["model"], row["input_tokens"], row["output_tokens"]) == ("a/model", 5, 7)
    assert db.rewind_to_message("s", target_message_id=ids[2])["rewound_count"] == 2
    assert len(db.list_recent_user_messages("s", include_inactive=True)) == 4
    assert len(db.list_recent_user_messages("s")) == 2
    assert db.restore_rewound("s", since_message_id=ids[2]) == 2
    assert db.resolve_session_id(session_id_or_prefix="s") == "s"
    assert db.get_next_title_in_lineage(base_title="A plan") == "A plan"
    db.update_session_meta("s", model_config_json='{"max_tokens": 3}')
    assert '"max_tokens"' in str(db.get_session("s"))
    summary = [{"role": "user", "content": "summary"}]
    assert db.archive_and_compact("s", compacted_messages=summary) == 1


def test_the_folder_of_transcripts_is_accepted_and_left_alone(
    db: SessionDB, tmp_path: Path
) -> None:
    (tmp_path / "s.jsonl").write_text("a transcript")
    for name in ("s", "other"):
        db.create_session(name, "cli")
    assert db.delete_session_if_empty("s", sessions_dir=tmp_path)
    assert db.delete_session("other", tmp_path)
    assert db.delete_sessions(["s"], sessions_dir=tmp_path) == 0
    assert db.delete_empty_sessions(sessions_dir=tmp_path) == 0
    assert db.prune_empty_ghost_sessions(sessions_dir=tmp_path) == 0
    assert (tmp_path / "s.jsonl").exists()


def test_archived_sessions_are_counted_on_request(db: SessionDB) -> None:
    for name, source in (("a", "cli"), ("b", "cli"), ("c", "telegram")):
        db.create_session(name, source)
    db.append_message("c", "user", "hello")
    db.set_session_archived("b", True)
    assert db.session_count() == 2
    assert db.session_count(include_archived=True) == 3
    assert db.session_count(archived_only=True) == 1
    assert db.session_count(exclude_sources=["telegram"]) == 1
    assert db.session_count(min_message_count=1) == 1


def test_lists_take_further_arguments_by_position(db: SessionDB) -> None:
    db.create_session("a", "cli")
    db.append_message("a", "user", "hello")
    db.create_session("b", "cli")
    assert [row["id"] for row in db.list_sessions_rich(None, None, 20, 0, False, True, 1)] == ["a"]


def test_a_continued_conversation_is_found_by_the_id_of_its_first_row(db: SessionDB) -> None:
    db.create_session("root", "cli")
    db.end_session("root", "compression")
    db.create_session("tip", "cli", parent_session_id="root")
    assert [row["id"] for row in db.search_sessions_by_id("root")] == ["tip"]


# Rows around a message


def test_the_rows_around_a_message_are_counted_inside_the_window(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.create_session("other", "cli")
    ids = [db.append_message("s", "user", f"message {n}") for n in range(9)]
    foreign = db.append_message("other", "user", "elsewhere")
    view = db.get_messages_around("s", around_message_id=ids[1], window=3)
    assert [row["id"] for row in view["window"]] == ids[:5]
    assert (view["messages_before"], view["messages_after"]) == (1, 3)
    for anchor in (foreign, 999_999):
        nothing = {"window": [], "messages_before": 0, "messages_after": 0}
        assert db.get_messages_around("s", anchor) == nothing


def test_an_anchored_view_repeats_no_row_and_leaves_tools_out(db: SessionDB) -> None:
    db.create_session("s", "cli")
    roles = ["user", "assistant", "tool", "user", "assistant", "tool", "user", "assistant"]
    ids = [db.append_message("s", role, f"{role} {n}") for n, role in enumerate(roles)]
    view = db.get_anchored_view("s", around_message_id=ids[3], window=1, bookend=3)
    assert [row["id"] for row in view["window"]] == ids[3:5]
    assert [row["id"] for row in view["bookend_start"]] == ids[:2]
    assert [row["id"] for row in view["bookend_end"]] == ids[6:8]
    complete = db.get_anchored_view("s", ids[3], window=1, bookend=3, keep_roles=None)
    assert [row["id"] for row in complete["window"]] == ids[2:5]
    assert [row["id"] for row in complete["bookend_end"]] == ids[5:8]
