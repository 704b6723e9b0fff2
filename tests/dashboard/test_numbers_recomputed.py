"""Charts and badges, recomputed from a plan of what happened.

The plan is made first; the expected numbers come from the plan alone, with the standard library.
It has days of 23 and 25 hours, sub-agents, scheduled runs, and sessions that are compacted,
branched, imported and permanently deleted.
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from hermes_achievements.catalogue import load
from hermes_achievements.scan.survey import SurveyRequest, survey
from hermes_conversation.purge_hook import keep_facts
from hermes_dashboard.analytics.analysis import Analysis
from hermes_dashboard.analytics.charts import Span, analytics
from hermes_dashboard.resources import overview
from hermes_dashboard.resources.overview import StreakView
from hermes_state import SessionDB
from hermes_state.ledger.file import open_ledger
from hermes_state.ledger.history import open_history

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ZONE = ZoneInfo("Europe/Berlin")
DAYS = [
    *(date(2025, 10, 20) + timedelta(days=number) for number in range(14)),  # 26 October: 25 hours
    *(date(2026, 3, 20) + timedelta(days=number) for number in range(18)),  # 29 March: 23 hours
]
SPAN = Span("2025-10-01", "2026-04-30")
SOURCES = ("cli", "telegram", "codex")  # the last one is imported
MODELS = ("small", "large")
FOLDERS = ("/work/tea", "/work/cups", "")
TOOLS = ("terminal", "read_file")


@dataclass
class Row:
    """A message; `tool` is a call with its result, `is_copy` was copied into a branch."""

    at: float
    role: str
    text: str
    tool: str = ""
    has_failed: bool = False
    is_copy: bool = False

    @property
    def day(self) -> str:
        return datetime.fromtimestamp(self.at, ZONE).date().isoformat()


@dataclass
class Planned:
    """A session of the plan."""

    id: str
    source: str
    model: str
    folder: str
    cost: float
    kind: str = "conversation"
    parent: Planned | None = None
    is_purged: bool = False
    is_compacted: bool = False
    rows: list[Row] = field(default_factory=list)

    @property
    def own_rows(self) -> list[Row]:
        return [row for row in self.rows if not row.is_copy]

    @property
    def owner(self) -> Planned:
        """The conversation that a sub-agent worked for."""
        return self.parent.owner if self.kind == "subagent" and self.parent else self

    @property
    def root(self) -> str:
        is_part = self.kind == "continuation" and self.parent
        return self.parent.root if is_part and self.parent else self.id

    @property
    def has_person(self) -> bool:
        is_scheduled = self.source == "cron" and self.kind != "branch"  # which a person makes
        return self.kind != "subagent" and not is_scheduled

    def messages(self) -> Counter[str]:
        """Messages of people and of the agent by day."""
        return Counter(row.day for row in self.own_rows if row.role != "tool")


def make_plan(seed: int) -> list[Planned]:
    random = Random(seed)
    plan: list[Planned] = []
    for number, day in enumerate(DAYS):
        if number % 9 == 4:
            continue  # a day without anything
        for part in range(random.randint(1, 2)):
            plan += make_family(random, f"s{number:02}{part}", day)
    return plan


def make_family(random: Random, name: str, day: date) -> Iterator[Planned]:
    """A conversation, and what came of it."""
    source = random.choice((*SOURCES, "cron"))
    session = Planned(
        name, source, random.choice(MODELS), random.choice(FOLDERS), random.randint(1, 400) / 100
    )
    hour = random.choice((0.4, 1.7, 2.5, 3.1, 12.0, 23.6))
    start = datetime(day.year, day.month, day.day, tzinfo=ZONE).timestamp() + hour * 3600
    fill(random, session, start)
    session.is_purged = random.random() < 0.15
    yield session
    end = session.rows[-1].at
    choice = "" if session.is_purged else random.choice(("continuation", "branch", "subagent", ""))
    if choice:
        source = "subagent" if choice == "subagent" else session.source
        folder = "" if choice == "subagent" else session.folder
        child = Planned(f"{name}x", source, random.choice(MODELS), folder, 0.5, choice, session)
        session.is_compacted = choice == "continuation"
        if choice == "branch":
            child.rows += [
                Row(row.at, row.role, row.text, is_copy=True) for row in session.rows[:1]
            ]
        fill(random, child, end + 60)
        yield child


def fill(random: Random, session: Planned, at: float) -> None:
    for number in range(random.randint(2, 5)):
        at += random.choice((40.0, 400.0, 4_000.0))
        text = f"{session.id} {number} {'x' * random.randint(1, 30)}"
        session.rows.append(Row(at, "user", text))
        if random.random() < 0.6:
            tool = random.choice(TOOLS)
            failed = tool == "terminal" and random.random() < 0.4
            session.rows.append(Row(at + 5, "assistant", "", tool))
            session.rows.append(Row(at + 6, "tool", "", tool, failed))
        session.rows.append(Row(at + 10, "assistant", f"answer {text}"))


def write(db: SessionDB, plan: list[Planned]) -> None:
    for session in plan:
        marks = {"branch": "_branched_from", "subagent": "_delegate_from"}.get(session.kind)
        config = {marks: session.parent.id} if marks and session.parent else None
        db.create_session(
            session.id, session.source, model=session.model, cwd=session.folder or None,
            model_config=config, parent_session_id=session.parent and session.parent.id,
            started_at=session.rows[0].at, is_owned=False,
        )  # fmt: skip
        for number, row in enumerate(session.rows):
            write_row(db, session, row, f"{session.id}-{number - (row.role == 'tool')}")
        db.update_token_counts(session.id, input_tokens=100, estimated_cost_usd=session.cost)
        if session.is_compacted:
            db.end_session(session.id, "compression")
    for session in plan:
        if session.is_purged:
            db.delete_session(session.id)
            db.trash.purge(session.id)


def write_row(db: SessionDB, session: Planned, row: Row, call: str) -> None:
    if row.role == "tool":
        content = json.dumps({"output": "", "exit_code": int(row.has_failed)})
        db.append_message(
            session.id, "tool", content if row.tool == "terminal" else "text", timestamp=row.at,
            tool_name=row.tool, tool_call_id=call,
        )  # fmt: skip
        return
    function = {"name": row.tool, "arguments": '{"command": "make", "path": "a"}'}
    calls = [{"id": call, "type": "function", "function": function}] if row.tool else None
    db.append_message(session.id, row.role, row.text, tool_calls=calls, timestamp=row.at)


@pytest.fixture(params=[1, 2])
def planned(
    hermes_home: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[SessionDB, list[Planned]]]:
    (hermes_home / "config.yaml").write_text(f"display:\n  timezone: {ZONE.key}\n")
    plan = make_plan(request.param)
    assert {session.kind for session in plan} == {
        "conversation", "continuation", "branch", "subagent",
    }  # fmt: skip
    assert any(session.is_purged for session in plan)
    with SessionDB(purge_hook=keep_facts) as db:
        write(db, plan)
        yield db, plan


def test_ten_charts_agree_with_a_recomputation(
    planned: tuple[SessionDB, list[Planned]],
) -> None:
    db, plan = planned
    with contextlib.closing(Analysis(db)) as analysis:
        while not (data := analysis.data()).is_complete:
            time.sleep(0.05)
    shown = analytics(data, SPAN).model_dump()
    talks = [session for session in plan if session.kind != "subagent"]
    rows = [row for session in plan for row in session.own_rows]
    calls = [row for row in rows if row.role == "assistant" and row.tool]
    failures = [row for row in rows if row.has_failed]
    messages = sum((session.messages() for session in talks), Counter[str]())
    days = {day["day"]: day for day in shown["days"]}
    # 1 to 4: totals, messages and tool calls by day, active days
    assert shown["totals"]["sessions"] == len({session.root for session in talks})
    assert {day: one["messages"] for day, one in days.items() if one["messages"]} == messages
    assert {day: one["tool_calls"] for day, one in days.items() if one["tool_calls"]} == Counter(
        row.day for row in calls
    )
    sent = [row for session in plan if session.has_person for row in session.own_rows]
    assert shown["totals"]["active_days"] == len({row.day for row in sent if row.role == "user"})
    # 5: hours
    assert shown["hours"] == expected_hours(talks)
    # 6: tools
    tools = {one["tool"]: (one["calls"], one["failures"]) for one in shown["tools"]}
    by_tool, failed = Counter(row.tool for row in calls), Counter(row.tool for row in failures)
    assert tools == {tool: (count, failed[tool]) for tool, count in by_tool.items()}
    # 7: conversations by source
    sources = {one["source"]: one["sessions"] for one in shown["sources"]}
    assert sources == Counter({s.root: s.source for s in talks}.values())
    # 8 to 10: cost by source, by project, and by model and day
    owned = [(session.owner, session) for session in plan]
    costs = {one["source"]: one["cost_usd"] for one in shown["sources"]}
    assert costs == pytest.approx(total_by((o.source, s.cost) for o, s in owned))
    projects = {one["folder"]: one["cost_usd"] for one in shown["projects"]}
    known = [("" if o.is_purged else o.folder, s.cost) for o, s in owned]
    assert projects == pytest.approx(total_by(known))
    by_day = {
        (one["model"], day): amounts["cost_usd"]
        for one in shown["models"]
        for day, amounts in one["days"].items()
    }
    assert by_day == pytest.approx(total_by(costs_by_day(plan)), abs=2e-6)


def expected_hours(talks: list[Planned]) -> list[list[int]]:
    hours = [[0] * 24 for _ in range(7)]
    for session in talks:
        for row in session.own_rows:
            if row.role != "tool":
                local = datetime.fromtimestamp(row.at, ZONE)
                hours[local.weekday()][local.hour] += 1
    return hours


def costs_by_day(plan: list[Planned]) -> Iterator[tuple[tuple[str, str], float]]:
    for session in plan:
        messages = session.messages()
        for day, count in messages.items():
            yield (session.model, day), session.cost * count / messages.total()


def total_by(pairs: Any) -> dict[Any, float]:
    totals: dict[Any, float] = defaultdict(float)
    for key, amount in pairs:
        totals[key] += amount
    return dict(totals)


def test_ten_badges_agree_with_a_recomputation(
    planned: tuple[SessionDB, list[Planned]],
) -> None:
    db, plan = planned
    values = survey(
        SurveyRequest(
            functools.partial(open_history, str(db.db_path)),
            functools.partial(open_ledger, db.db_path),
            ZONE.key,
            load().achievements,
            {},
            processes=0,
        )
    ).values
    rows = [row for session in plan for row in session.own_rows]
    written = [
        row
        for session in plan
        if session.has_person
        for row in session.own_rows
        if row.role == "user"
    ]
    days = sorted({row.day for row in written})
    scheduled = [s for s in plan if s.source == "cron" and s.kind == "conversation"]
    expected = {
        "total_conversations": sum(
            session.kind in ("conversation", "branch") and session not in scheduled
            for session in plan
        ),
        "total_messages_sent": len(written),
        "total_characters_typed": sum(len(row.text) for row in written),
        "total_tool_calls": sum(row.role == "assistant" and bool(row.tool) for row in rows),
        "total_failed_calls": sum(row.has_failed for row in rows),
        "total_subagent_runs": sum(session.kind == "subagent" for session in plan),
        "total_scheduled_runs": len(scheduled),
        "total_continuations": sum(session.kind == "continuation" for session in plan),
        "total_branches": sum(session.kind == "branch" for session in plan),
        "active_days": len(days),
        "longest_streak": longest_streak([date.fromisoformat(day) for day in days]),
        "max_messages_sent_in_day": max(Counter(row.day for row in written).values()),
    }
    assert {name: values.get(name, 0) for name in expected} == expected


def longest_streak(days: list[date]) -> int:
    """The longest run; a missed day is allowed if none of the six days before was missed."""
    best = 0
    for start in range(len(days)):
        length, missed = 1, date.min
        for before, day in zip(days[start:], days[start + 1 :], strict=False):
            gap = (day - before).days
            if gap == 2 and (day - missed).days > 7:
                missed = day - timedelta(days=1)
            elif gap != 1:
                break
            length += 1
        best = max(best, length)
    return best


def test_a_streak_is_over_after_two_missed_days() -> None:
    days = {f"2026-03-{day:02}": {"messages_sent": 1} for day in range(1, 6)}
    assert overview.streak_of(days, "2026-03-05").is_today_done
    assert overview.streak_of(days, "2026-03-07").days == 5
    assert overview.streak_of(days, "2026-03-08") == StreakView(
        days=0, longest=5, forgiven=0, last_day="2026-03-05", is_today_done=False
    )
    assert overview.streak_of({}, "2026-03-08").last_day is None


def test_forgiven_days_and_a_lost_streak_are_told() -> None:
    days = {f"2026-03-{day:02}": {"messages_sent": 1} for day in (1, 2, 4, 5)}
    streak = overview.streak_of(days, "2026-03-05")
    assert (streak.days, streak.forgiven) == (4, 1)
    # The 6th was missed within seven days of the 3rd: a message on the 7th would begin a new one.
    assert overview.streak_of(days, "2026-03-06").days == 4
    assert overview.streak_of(days, "2026-03-07").days == 0
