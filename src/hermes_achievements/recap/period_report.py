"""Reports on a year, a month or a week, from the results of the last scan.

The history is not scanned; callers run a scan first to include new messages.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.calendar import Calendar
from hermes_achievements.evaluation.standings import MESSAGES_SENT
from hermes_achievements.recap import periods
from hermes_achievements.recap.recap import build_recap
from hermes_achievements.recap.sentences import figures, highlights, summary
from hermes_achievements.recap.slides import slides
from hermes_achievements.scan.scanner import Scanner
from hermes_core.errors import UsageError
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_achievements.evaluation.snapshot import TimelineStep
    from hermes_achievements.metrics.tally import Tally
    from hermes_achievements.recap.periods import Period
    from hermes_achievements.recap.recap import Recap
    from hermes_achievements.service import HistorySource

    Timeline = Sequence[TimelineStep]

BATCH_PAUSE_SECONDS: Final = 0.002  # lets other threads run between batches
MAX_CACHED_REPORTS: Final = 8
PERIOD_KINDS: Final = (periods.YEAR, periods.MONTH, periods.WEEK)


class PeriodReport(NamedTuple):
    """The recap of a period, and the years, months and weeks with activity."""

    period: Period
    recap: Recap
    years: tuple[Period, ...]
    months: tuple[Period, ...]
    weeks: tuple[Period, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The report as JSON data, with its texts."""
        return {
            "period": self.period._asdict(),
            **self.choices(),
            "is_empty": self.recap.is_empty,
            "summary": summary(self.recap),
            "figures": [{"name": name, "said": label} for name, label in figures(self.recap)],
            "highlights": highlights(self.recap),
            "slides": [slide.as_json() for slide in slides(self.recap, self.period.name)],
            **self.recap.as_json(),
        }

    def choices(self) -> dict[str, list[dict[str, str]]]:
        """The periods to choose from, latest first."""
        return {
            name: [{"id": period.id, "name": period.name} for period in reversed(listed)]
            for name, listed in (
                ("years", self.years),
                ("months", self.months),
                ("weeks", self.weeks),
            )
        }


def parse_period(text: str) -> Period | None:
    """Parse a period; None for an empty text."""
    if not text.strip():
        return None
    for kind in PERIOD_KINDS:
        if periods.PERIOD_PATTERNS[kind].fullmatch(text.strip()):
            return periods.parse(kind, text)
    forms = ", ".join(f"{periods.PERIOD_EXAMPLES[kind]} for a {kind}" for kind in PERIOD_KINDS)
    raise UsageError(f"period is {text!r}; accepted: {forms}")


def build_report(
    source: HistorySource,
    period: Period | None,
    timeline: Timeline = (),
    now: Callable[[], float] = time.time,
) -> PeriodReport | None:
    """The report on *period*, or on the latest year; None before the first scan."""
    calendar = Calendar(find_zone(source.zone))
    with contextlib.closing(source.open_ledger()) as ledger:
        latest = Scanner(source.open_history, ledger, source.zone).current()
        days = list_active_days(latest[0]) if latest is not None else []
        if latest is None or not days:
            return None
        today = calendar.day(now())
        chosen_period = period or periods.latest_period(periods.YEAR, days, today)
        chosen_period = chosen_period.clip(max(today, days[-1]))
        with contextlib.closing(source.open_history()) as history:
            result = build_recap(
                ledger, latest[0], calendar, chosen_period.first, chosen_period.last, _pause,
                timeline=timeline, titles=history.titles,
            )  # fmt: skip
    lists = (_periods_of(kind, days) for kind in PERIOD_KINDS)
    return PeriodReport(chosen_period, result, *lists)


class PeriodReports:
    """A cache of the latest reports, valid until the next scan."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._reports: dict[tuple[str, str, str, str], PeriodReport] = {}

    def report(
        self, source: HistorySource, period: Period | None, timeline: Timeline, version: str
    ) -> PeriodReport | None:
        """Like `build_report`, cached per *version* of the scan results."""
        today = Calendar(find_zone(source.zone)).day(self._now())
        key = (period.id if period else "", version, source.zone, today)
        with self._lock:
            cached = self._reports.get(key)
        if cached is not None:
            return cached
        result = build_report(source, period, timeline, self._now)
        if result is not None:
            with self._lock:
                self._reports[key] = result
                while len(self._reports) > MAX_CACHED_REPORTS:
                    del self._reports[next(iter(self._reports))]
        return result


def list_active_days(tally: Tally) -> list[str]:
    """The days with messages or tool calls, in order."""
    return sorted(
        day
        for day, counts in tally.days.items()
        if counts.get(MESSAGES_SENT) or counts.get("tool_calls")
    )


def _periods_of(kind: str, days: list[str]) -> tuple[Period, ...]:
    """The periods of a kind that contain these days."""
    return tuple(dict.fromkeys(periods.period_of_day(kind, day) for day in days))


def _pause(_done: int, _total: int) -> None:
    time.sleep(BATCH_PAUSE_SECONDS)
