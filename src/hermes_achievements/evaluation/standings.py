"""Values of all achievements, and the standing of each: its tier and public representation.

A derived value is a series of days and numbers: its last number is the value, and the days
date the thresholds that it reached.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.calendar import days_between

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_achievements.catalogue import Achievement, Catalogue
    from hermes_achievements.evaluation import snapshot
    from hermes_achievements.metrics.tally import Days, Tally

Series = list[tuple[str, int]]

MESSAGES_SENT: Final = "messages_sent"
AGENTS_IN_PROJECT: Final = "agents_in_project"
PROJECT_AGENTS: Final = "project_agents"
DAYS_PER_WEEK: Final = 7
MIN_RESULTS_PER_MONTH: Final = 100
MIN_RESULTS_PER_DAY: Final = 25
MIN_CONVERSATIONS_PER_MONTH: Final = 10
MIN_COMMITS_PER_MONTH: Final = 10


def compute_values(tally: Tally) -> dict[str, int]:
    """Every value that an achievement can measure."""
    result: dict[str, int] = {"sessions": tally.sessions}
    totals: dict[str, int] = {}
    in_day: dict[str, int] = {}
    for counts in tally.days.values():
        for name, amount in counts.items():
            totals[name] = totals.get(name, 0) + amount
            if amount > in_day.get(name, 0):
                in_day[name] = amount
    result.update((f"total_{name}", amount) for name, amount in totals.items())
    result.update((f"max_{name}_in_day", amount) for name, amount in in_day.items())
    result.update((f"max_{name}_in_session", amount) for name, amount in tally.best.items())
    result.update((f"peak_{name}", amount) for name, amount in tally.peaks.items())
    result.update((f"distinct_{kind}", len(values)) for kind, values in tally.seen.items())
    result[AGENTS_IN_PROJECT] = max(Counter(_projects(tally)).values(), default=0)
    for name, series in DERIVED_SERIES.items():
        steps = series(tally.days)
        result[name] = steps[-1][1] if steps else 0
    return result


def _projects(tally: Tally) -> list[str]:
    """The project of each pair of a project and an agent."""
    return [pair.partition(":")[0] for pair in tally.seen.get(PROJECT_AGENTS, {})]


def project_moments(tally: Tally, threshold: int) -> list[tuple[float, str, int]]:
    """When each project had so many agents: time, session and message, the first one first."""
    moments: dict[str, list[tuple[float, str, int]]] = {}
    for pair, moment in tally.seen.get(PROJECT_AGENTS, {}).items():
        moments.setdefault(pair.partition(":")[0], []).append((moment[0], moment[1], moment[2]))
    return sorted(
        sorted(each)[threshold - 1] for each in moments.values() if len(each) >= threshold
    )


def list_active_days(days: Days) -> list[str]:
    """The days with user messages, in order."""
    return sorted(day for day, counts in days.items() if counts.get(MESSAGES_SENT))


def active_days(days: Days) -> Series:
    """Days on which a person wrote."""
    return [(day, number) for number, day in enumerate(list_active_days(days), 1)]


class StreakDay(NamedTuple):
    """An active day: the length of its streak up to that day, and the missed days in it."""

    day: str
    length: int
    forgiven: int


def streaks(days: Days) -> list[tuple[str, int]]:
    """For each active day, the length of its streak up to that day."""
    return [(step.day, step.length) for step in streak_days(list_active_days(days))]


def streak_days(active: list[str]) -> list[StreakDay]:
    """The streaks of active days.

    A missed day does not end a streak if the six days before it have no other one.
    """
    result: list[StreakDay] = []
    length, missed_days, forgiven, previous = 0, 0, None, None
    for day in active:
        gap = days_between(previous, day) if previous else 0
        if gap == 2 and previous is not None:
            missed = (date.fromisoformat(previous) + timedelta(days=1)).isoformat()
            if forgiven is None or days_between(forgiven, missed) >= DAYS_PER_WEEK:
                forgiven, gap, missed_days = missed, 1, missed_days + 1
        if gap == 1:
            length += 1
        else:
            length, missed_days, forgiven = 1, 0, None
        result.append(StreakDay(day, length, missed_days))
        previous = day
    return result


def longest_streak(days: Days) -> Series:
    """The longest run of active days; one missed day in any seven is forgiven."""
    return _rises(streaks(days))


def longest_week_streak(days: Days) -> Series:
    """Weeks in a row, Monday to Sunday, with an active day."""
    return _rises(_consecutive_runs(_first_days(list_active_days(days), _monday), _weeks_apart))


def perfect_weeks(days: Days) -> Series:
    """Weeks with all seven days active."""
    in_week: dict[str, int] = {}
    result: Series = []
    for day in list_active_days(days):
        monday = _monday(day)
        in_week[monday] = in_week.get(monday, 0) + 1
        if in_week[monday] == DAYS_PER_WEEK:
            result.append((day, len(result) + 1))
    return result


def active_months(days: Days) -> Series:
    """Months with an active day."""
    firsts = _first_days(list_active_days(days), _month)
    return [(day, number) for number, (_, day) in enumerate(firsts, 1)]


def longest_month_streak(days: Days) -> Series:
    """Months in a row with an active day."""
    return _rises(_consecutive_runs(_first_days(list_active_days(days), _month), _months_apart))


def improved_months(days: Days) -> Series:
    """Months whose share of failed tool calls is lower than in the last month that counts."""
    improved = [day for day, is_better in _improvements(days) if is_better]
    return [(day, number) for number, day in enumerate(improved, 1)]


def longest_improvement(days: Days) -> Series:
    """The most improved months in a row."""
    run = 0
    steps: Series = []
    for day, is_better in _improvements(days):
        run = run + 1 if is_better else 0
        steps.append((day, run))
    return _rises(steps)


def _improvements(days: Days) -> list[tuple[str, bool]]:
    """Each month with enough results, except the first, and whether it improved.

    A month counts when it is over, i.e. when a later month has activity.
    """
    judged = [
        (month.last_day, month.get("failed_calls") / (month.get("failed_calls") + ok))
        for month in _months(days)[:-1]
        if (ok := month.get("successful_calls")) + month.get("failed_calls")
        >= MIN_RESULTS_PER_MONTH
    ]
    return [(later[0], later[1] < earlier[1]) for earlier, later in pairwise(judged)]


def spotless_days(days: Days) -> Series:
    """Days with at least 25 tool results and no failure, once they are over."""
    matches = [
        day
        for day in sorted(days)[:-1]
        if days[day].get("successful_calls", 0) >= MIN_RESULTS_PER_DAY
        and not days[day].get("failed_calls")
    ]
    return [(day, number) for number, day in enumerate(matches, 1)]


def days_together(days: Days) -> Series:
    """Days from the first active day to the last."""
    result = list_active_days(days)
    return [(day, days_between(result[0], day)) for day in result[1:]]


def longest_absence(days: Days) -> Series:
    """The longest pause, in days, after which a person came back."""
    return _rises([(b, days_between(a, b) - 1) for a, b in pairwise(list_active_days(days))])


def tidy_months(days: Days) -> Series:
    """Months with at least ten conversations of which 80 % have a title."""
    return _good_months(days, "titled", 0.8)


def clean_months(days: Days) -> Series:
    """Months with at least ten conversations of which 90 % were ended properly."""
    return _good_months(days, "clean_ends", 0.9)


def tested_months(days: Days) -> Series:
    """Months with at least ten commits and at least as many passed test runs."""
    matches = [
        month.last_day
        for month in _months(days)[:-1]
        if MIN_COMMITS_PER_MONTH <= month.get("commits") <= month.get("passed_tests")
    ]
    return [(day, number) for number, day in enumerate(matches, 1)]


def _good_months(days: Days, name: str, share: float) -> Series:
    matches = [
        month.last_day
        for month in _months(days)[:-1]
        if month.get("conversations") >= MIN_CONVERSATIONS_PER_MONTH
        and month.get(name) >= share * month.get("conversations")
    ]
    return [(day, number) for number, day in enumerate(matches, 1)]


class _MonthTotals:
    """Metric totals of a month."""

    def __init__(self) -> None:
        self.last_day = ""
        self.sums: dict[str, int] = {}

    def add(self, day: str, counts: dict[str, int]) -> None:
        self.last_day = max(self.last_day, day)
        for name in MONTHLY_METRICS:
            self.sums[name] = self.sums.get(name, 0) + counts.get(name, 0)

    def get(self, name: str) -> int:
        return self.sums.get(name, 0)


MONTHLY_METRICS: Final = (
    "successful_calls",
    "failed_calls",
    "conversations",
    "titled",
    "clean_ends",
    "commits",
    "passed_tests",
)


def _months(days: Days) -> list[_MonthTotals]:
    result: dict[str, _MonthTotals] = {}
    for day in sorted(days):
        result.setdefault(_month(day), _MonthTotals()).add(day, days[day])
    return list(result.values())


def _rises(steps: list[tuple[str, int]]) -> Series:
    """The steps with a new highest value."""
    best = 0
    result: Series = []
    for day, value in steps:
        if value > best:
            best = value
            result.append((day, value))
    return result


def _first_days(days: list[str], period: Callable[[str], str]) -> list[tuple[str, str]]:
    """Each period with its first active day."""
    result: dict[str, str] = {}
    for day in days:
        result.setdefault(period(day), day)
    return list(result.items())


def _consecutive_runs(firsts: list[tuple[str, str]], apart: Callable[[str, str], int]) -> Series:
    run = 0
    previous = None
    steps: Series = []
    for period, day in firsts:
        run = run + 1 if previous is not None and apart(previous, period) == 1 else 1
        steps.append((day, run))
        previous = period
    return steps


def _monday(day: str) -> str:
    parsed = date.fromisoformat(day)
    return (parsed - timedelta(days=parsed.weekday())).isoformat()


def _month(day: str) -> str:
    return day[:7]


def _weeks_apart(first: str, last: str) -> int:
    return days_between(first, last) // DAYS_PER_WEEK


def _months_apart(first: str, last: str) -> int:
    years = int(last[:4]) - int(first[:4])
    return years * 12 + int(last[5:7]) - int(first[5:7])


DERIVED_SERIES: Final[dict[str, Callable[[Days], Series]]] = {
    function.__name__: function
    for function in (
        active_days,
        longest_streak,
        longest_week_streak,
        perfect_weeks,
        active_months,
        longest_month_streak,
        improved_months,
        longest_improvement,
        spotless_days,
        days_together,
        longest_absence,
        tidy_months,
        clean_months,
        tested_months,
    )
}
# Values that more sessions can lower: a fuller month has a lower share, a gap is filled. They are
# known only after a complete scan.
FALLING_VALUES: Final = frozenset(
    function.__name__
    for function in (
        longest_streak,  # an earlier day may use up the missed day that is forgiven
        improved_months,
        longest_improvement,
        spotless_days,
        longest_absence,
        tidy_months,
        clean_months,
        tested_months,
    )
)


UNLOCKED: Final = "unlocked"
DISCOVERED: Final = "discovered"
SECRET: Final = "secret"  # noqa: S105 - a state, not a credential
STATES: Final = (UNLOCKED, DISCOVERED, SECRET)


class Standing(NamedTuple):
    """Progress of one achievement."""

    progress: int
    tier: str | None
    next_tier: str | None
    next_threshold: int | None
    percent: int


def compute_standing(
    achievement: Achievement, value: int, recorded_tier: str | None = None
) -> Standing:
    """The standing of *value*; a tier that was earned before is kept."""
    rank = sum(value >= threshold for _, threshold in achievement.thresholds)
    names = [tier for tier, _ in achievement.thresholds]
    if recorded_tier in names:
        rank = max(rank, names.index(recorded_tier) + 1)  # tiers are never removed
    tier = names[rank - 1] if rank else None
    if rank == len(names):
        return Standing(value, tier, None, None, 100)
    below = achievement.thresholds[rank - 1][1] if rank else 0
    above = achievement.thresholds[rank][1]
    percent = min(99, max(0, (value - below) * 100 // (above - below)))
    return Standing(value, tier, names[rank], above, percent)


def reached_tiers(achievement: Achievement, value: int) -> list[tuple[str, int]]:
    """The tiers that *value* has reached, with thresholds."""
    return [(tier, threshold) for tier, threshold in achievement.thresholds if value >= threshold]


def highest_tier(achievement: Achievement, unlock: snapshot.Unlock | None) -> str | None:
    """The highest recorded tier."""
    tiers = unlock.get("tiers", {}) if unlock else {}
    recorded = [tier for tier, _ in achievement.thresholds if tier in tiers]
    return recorded[-1] if recorded else None


def evaluate(
    catalogue: Catalogue,
    values: Mapping[str, int],
    unlocks: Mapping[str, snapshot.Unlock],
    *,
    with_dates: bool = True,
) -> list[snapshot.AchievementView]:
    """Every achievement as it is shown; a locked secret shows only its hint."""
    shown = []
    for number, achievement in enumerate(catalogue, 1):
        unlock = unlocks.get(achievement.id)
        standing = compute_standing(
            achievement, int(values.get(achievement.value, 0)), highest_tier(achievement, unlock)
        )
        if achievement.secret and standing.tier is None and not standing.progress:
            shown.append(_show_secret(achievement, number))
        else:
            shown.append(_show_visible(achievement, standing, unlock if with_dates else None))
    return shown


def _show_secret(achievement: Achievement, number: int) -> snapshot.AchievementView:
    return {
        "id": f"secret-{number}",
        "name": "Secret",
        "description": achievement.hint,
        "hint": achievement.hint,
        "category": achievement.category,
        "kind": SECRET,
        "icon": "lock",
        "secret": True,
        "state": SECRET,
        "unlocked": False,
        "discovered": False,
        "tier": None,
        "tiers": [],
        "progress": 0,
        "progress_pct": 0,
        "next_tier": None,
        "next_threshold": None,
        "criteria": "",
        "unit": "",
    }


def _show_visible(
    achievement: Achievement, standing: Standing, unlock: snapshot.Unlock | None
) -> snapshot.AchievementView:
    is_unlocked = standing.tier is not None
    shown: snapshot.AchievementView = {
        "id": achievement.id,
        "name": achievement.name,
        "description": achievement.text,
        "category": achievement.category,
        "kind": achievement.kind,
        "icon": achievement.icon,
        "secret": achievement.secret,
        "origin": achievement.origin,
        "state": UNLOCKED if is_unlocked else DISCOVERED,
        "unlocked": is_unlocked,
        "discovered": True,
        "tier": standing.tier,
        "tiers": [{"name": tier, "threshold": number} for tier, number in achievement.thresholds],
        "progress": standing.progress,
        "progress_pct": standing.percent,
        "next_tier": standing.next_tier,
        "next_threshold": standing.next_threshold,
        "criteria": achievement.counts,
        "unit": achievement.unit,
        "metric": achievement.value,
    }
    if unlock is not None:
        history = _tier_history(achievement, unlock)
        shown["unlocked_at"] = history[0]["at"] if history else unlock.get("unlocked_at")
        shown["tier_history"] = history
        shown["evidence"] = history[-1] if history else None
    return shown


def _tier_history(achievement: Achievement, unlock: snapshot.Unlock) -> list[snapshot.TierStep]:
    tiers = unlock.get("tiers", {})
    return [
        {
            "tier": tier,
            "value": threshold,
            "at": tiers[tier]["at"],
            "session_id": tiers[tier]["session_id"],
            "message_id": tiers[tier]["message_id"],
        }
        for tier, threshold in achievement.thresholds
        if tier in tiers
    ]


def count_states(shown: list[snapshot.AchievementView]) -> snapshot.AchievementCounts:
    """Numbers of unlocked, discovered, secret and all achievements."""
    states = [achievement["state"] for achievement in shown]
    return {
        "unlocked_count": states.count(UNLOCKED),
        "discovered_count": states.count(DISCOVERED),
        "secret_count": states.count(SECRET),
        "total_count": len(shown),
    }
