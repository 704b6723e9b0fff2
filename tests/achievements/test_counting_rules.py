"""Rules of counting, one test for each case that other programs get wrong.

The numbers are those of the list of weaknesses that this engine was built to avoid.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from achievements.life import DAY, HOUR, Life
from hermes_achievements.catalogue import load
from hermes_achievements.classification.model_names import maker, normal_model
from hermes_achievements.evaluation.standings import evaluate
from hermes_conversation import achievements
from hermes_core.errors import ScanError

if TYPE_CHECKING:
    from collections.abc import Callable


def test_1_a_success_that_mentions_no_error_is_no_error(life: Life) -> None:
    for _ in range(100):
        life.shell("ls")  # its result says "error": null
    values = life.values()
    assert values["total_successful_calls"] == 100
    assert "total_failed_calls" not in values


def test_2_an_error_at_the_start_of_an_escaped_line_is_found(life: Life) -> None:
    for _ in range(10):
        life.use("terminal", {"command": "x"}, {"output": "a\nerror: b", "exit_code": 1})
    assert life.total("failed_calls") == 10


def test_3_an_exit_code_without_an_error_word_is_a_failure(life: Life) -> None:
    for _ in range(100):
        life.shell("make", exit_code=2, output="nothing to see")
    assert life.total("failed_calls") == 100


def test_4_what_was_done_in_git_counts_and_what_was_said_about_it_does_not(life: Life) -> None:
    for _ in range(50):
        life.shell('git commit -m "x" && git push')
    life.say("git commit, git push, git commit")
    values = life.values()
    assert (values["total_commits"], values["total_pushes"]) == (50, 50)


def test_5_test_runs_are_counted_from_the_commands(life: Life) -> None:
    for _ in range(50):
        life.shell("python -m pytest -q")
    assert life.total("test_runs") == 50


def test_6_background_jobs_are_counted_from_the_arguments(life: Life) -> None:
    for _ in range(50):
        life.use("terminal", {"command": "serve", "background": True}, {"exit_code": 0})
    assert life.total("background_jobs") == 50


def test_7_words_that_contain_other_words_count_for_nothing(life: Life) -> None:
    life.say("the author of the skillet saw the reaction")
    life.answer("skill, auth, react, plugin, gateway, docker, error, failed, traceback")
    values = {name: value for name, value in life.values().items() if value}
    talk = {"total_messages_sent", "total_replies", "total_conversations"}
    assert {name for name in values if name.startswith("total_")} <= talk | {
        "total_characters_typed",
        "total_active_seconds",
        "total_lunch_conversations",
    }


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/app/main.py",
        "/Users/me/app/main.go",
        r"C:\Users\me\app\main.rs",
        "src/lib.zig",
        "/workspace/app/index.tsx",
        "Makefile",
    ],
)
def test_8_files_of_any_platform_and_language_are_recognised(life: Life, path: str) -> None:
    life.use("write_file", {"path": path, "content": "x"})
    assert life.total("files_touched") == 1


def test_9_tools_are_known_by_their_whole_names(life: Life) -> None:
    life.use("dispatch_job")  # no patch
    life.use("browser_vision")  # looks at a picture, and is one thing only
    life.use("memory", {"action": "read"})  # no write
    values = life.values()
    assert "total_files_edited" not in values
    assert values["total_images_seen"] == 1
    assert "total_browser_steps" not in values
    assert "total_memories_saved" not in values


def test_10_one_model_has_one_maker() -> None:
    roads = ["claude-sonnet-4", "anthropic/claude-sonnet-4", "openrouter/anthropic/claude-sonnet-4"]
    assert {maker(road) for road in roads} == {"anthropic"}
    assert {normal_model(road) for road in roads} == {"claude-sonnet-4"}


def remove(life: Life) -> None:
    life.db.delete_session("s1")
    life.db.purge_session("s1")


def prune(life: Life) -> None:
    life.db.end_session("s1", "cli_close")
    assert life.db.prune_sessions(older_than_days=1) == 1
    assert life.db.purge_trash(older_than_days=0) == 1


def archive(life: Life) -> None:
    assert life.db.set_session_archived("s1")


def compact(life: Life) -> None:
    life.db.archive_and_compact("s1", [{"role": "user", "content": "a summary"}])


@pytest.mark.parametrize("way", [remove, prune, archive, compact])
@pytest.mark.parametrize("is_seen_before", [True, False])
def test_11_12_13_totals_survive_deletion_pruning_archiving_and_compaction(
    life: Life, way: Callable[[Life], None], is_seen_before: bool
) -> None:
    for _ in range(20):
        life.shell("pytest")
    if is_seen_before:
        life.values()
    way(life)
    assert life.total("tool_calls") == 20
    assert life.total("passed_tests") == 20
    assert life.values(full=True)["total_tool_calls"] == 20


def test_14_a_branch_counts_only_what_is_new_in_it(life: Life) -> None:
    life.say()
    for _ in range(50):
        life.shell("ls")
    branch = life.db.branch_session("s1")
    assert life.total("tool_calls") == 50
    life.session = branch
    life.say()
    life.shell("ls")
    assert life.total("tool_calls") == 51


def test_14_a_branch_of_a_program_that_keeps_no_record_of_copies_counts_once(life: Life) -> None:
    for number in range(10):
        life.shell(f"ls {number}")
    copied = life.db.get_messages("s1")
    life.db.end_session("s1", "branched")
    life.db.create_session("b", "cli", parent_session_id="s1")
    started = life.db.get_session("b")
    assert started is not None
    for message in copied:
        life.db.append_message(
            "b",
            message["role"],
            message["content"],
            tool_name=message.get("tool_name"),
            tool_calls=message.get("tool_calls"),
            tool_call_id=message.get("tool_call_id"),
            timestamp=started["started_at"] + 1,
        )
    life.session = "b"
    life.at = started["started_at"] + HOUR
    life.shell("ls 3")
    assert life.total("tool_calls") == 11


def test_14_sub_agents_scheduled_runs_and_continuations_are_no_conversations(life: Life) -> None:
    life.say()
    life.begin("sub", "subagent", parent_session_id="s1").say()
    life.begin("job", "cron").say()
    life.db.end_session("s1", "compression")
    life.begin("next", parent_session_id="s1").say("and so on")
    values = life.values()
    assert values["total_conversations"] == 1
    assert values["total_subagent_runs"] == 1
    assert values["total_scheduled_runs"] == 1
    assert values["total_continuations"] == 1
    assert values["total_messages_sent"] == 2  # the sub-agent and the schedule are no persons


def test_15_an_undone_message_happened_and_a_title_reads_nothing_again(life: Life) -> None:
    first = life.say()
    life.shell("ls")
    before = life.values()
    life.db.rewind_to_message("s1", first)
    assert life.values()["total_tool_calls"] == before["total_tool_calls"] == 1
    assert life.db.set_session_title("s1", "a title")
    assert life.values()["total_titled"] == 1


def test_16_changed_rules_make_everything_anew(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    life.shell("ls")
    assert life.survey().mode == "full"
    assert life.survey().mode == "incremental"
    monkeypatch.setattr("hermes_achievements.scan.scanner.METRIC_RULES", 99)
    again = life.survey()
    assert (again.mode, again.rescanned) == ("full", 1)
    monkeypatch.setattr("hermes_achievements.scan.scanner.FACT_RULES", 99)
    assert life.survey().mode == "full"


def test_conditions_hold_in_one_session_and_in_their_order(life: Life) -> None:
    life.shell("pytest")
    life.shell("git commit -m x")
    life.begin("s2").shell("pytest", exit_code=1)  # in another session, and too late
    assert life.total("red_green_commits") == 0
    life.shell("pytest")
    life.shell("git commit -m x")
    assert life.total("red_green_commits") == 1


def test_an_unlock_has_the_time_of_the_message_that_earned_it(life: Life) -> None:
    for number in range(30):
        life.wait(DAY).say(f"day {number}")
    row = life.say("one more")
    service = achievements.service()
    snapshot = service.run(achievements.source(), service.compute)
    assert snapshot is not None
    shown = {achievement["id"]: achievement for achievement in snapshot["achievements"]}
    first = shown["first-words"]
    assert first["unlocked_at"] == pytest.approx(life.db.get_messages("s1")[0]["timestamp"])
    assert first["evidence"]["session_id"] == "s1"
    assert row > first["evidence"]["message_id"]
    dates = {step["at"] for item in shown.values() for step in item.get("tier_history", ())}
    assert len(dates) > 3
    assert max(dates) <= life.at


def test_every_unlock_has_its_evidence(life: Life) -> None:
    life.say()
    for _ in range(12):
        life.shell("pytest && git commit -m x && git push")
        life.use("write_file", {"path": "a.py"})
    service = achievements.service()
    snapshot = service.run(achievements.source(), service.compute)
    assert snapshot is not None
    earned = [achievement for achievement in snapshot["achievements"] if achievement["unlocked"]]
    assert len(earned) > 10
    assert all(item["evidence"]["message_id"] for item in earned)


def test_a_secret_says_no_more_than_its_hint() -> None:
    catalogue = load()
    shown = evaluate(catalogue, {}, {})
    secrets = [entry for entry in catalogue if entry.secret]
    text = json.dumps([item for item in shown if item["state"] == "secret"])
    assert len(secrets) == text.count('"state": "secret"')
    for secret in secrets:
        assert secret.id not in text
        assert secret.name not in text
        assert secret.value not in text
        assert secret.counts not in text


def test_17_a_refresh_never_takes_the_place_of_a_complete_snapshot(life: Life) -> None:
    for number in range(300):
        life.begin(f"n{number}").say()
    service = achievements.service()
    source = achievements.source()
    complete = service.run(source, service.compute)
    assert complete is not None
    seen: list[int] = []

    def compute(scan: dict[str, Any], *, is_partial: bool = False) -> dict[str, Any]:
        result = service.compute(scan, is_partial=is_partial)
        served = service.evaluate(force=False, run=lambda: None, start=lambda: None)
        seen.append(served["unlocked_count"])
        return result

    service.run(source, compute, full=True)
    assert len(seen) > 1
    assert set(seen) == {complete["unlocked_count"]}


def test_18_a_scan_that_dies_leaves_what_was_known_and_says_why(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.say()
    service = achievements.service()
    good = service.run(achievements.source(), service.compute)
    life.say()

    def die(*_: object, **__: object) -> None:
        raise ScanError("the disk is on fire")

    monkeypatch.setattr("hermes_achievements.service.survey", die)
    assert service.run(achievements.source(), service.compute) is None
    assert service.current() == good
    assert service.status.facts()["state"] == "failed"
    assert service.status.facts()["last_error"] == "the disk is on fire"


def test_21_durations_are_exact(life: Life) -> None:
    life.say()
    service = achievements.service()
    service.run(achievements.source(), service.compute)
    facts = service.status.facts()
    assert facts["last_duration_ms"] % 1000 != 0
    assert facts["finished_at"] >= facts["started_at"]


def test_24_small_histories_show_progress_too(life: Life) -> None:
    for number in range(40):
        life.begin(f"n{number}")
        for _ in range(5):
            life.shell("ls")
    reports: list[int] = []
    service = achievements.service()

    def compute(scan: dict[str, Any], *, is_partial: bool = False) -> dict[str, Any]:
        if is_partial:
            reports.append(scan["scan_meta"]["sessions_scanned_so_far"])
        return service.compute(scan, is_partial=is_partial)

    service.run(achievements.source(), compute)
    assert reports
    assert reports == sorted(reports)


def test_a_partial_result_is_never_recorded(life: Life) -> None:
    life.say()
    service = achievements.service()
    partial = {"aggregate": {"total_tool_calls": 99_999}, "scan_meta": {"mode": "in_progress"}}
    result = service.compute(partial, is_partial=True)
    assert any(achievement["unlocked"] for achievement in result["achievements"])
    assert not any("unlocked_at" in achievement for achievement in result["achievements"])
    assert service.records.state()["unlocks"] == {}


def test_every_scan_is_counted(life: Life) -> None:
    life.say()
    service = achievements.service()
    service.run(achievements.source(), service.compute)
    service.run(achievements.source(), service.compute)
    assert service.status.facts()["run_count"] == 2
