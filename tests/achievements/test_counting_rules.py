"""Counting rules, one test for each known counting error of other programs.

The numbers in the names refer to a list of these errors.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from achievements.history_builder import DAY, HOUR, HistoryBuilder
from hermes_achievements.catalogue import load
from hermes_achievements.classification.model_names import model_maker, normal_model
from hermes_achievements.evaluation.standings import evaluate
from hermes_conversation import achievements
from hermes_core.errors import ScanError

if TYPE_CHECKING:
    from collections.abc import Callable


def test_1_a_null_error_field_is_not_a_failure(builder: HistoryBuilder) -> None:
    for _ in range(100):
        builder.run_shell("ls")  # the result contains "error": null
    values = builder.values()
    assert values["total_successful_calls"] == 100
    assert "total_failed_calls" not in values


def test_2_an_error_after_an_escaped_line_break_is_a_failure(builder: HistoryBuilder) -> None:
    for _ in range(10):
        builder.call_tool("terminal", {"command": "x"}, {"output": "a\nerror: b", "exit_code": 1})
    assert builder.total("failed_calls") == 10


def test_3_an_exit_code_without_an_error_word_is_a_failure(builder: HistoryBuilder) -> None:
    for _ in range(100):
        builder.run_shell("make", exit_code=2, output="nothing to see")
    assert builder.total("failed_calls") == 100


def test_4_git_commands_count_and_mentions_do_not(
    builder: HistoryBuilder,
) -> None:
    for _ in range(50):
        builder.run_shell('git commit -m "x" && git push')
    builder.send("git commit, git push, git commit")
    values = builder.values()
    assert (values["total_commits"], values["total_pushes"]) == (50, 50)


def test_5_test_runs_are_counted_from_the_commands(builder: HistoryBuilder) -> None:
    for _ in range(50):
        builder.run_shell("python -m pytest -q")
    assert builder.total("test_runs") == 50


def test_6_background_jobs_are_counted_from_the_arguments(builder: HistoryBuilder) -> None:
    for _ in range(50):
        builder.call_tool("terminal", {"command": "serve", "background": True}, {"exit_code": 0})
    assert builder.total("background_jobs") == 50


def test_7_keywords_in_messages_do_not_count(builder: HistoryBuilder) -> None:
    builder.send("the author of the skillet saw the reaction")
    builder.reply("skill, auth, react, plugin, gateway, docker, error, failed, traceback")
    values = {name: value for name, value in builder.values().items() if value}
    conversation_totals = {"total_messages_sent", "total_replies", "total_conversations"}
    assert {name for name in values if name.startswith("total_")} <= conversation_totals | {
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
def test_8_files_of_any_platform_and_language_are_recognised(
    builder: HistoryBuilder, path: str
) -> None:
    builder.call_tool("write_file", {"path": path, "content": "x"})
    assert builder.total("files_touched") == 1


def test_9_tools_are_matched_by_their_exact_names(builder: HistoryBuilder) -> None:
    builder.call_tool("dispatch_job")  # not a patch
    builder.call_tool("browser_vision")  # counts as vision only, not as a browser step
    builder.call_tool("memory", {"action": "read"})  # not a write
    values = builder.values()
    assert "total_files_edited" not in values
    assert values["total_images_seen"] == 1
    assert "total_browser_steps" not in values
    assert "total_memories_saved" not in values


def test_10_one_model_has_one_maker() -> None:
    names = ["claude-sonnet-4", "anthropic/claude-sonnet-4", "openrouter/anthropic/claude-sonnet-4"]
    assert {model_maker(name) for name in names} == {"anthropic"}
    assert {normal_model(name) for name in names} == {"claude-sonnet-4"}


def remove(builder: HistoryBuilder) -> None:
    builder.db.delete_session("s1")
    builder.db.trash.purge("s1")


def prune(builder: HistoryBuilder) -> None:
    builder.db.end_session("s1", "cli_close")
    assert builder.db.prune_sessions(older_than_days=1) == 1
    assert builder.db.trash.purge_expired(older_than_days=0) == 1


def archive(builder: HistoryBuilder) -> None:
    assert builder.db.set_session_archived("s1")


def compact(builder: HistoryBuilder) -> None:
    builder.db.archive_and_compact("s1", [{"role": "user", "content": "a summary"}])


@pytest.mark.parametrize("operation", [remove, prune, archive, compact])
@pytest.mark.parametrize("is_scanned_before", [True, False])
def test_11_12_13_totals_survive_deletion_pruning_archiving_and_compaction(
    builder: HistoryBuilder, operation: Callable[[HistoryBuilder], None], is_scanned_before: bool
) -> None:
    for _ in range(20):
        builder.run_shell("pytest")
    if is_scanned_before:
        builder.values()
    operation(builder)
    assert builder.total("tool_calls") == 20
    assert builder.total("passed_tests") == 20
    assert builder.values(full=True)["total_tool_calls"] == 20


def test_14_a_branch_counts_only_what_is_new_in_it(builder: HistoryBuilder) -> None:
    builder.send()
    for _ in range(50):
        builder.run_shell("ls")
    branch = builder.db.edits.branch("s1")
    assert builder.total("tool_calls") == 50
    builder.session = branch
    builder.send()
    builder.run_shell("ls")
    assert builder.total("tool_calls") == 51


def test_14_unmarked_copies_in_a_branch_count_once(
    builder: HistoryBuilder,
) -> None:
    for number in range(10):
        builder.run_shell(f"ls {number}")
    copied = builder.db.get_messages("s1")
    builder.db.end_session("s1", "branched")
    builder.db.create_session("b", "cli", parent_session_id="s1")
    started = builder.db.get_session("b")
    assert started is not None
    for message in copied:
        builder.db.append_message(
            "b",
            message["role"],
            message["content"],
            tool_name=message.get("tool_name"),
            tool_calls=message.get("tool_calls"),
            tool_call_id=message.get("tool_call_id"),
            timestamp=started["started_at"] + 1,
        )
    builder.session = "b"
    builder.now = started["started_at"] + HOUR
    builder.run_shell("ls 3")
    assert builder.total("tool_calls") == 11


def test_14_subagents_schedules_and_continuations_are_not_conversations(
    builder: HistoryBuilder,
) -> None:
    builder.send()
    builder.start("sub", "subagent", parent_session_id="s1").send()
    builder.start("job", "cron").send()
    builder.db.end_session("s1", "compression")
    builder.start("next", parent_session_id="s1").send("and so on")
    values = builder.values()
    assert values["total_conversations"] == 1
    assert values["total_subagent_runs"] == 1
    assert values["total_scheduled_runs"] == 1
    assert values["total_continuations"] == 1
    assert values["total_messages_sent"] == 2  # without those of the sub-agent and the schedule


def test_words_of_a_schedule_are_not_a_persons_after_a_compaction(builder: HistoryBuilder) -> None:
    builder.start("job", "cron").send("check the mail")
    builder.db.end_session("job", "compression")
    builder.start("more", "cron", parent_session_id="job").send("check it again")
    builder.start("hook", "webhook").send("a build failed")
    values = builder.values()
    assert values["total_scheduled_runs"] == 1
    assert "total_messages_sent" not in values
    assert "total_characters_typed" not in values


def test_15_an_undone_message_counts_and_a_new_title_is_counted(
    builder: HistoryBuilder,
) -> None:
    first = builder.send()
    builder.run_shell("ls")
    before = builder.values()
    builder.db.rewind_to_message("s1", first)
    assert builder.values()["total_tool_calls"] == before["total_tool_calls"] == 1
    assert builder.db.set_session_title("s1", "a title")
    assert builder.values()["total_titled"] == 1


def test_16_changed_rules_cause_a_full_scan(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.run_shell("ls")
    assert builder.survey().mode == "full"
    assert builder.survey().mode == "incremental"
    monkeypatch.setattr("hermes_achievements.scan.scanner.METRIC_RULES", 99)
    again = builder.survey()
    assert (again.mode, again.rescanned) == ("full", 1)
    monkeypatch.setattr("hermes_achievements.scan.scanner.FACT_RULES", 99)
    assert builder.survey().mode == "full"


def test_sequences_count_within_one_session_and_in_order(builder: HistoryBuilder) -> None:
    builder.run_shell("pytest")
    builder.run_shell("git commit -m x")
    builder.start("s2").run_shell("pytest", exit_code=1)  # in another session, and too late
    assert builder.total("red_green_commits") == 0
    builder.run_shell("pytest")
    builder.run_shell("git commit -m x")
    assert builder.total("red_green_commits") == 1


def test_an_unlock_has_the_time_of_the_message_that_earned_it(builder: HistoryBuilder) -> None:
    for number in range(30):
        builder.wait(DAY).send(f"day {number}")
    row = builder.send("one more")
    service = achievements.service()
    snapshot = service.run(achievements.source(), service.compute)
    assert snapshot is not None
    shown = {achievement["id"]: achievement for achievement in snapshot["achievements"]}
    first = shown["first-words"]
    assert first["unlocked_at"] == pytest.approx(builder.db.get_messages("s1")[0]["timestamp"])
    assert first["evidence"]["session_id"] == "s1"
    assert row > first["evidence"]["message_id"]
    dates = {step["at"] for item in shown.values() for step in item.get("tier_history", ())}
    assert len(dates) > 3
    assert max(dates) <= builder.now


def test_every_unlock_has_its_evidence(builder: HistoryBuilder) -> None:
    builder.send()
    for _ in range(12):
        builder.run_shell("pytest && git commit -m x && git push")
        builder.call_tool("write_file", {"path": "a.py"})
    service = achievements.service()
    snapshot = service.run(achievements.source(), service.compute)
    assert snapshot is not None
    earned = [achievement for achievement in snapshot["achievements"] if achievement["unlocked"]]
    assert len(earned) > 10
    assert all(item["evidence"]["message_id"] for item in earned)


def test_a_locked_secret_shows_only_its_hint() -> None:
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


def test_17_a_rescan_never_replaces_a_complete_snapshot_early(builder: HistoryBuilder) -> None:
    for number in range(300):
        builder.start(f"n{number}").send()
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


def test_18_a_failed_scan_keeps_the_snapshot_and_reports_the_error(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    service = achievements.service()
    good = service.run(achievements.source(), service.compute)
    builder.send()

    def fail(*_: object, **__: object) -> None:
        raise ScanError("the disk is on fire")

    monkeypatch.setattr("hermes_achievements.service.survey", fail)
    assert service.run(achievements.source(), service.compute) is None
    assert service.current() == good
    assert service.status.facts().state == "failed"
    assert service.status.facts().last_error == "the disk is on fire"


def test_21_durations_are_exact(builder: HistoryBuilder) -> None:
    builder.send()
    service = achievements.service()
    service.run(achievements.source(), service.compute)
    facts = service.status.facts()
    assert facts.last_duration_ms % 1000 != 0
    assert facts.finished_at >= facts.started_at


def test_24_scans_of_small_histories_report_progress(builder: HistoryBuilder) -> None:
    for number in range(40):
        builder.start(f"n{number}")
        for _ in range(5):
            builder.run_shell("ls")
    reports: list[int] = []
    service = achievements.service()

    def compute(scan: dict[str, Any], *, is_partial: bool = False) -> dict[str, Any]:
        if is_partial:
            reports.append(scan["scan_meta"]["sessions_scanned_so_far"])
        return service.compute(scan, is_partial=is_partial)

    service.run(achievements.source(), compute)
    assert reports
    assert reports == sorted(reports)


def test_a_partial_result_is_never_recorded(builder: HistoryBuilder) -> None:
    builder.send()
    service = achievements.service()
    partial = {"aggregate": {"total_tool_calls": 99_999}, "scan_meta": {"mode": "in_progress"}}
    result = service.compute(partial, is_partial=True)
    assert any(achievement["unlocked"] for achievement in result["achievements"])
    assert not any("unlocked_at" in achievement for achievement in result["achievements"])
    assert service.records.state()["unlocks"] == {}


def test_every_scan_is_counted(builder: HistoryBuilder) -> None:
    builder.send()
    service = achievements.service()
    service.run(achievements.source(), service.compute)
    service.run(achievements.source(), service.compute)
    assert service.status.facts().run_count == 2
