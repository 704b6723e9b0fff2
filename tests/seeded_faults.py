# ruff: noqa: E501, T201 - a table with a fault per line; a program that prints
"""Puts faults into copies of the code, one at a time, and checks that tests notice each.

    python tests/seeded_faults.py [NUMBER ...]

A fault is a piece of code that occurs once in a file, what replaces it, and the tests that should
fail. The program prints a line per fault and ends with 1 if one was not noticed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
TEST_SECONDS: Final = 600


class Fault(NamedTuple):
    """A change that breaks something."""

    file: str  # below src
    code: str
    fault: str
    tests: str  # paths below tests, separated by spaces


FAULTS: Final = (
    # The store
    Fault("hermes_state/messages/history.py", "    if current != token:", "    if False:", "state/test_leases.py"),
    Fault("hermes_state/messages/history.py", "    if row_id is not None:\n        if tx.value", "    if False:\n        if tx.value", "state/test_messages.py"),
    Fault("hermes_state/messages/edits.py", "    if last_undo is None or last_undo[1] != tx.value(LAST_ROW, (session_id,)):", "    if last_undo is None:", "state/test_history_edits.py"),
    Fault("hermes_state/sessions/labels.py", "    if TITLE_SOURCE_RANKS.get(source, 0) < current_rank:", "    if False:", "state/test_sessions.py"),
    Fault("hermes_state/sessions/labels.py", "    if len(tags) > MAX_TAGS:", "    if False:", "state/test_tags.py"),
    Fault("hermes_state/sessions/trash.py", "    if was_open:", "    if not was_open:", "state/test_trash.py"),
    Fault("hermes_state/messages/journal.py", "            if not _is_at(descriptor, path):", "            if _is_at(descriptor, path):", "state/test_journal.py"),
    Fault("hermes_state/portable/redaction.py", "        if isinstance(value, list):", "        if isinstance(value, tuple):", "state/test_portable_redaction.py"),
    Fault("hermes_state/portable/store_copy.py", "        return source == target\n", "        return True\n", "state/test_store_copy.py"),
    Fault("hermes_state/upkeep/crash_recovery.py", "    if process_id not in process_identity.dead_processes(tx, current, tx.clock):", "    if True:", "state/test_crash_sweep.py"),
    Fault("hermes_state/delivery/leases.py", "        if _is_held(tx, row, current, tx.clock):", "        if False:", "state/test_leases.py"),
    Fault("hermes_state/upkeep/crash_recovery.py", "[*joined, *in_turn, *recovered]", "[*joined]", "state/test_boundary_events.py"),
    Fault("hermes_state/messages/history.py", "    if not tx.execute(sql, values).rowcount:", "    if tx.execute(sql, values) is None:", "state/test_boundary_events.py"),
    Fault("hermes_state/sessions/trash.py", "        tx.execute(CUT_ROUTES, (session_id,))\n", "        pass\n", "state/test_boundary_events.py"),
    Fault("hermes_state/delivery/inbox.py", "    if not tx.execute(SETTLE, row).rowcount:", "    if tx.execute(SETTLE, row) is None:", "state/test_inbox_outbox.py"),
    Fault("hermes_state/delivery/inbox.py", "            AND (c.state = 'claimed' OR c.inbox_id < w.inbox_id)\n            AND c.state IN", "            AND c.state = 'none' AND c.state IN", "state/test_inbox_outbox.py"),
    Fault("hermes_state/delivery/outbox.py", "            elif may_have_arrived:", "            elif False:", "gateway/test_outbox.py state/test_inbox_outbox.py"),
    Fault("hermes_state/schedules/repository.py", "            if not tx.execute(ADVANCE_JOB, values).rowcount:", "            if tx.execute(ADVANCE_JOB, values) is None:", "state/test_schedules.py"),
    Fault("hermes_state/schedules/repository.py", "            if not tx.execute(START_RUN, values).rowcount:", "            if tx.execute(START_RUN, values) is None:", "state/test_schedules.py"),
    # The gateway
    Fault("gateway/inbound/receiver.py", "        if not decision.is_allowed:", "        if False:", "gateway/test_access_control.py"),
    Fault("gateway/inbound/receiver.py", '        if (before.payload.get("source") or {}).get("user_id") != source.user_id:', "        if False:", "gateway/test_user_isolation.py gateway/test_input_during_turn.py gateway/test_inbox.py"),
    Fault("gateway/inbound/inbox_workers.py", "OWNER_TURNS: Final = 4", "OWNER_TURNS: Final = 0", "gateway/test_owners_turns.py"),
    Fault("gateway/outbound/sender.py", "        if reply.was_ambiguous and not is_safe:", "        if False:", "gateway/test_outbox.py"),
    Fault("gateway/outbound/sender.py", "return await adapter.send(outgoing) if result.error_kind in NOT_EDITABLE_KINDS else result", "return result", "gateway/test_live_reply.py gateway/test_outbox.py"),
    Fault("gateway/inbound/budgets.py", "        if limits.user_dollars and chats.spending(*user, day=day) >= limits.user_dollars:", "        if False:", "gateway/test_budgets.py"),
    Fault("gateway/schedules/run_handler.py", "        return [role for role in Role if role in roles][-1]", "        return [role for role in Role if role in roles][0]", "gateway/test_scheduled_runs.py"),
    Fault("gateway/schedules/run_handler.py", '        if occurrence.state == "running":', "        if False:", "gateway/test_scheduled_runs.py"),
    Fault("gateway/routing/sources.py", '    if policy.mode == "none":', '    if policy.mode != "none":', "gateway/test_expiry.py"),
    Fault("gateway/platforms/discord/adapter.py", "idempotent=True", "idempotent=False", "gateway/test_discord_sender.py"),
    Fault("gateway/routing/conversation_cache.py", "        conversation.agent.expect_turn()\n", "", "gateway/test_commands.py"),
    # The agent
    Fault("hermes_agent/permissions/grants.py", "is_prefix = pattern.endswith(\" *\") and not SHELL_OPERATORS.search(command)", "is_prefix = pattern.endswith(\" *\")", "agent/permissions"),
    Fault("hermes_agent/permissions/file_access.py", "        if facts.st_nlink < 2 or not stat.S_ISREG(facts.st_mode):", "        if True:", "security/test_file_tools.py agent/permissions"),
    Fault("hermes_agent/memory/facts.py", "    if size > limit and size > used_characters(before):", "    if False:", "dashboard/test_memory.py"),
    Fault("hermes_agent/memory/evidence.py", "    if _is_negated(clause[:place]):", "    if False:", "agent/memory"),
    Fault("hermes_agent/context/window.py", "            if called is not None:", "            if called is None:", "agent"),
    Fault("hermes_agent/context/window.py", "    if sum(map(message_tokens, messages)) <= tokens or not messages:", "    if True:", "agent"),
    Fault("hermes_agent/providers/retry.py", "                drops_text=has_streamed,", "                drops_text=False,", "agent"),
    Fault("hermes_agent/turn.py", "        if number == self._deps.max_steps:", "        if False:", "agent/test_turn.py"),
    Fault("hermes_agent/tools/files.py", "        if require_regular_file(path, os.fstat(handle)).st_size > MAX_EDIT_BYTES:", "        if False:", "agent/tools"),
    # Core, plugins, dashboard
    Fault("hermes_core/schedules/rules.py", "    if _exists(first, zone):", "    if True:", "core/test_schedule_rules.py"),
    Fault("gateway/schedules/scheduler.py", "    if policy is CatchUp.SKIP and now - latest > GRACE_SECONDS:", "    if policy is CatchUp.SKIP and False:", "gateway/test_catch_up.py"),
    Fault("hermes_core/config/values.py", "    return (low is None or value >= low) and (high is None or value <= high)", "    return True", "core"),
    Fault("hermes_core/media_store.py", '        if not first.isalnum() or "/" in name or not name.startswith(first):', "        if False:", "gateway/test_attachments.py"),
    Fault("hermes_core/terminal_text.py", "    return text.replace(\"\\r\\n\", \"\\n\").translate(_replacement_table())", "    return text", "cli/test_display.py cli/test_terminal.py"),
    Fault("hermes_core/session_keys.py", "        if key.encode() != text:", "        if False:", "core"),
    Fault("hermes_plugin_host/delivery.py", "            if callback.consumer in taken:", "            if False:", "plugins"),
    Fault("hermes_dashboard/auth/gate.py", "        if caller is None and is_guarded(scope):", "        if False:", "dashboard/test_gate.py"),
    Fault("hermes_dashboard/auth/gate.py", "        if len(hosts) != 1 or hosts[0].lower() not in self._access.origins.hosts:", "        if False:", "dashboard/test_gate.py"),
    # Achievements
    Fault("hermes_achievements/scan/scanner.py", "            self.tally.merge(result.tally)\n", "            self.tally.best = result.tally.best\n", "achievements/test_scanner.py"),
    Fault("hermes_achievements/scan/scanner.py", "        if current.message < state.position.message or current.change < state.position.change:", "        if False:", "achievements"),
)  # fmt: skip


def main(numbers: list[int]) -> int:
    """Check the faults with these numbers, or all; the exit code."""
    missed = []
    for number, fault in enumerate(FAULTS, 1):
        if numbers and number not in numbers:
            continue
        started = time.monotonic()
        is_noticed = check(fault)
        state = "noticed" if is_noticed else "NOT NOTICED"
        seconds = time.monotonic() - started
        print(f"{number:3}  {state:12} {seconds:4.0f} s  {fault.file}: {fault.fault.strip()[:50]}")
        sys.stdout.flush()
        if not is_noticed:
            missed.append(number)
    print(f"{len(numbers or FAULTS) - len(missed)} noticed, {len(missed)} not: {missed}")
    return 1 if missed else 0


def check(fault: Fault) -> bool:
    """Whether a test fails with the fault, and not because the code cannot be imported."""
    with tempfile.TemporaryDirectory(prefix="hermes-fault-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("plugins", "web"):  # what the code looks for beside it
            (Path(folder) / name).symlink_to(ROOT / name)
        path = source / fault.file
        text = path.read_text("utf-8")
        assert text.count(fault.code) == 1, f"{fault.file} has this code {text.count(fault.code)}x"
        path.write_text(text.replace(fault.code, fault.fault), "utf-8")
        tests = [f"tests/{name}" for name in fault.tests.split()]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                "-n",
                "2",
                *tests,
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            timeout=TEST_SECONDS,
            check=False,
        )
    assert "ImportError" not in done.stdout, done.stdout[-2000:]
    assert "passed" in done.stdout or "failed" in done.stdout, done.stdout[-2000:] + done.stderr
    return " failed" in done.stdout.splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main([int(item) for item in sys.argv[1:]]))
