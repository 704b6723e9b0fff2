"""A look back on a year, a month or a week, out of what the last scan has read.

Nothing is scanned here: whoever wants what is new lets a scan run first.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_achievements.calendar import Calendar
from hermes_achievements.evaluation.values import SENT
from hermes_achievements.recap import periods
from hermes_achievements.recap.recap import recap
from hermes_achievements.recap.sentences import figures, highlights, summary
from hermes_achievements.scan.scanner import Scanner
from hermes_core.errors import UsageError
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_achievements.metrics.tally import Tally
    from hermes_achievements.recap.periods import Period
    from hermes_achievements.recap.recap import Recap
    from hermes_achievements.service import Source

    Timeline = Sequence[Mapping[str, Any]]

BREATH_SECONDS: Final = 0.002  # between slices, so that others get their turn
KEPT: Final = 8
PERIOD_KINDS: Final = (periods.YEAR, periods.MONTH, periods.WEEK)


class LookBack(NamedTuple):
    """A period looked back on, and the years and months that have something in them."""

    period: Period
    recap: Recap
    years: tuple[Period, ...]
    months: tuple[Period, ...]

    def plain(self) -> dict[str, Any]:
        """Everything for JSON, with the sentences and figures that people read."""
        return {
            "period": self.period._asdict(),
            **self.choices(),
            "is_empty": self.recap.is_empty,
            "summary": summary(self.recap),
            "figures": [{"name": name, "said": said} for name, said in figures(self.recap)],
            "highlights": highlights(self.recap),
            **self.recap.plain(),
        }

    def choices(self) -> dict[str, list[dict[str, str]]]:
        """What can be looked back on, the latest first."""
        return {
            name: [{"id": item.id, "name": item.name} for item in reversed(item)]
            for name, item in (("years", self.years), ("months", self.months))
        }


def asked(text: str) -> Period | None:
    """The period that *text* names; None when it names none."""
    if not text.strip():
        return None
    for kind in PERIOD_KINDS:
        if periods.FORMS[kind].fullmatch(text.strip()):
            return periods.parse(kind, text)
    forms = ", ".join(f"{periods.EXAMPLES[kind]} for a {kind}" for kind in PERIOD_KINDS)
    raise UsageError(f"period is {text!r}; accepted: {forms}")


def look_back(
    source: Source,
    period: Period | None,
    timeline: Timeline = (),
    now: Callable[[], float] = time.time,
) -> LookBack | None:
    """Look back on *period*, or on the latest year; None where nothing was read yet."""
    calendar = Calendar(find_zone(source.zone))
    with contextlib.closing(source.open_ledger()) as ledger:
        known = Scanner(source.open_history, ledger, source.zone).current()
        days = days_with_something(known[0]) if known is not None else []
        if known is None or not days:
            return None
        today = calendar.day(now())
        chosen = period or periods.latest(periods.YEAR, days, today)
        chosen = chosen.until(max(today, days[-1]))
        with contextlib.closing(source.open_history()) as history:
            result = recap(
                ledger, known[0], calendar, chosen.first, chosen.last, _breathe,
                timeline=timeline, titles=history.titles,
            )  # fmt: skip
    return LookBack(chosen, result, _all(periods.YEAR, days), _all(periods.MONTH, days))


class LookBacks:
    """The last few looks back, as long as nothing new was scanned."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str, str, str], LookBack] = {}

    def of(
        self, source: Source, period: Period | None, timeline: Timeline, version: str
    ) -> LookBack | None:
        """As `look_back`; *version* is another one whenever there may be more to see."""
        today = Calendar(find_zone(source.zone)).day(self._now())
        key = (period.id if period else "", version, source.zone, today)
        with self._lock:
            results = self._kept.get(key)
        if results is not None:
            return results
        result = look_back(source, period, timeline, self._now)
        if result is not None:
            with self._lock:
                self._kept[key] = result
                while len(self._kept) > KEPT:
                    del self._kept[next(iter(self._kept))]
        return result


def days_with_something(tally: Tally) -> list[str]:
    """The days on which anything happened, in order."""
    return sorted(
        day for day, counts in tally.days.items() if counts.get(SENT) or counts.get("tool_calls")
    )


def _all(kind: str, days: list[str]) -> tuple[Period, ...]:
    """The periods of a kind in which these days lie."""
    return tuple(dict.fromkeys(periods.around(kind, day) for day in days))


def _breathe(_done: int, _total: int) -> None:
    time.sleep(BREATH_SECONDS)
