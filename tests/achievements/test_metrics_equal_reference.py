"""Every metric equals a simple reference implementation."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.campaign import size
from achievements import reference_metrics
from achievements.history_strategies import (
    BERLIN,
    COMMANDS,
    SCENES,
    START,
    STEPS,
    TRACE,
    TRICKY_COMMANDS,
    ZONES,
    histories,
    make_call,
)
from hermes_achievements.calendar import Calendar
from hermes_achievements.classification.shell_commands import command_labels
from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY
from hermes_achievements.metrics.facts import ID_FIELD, TIME_FIELD
from hermes_achievements.metrics.session_view import SessionView
from hermes_achievements.metrics.tally import Contribution, compute_contribution
from hermes_achievements.scan.history import ScannedMessage, ScannedSession
from hermes_achievements.scan.ledger_entries import fingerprint_of, read_facts
from hermes_state.engine.sqlite.driver import sqlite3

# The benchmarks are programs, not a package: their folder is put on the path.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from history import Size, make

if TYPE_CHECKING:
    from datetime import tzinfo


Figures = dict[str, Any]


def by_metrics(history: reference_metrics.ReferenceHistory, zone: tzinfo) -> Figures:
    calendar = Calendar(zone)
    days: dict[str, dict[str, int]] = {name: defaultdict(int) for name in COUNTS}
    maxima = dict.fromkeys([*COUNTS, *PEAKS], 0)
    seen: dict[str, dict[str, tuple[float, int, str]]] = {name: {} for name in VARIETY}
    for row in history.sessions:
        before = sorted(history.messages.get(row.parent_id or "", []))
        parents = [mark for item in before if (mark := fingerprint_of(item)) is not None]
        session = SessionView(read_facts(row, history.messages.get(row.id, []), parents), calendar)
        for name, count_in in COUNTS.items():
            events = count_in(session)
            maxima[name] = max(maxima[name], sum(amount for _, amount in events))
            for fact, amount in events:
                days[name][calendar.day(fact[TIME_FIELD])] += amount
        for name, peaks_in in PEAKS.items():
            maxima[name] = max([maxima[name], *(amount for _, amount in peaks_in(session))])
        for name, values_in in VARIETY.items():
            for fact, value in values_in(session):
                appearance = (fact[TIME_FIELD], fact[ID_FIELD], row.id)
                seen[name][value] = min(seen[name].get(value, appearance), appearance)
    first = {n: {v: (at, s, m) for v, (at, m, s) in item.items()} for n, item in seen.items()}
    return {"days": days, "most": maxima, "first": first}


def by_reference(history: reference_metrics.ReferenceHistory, zone: tzinfo) -> Figures:
    maxima = {name: reference_metrics.max_in_session(name, history, zone) for name in COUNTS}
    maxima |= {name: reference_metrics.peak(name, history, zone) for name in PEAKS}
    return {
        "days": {name: reference_metrics.count_by_day(name, history, zone) for name in COUNTS},
        "most": maxima,
        "first": {name: reference_metrics.variety(name, history, zone) for name in VARIETY},
    }


def differences(history: reference_metrics.ReferenceHistory, zone: tzinfo = BERLIN) -> Figures:
    """Metrics that differ from the reference, with both results."""
    measured, expected = by_metrics(history, zone), by_reference(history, zone)
    return {
        f"{kind} {name}": (figures[name], expected[kind][name])
        for kind, figures in measured.items()
        for name in figures
        if figures[name] != expected[kind][name]
    }


def load_history(path: Path) -> reference_metrics.ReferenceHistory:
    """Load a history from its file, with the kinds of its sessions."""
    with closing(sqlite3.connect(path)) as db:
        reasons = dict(db.execute("SELECT id, end_reason FROM sessions"))
        sessions = [
            ScannedSession(row[0], kind_of(row[1], row[2], reasons.get(row[-1])), *row[2:])
            for row in db.execute(
                "SELECT id, model_config, source, coalesce(model, ''), started_at, ended_at,"
                " coalesce(end_reason, ''), title IS NOT NULL, input_tokens, output_tokens,"
                " cache_read_tokens, reasoning_tokens, coalesce(estimated_cost_usd, 0),"
                " parent_session_id FROM sessions"
            )
        ]
        messages: dict[str, list[ScannedMessage]] = defaultdict(list)
        for session_id, *row in db.execute(
            "SELECT session_id, id, role, timestamp, CAST(content AS BLOB), length(content),"
            " CAST(tool_calls AS BLOB), tool_name, tool_call_id FROM messages ORDER BY id"
        ):
            messages[session_id].append(ScannedMessage(*row))
    return reference_metrics.ReferenceHistory(sessions, dict(messages))


def kind_of(config: str, source: str, parent_end: str | None) -> str:
    marks = json.loads(config)
    if "_delegate_from" in marks:
        return "subagent"
    if source == "cron":
        return "scheduled"
    if "_branched_from" in marks:
        return "branch"
    return "continuation" if parent_end == "compression" else "conversation"


# --- tricky histories --------------------------------------------------------------------


def result_row(row_id: int, content: bytes, **columns: Any) -> ScannedMessage:
    return ScannedMessage(row_id, "tool", START + row_id, content, **columns)


def call_row(row_id: int, tool: str, **arguments: Any) -> ScannedMessage:
    calls = json.dumps([make_call("c1", tool, arguments, is_flat=False)]).encode()
    return ScannedMessage(row_id, "assistant", START + row_id, tool_calls=calls)


def single_session(*rows: ScannedMessage, model: str = "") -> reference_metrics.ReferenceHistory:
    return reference_metrics.ReferenceHistory(
        [ScannedSession("s", model=model, started_at=START)], {"s": [*rows]}
    )


def branched(
    parent: list[ScannedMessage], rows: list[ScannedMessage]
) -> reference_metrics.ReferenceHistory:
    branch = ScannedSession("b", kind="branch", started_at=START, parent_id="s")
    return reference_metrics.ReferenceHistory(
        [ScannedSession("s", started_at=START), branch], {"s": parent, "b": rows}
    )


TRACED = json.dumps({"output": TRACE, "exit_code": 130}).encode()
TRICKY_HISTORIES = {
    # Ctrl-C in a Python program: 130 and a traceback.
    "interrupted with a traceback": single_session(result_row(1, TRACED, tool_name="terminal")),
    # The row names no tool; the call it answers does.
    "a read file holds a traceback": single_session(
        call_row(1, "read_file", path="a.log"), result_row(2, TRACE.encode(), call_id="c1")
    ),
    "a printed exit code, the tool known by the call": single_session(
        call_row(1, "terminal", command="make"), result_row(2, b"exit code: 2", call_id="c1")
    ),
    # A reply is not a copy of a user message.
    "the agent repeats what the user said before": branched(
        [ScannedMessage(1, "user", START, b"ok", 2)],
        [ScannedMessage(2, "assistant", START + 5, b"ok")],
    ),
    "an exit code beyond 64 bits": single_session(
        result_row(1, b'{"exit_code": 99999999999999999999}', tool_name="terminal")
    ),
}


# --- tests -------------------------------------------------------------------------------


def test_every_metric_has_a_reference() -> None:
    assert set(reference_metrics.COUNTS) == set(COUNTS)
    assert set(reference_metrics.PEAKS) == set(PEAKS)
    assert set(reference_metrics.VARIETY) == set(VARIETY)


@settings(max_examples=size(60, 120), deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(), zone=st.sampled_from(ZONES))
def test_metrics_of_any_history_equal_the_reference(
    history: reference_metrics.ReferenceHistory, zone: tzinfo
) -> None:
    assert differences(history, zone) == {}


def contribution_of_events(session: SessionView) -> Contribution:
    """The contribution of a session, from the events of every metric, one by one."""
    days: dict[str, dict[str, int]] = {}
    for name, count_in in COUNTS.items():
        for fact, amount in count_in(session):
            counts = days.setdefault(session.calendar.day(fact[TIME_FIELD]), {})
            counts[name] = counts.get(name, 0) + amount
    peaks = {
        name: max(amount for _, amount in events)
        for name, peaks_in in PEAKS.items()
        if (events := peaks_in(session))
    }
    seen: dict[str, dict[str, list[Any]]] = {}
    for name, values_in in VARIETY.items():
        for fact, value in values_in(session):
            appearance = [fact[TIME_FIELD], fact[ID_FIELD]]
            seen.setdefault(name, {}).setdefault(value, appearance)
    return Contribution(days, peaks, seen)


@settings(max_examples=size(60, 120), deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(), zone=st.sampled_from(ZONES))
def test_contributions_have_the_events_of_every_metric(
    history: reference_metrics.ReferenceHistory, zone: tzinfo
) -> None:
    for row in history.sessions:
        facts = read_facts(row, history.messages.get(row.id, []), ())
        expected = contribution_of_events(SessionView(facts, Calendar(zone)))
        assert compute_contribution(facts, Calendar(zone)) == expected


@pytest.mark.parametrize("step", STEPS)
def test_scenes_with_any_interval_equal_the_reference(step: float) -> None:
    for scene in SCENES:
        rows = [ScannedMessage(id=n, at=START + n * step, **row) for n, row in enumerate(scene, 1)]
        assert differences(single_session(*rows)) == {}


def test_printed_exit_codes_equal_the_reference() -> None:
    contents = [b"z" * n + b"\nexit code 3\n" + b"z" * n for n in range(130, 180)]
    rows = [result_row(n, text, tool_name="terminal") for n, text in enumerate(contents, 1)]
    assert differences(single_session(*rows)) == {}


def test_metrics_of_a_generated_history_equal_the_reference(tmp_path: Path) -> None:
    make(tmp_path / "generated.db", Size(300, 6_000), seed=3)
    history = load_history(tmp_path / "generated.db")
    assert len({session.kind for session in history.sessions}) == 5
    assert differences(history) == {}


@pytest.mark.parametrize("command", [command for command in COMMANDS if command])
def test_labels_equal_the_reference(command: str) -> None:
    assert list(command_labels(command)) == reference_metrics.shell_labels(command)


@pytest.mark.parametrize("command", TRICKY_COMMANDS)
def test_the_reference_labels_tricky_commands(command: str) -> None:
    assert reference_metrics.shell_labels(command) == TRICKY_COMMANDS[command]


@pytest.mark.parametrize("command", TRICKY_COMMANDS)
def test_tricky_commands(command: str) -> None:
    assert list(command_labels(command)) == TRICKY_COMMANDS[command]


@pytest.mark.parametrize("name", TRICKY_HISTORIES)
def test_tricky_histories(name: str) -> None:
    assert differences(TRICKY_HISTORIES[name]) == {}
