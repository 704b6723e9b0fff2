"""A recap as a story: slides with one thought each. They contain no session titles and no cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.recap.periods import WEEKDAY_NAMES, long_date, weekday
from hermes_achievements.recap.sentences import date_range, format_count, format_duration, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_achievements.recap.recap import Recap, RecapCount

MAX_BARS: Final = 5
MAX_BADGES: Final = 5
MIN_STREAK_DAYS: Final = 2
HOURS_OF_DAY: Final = ((5, "at night"), (12, "in the morning"), (18, "in the afternoon"))


class SlideBar(NamedTuple):
    """A line with a bar: its share is that of the longest bar."""

    name: str
    value: str
    share: float


class Slide(NamedTuple):
    """A slide: a short heading, one large figure, sentences, and bars."""

    id: str
    heading: str
    figure: str
    lines: tuple[str, ...] = ()
    bars: tuple[SlideBar, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The slide as JSON data."""
        return {**self._asdict(), "bars": [bar._asdict() for bar in self.bars]}


def slides(recap: Recap, name: str) -> list[Slide]:
    """The slides of the recap of the period called *name*; those without content are omitted."""
    if recap.is_empty:
        return []
    found = [
        _opening(recap, name),
        _conversations(recap),
        _work(recap),
        _best_day(recap),
        _streak(recap),
        _rhythm(recap),
        _favourites("tools", "Your most used tools", recap.tools),
        _favourites("programs", "Your most used programs", recap.programs),
        _favourites("models", "Your most used models", recap.models),
        _comebacks(recap),
        _badges(recap),
        _closing(recap, name),
    ]
    return [slide for slide in found if slide is not None]


def find_slide(recap: Recap, name: str, slide_id: str) -> Slide | None:
    """The slide with this ID; None if the recap has none."""
    return next((slide for slide in slides(recap, name) if slide.id == slide_id), None)


def _opening(recap: Recap, name: str) -> Slide:
    active = f"You were active on {plural(recap.active_days, 'day')} of {len(recap.days):,}."
    return Slide("opening", "Your recap", name, (date_range(recap), active))


def _conversations(recap: Recap) -> Slide | None:
    totals = recap.totals
    if not totals.conversations:
        return None
    time = f"They took {format_duration(totals.active_seconds)}." if totals.active_seconds else ""
    sent = f"You sent {plural(totals.messages, 'message')}."
    return Slide(
        "conversations", "Conversations", format_count(totals.conversations),
        tuple(line for line in (sent, time) if line),
    )  # fmt: skip


def _work(recap: Recap) -> Slide | None:
    totals = recap.totals
    if not totals.tool_calls:
        return None
    parts = (
        (totals.files_touched, "file", "touched"),
        (totals.commits, "commit", "made"),
        (totals.test_runs, "test run", "started"),
    )
    lines = tuple(f"{plural(count, noun)} {verb}." for count, noun, verb in parts if count)
    return Slide("work", "Tool calls for you", format_count(totals.tool_calls), lines)


def _best_day(recap: Recap) -> Slide | None:
    best = recap.best_day
    if best is None:
        return None
    calls = f" and {plural(best.tool_calls, 'tool call')}" if best.tool_calls else ""
    return Slide(
        "best-day", "Your most active day", long_date(best.day, with_year=False),
        (f"A {WEEKDAY_NAMES[weekday(best.day)]}: {plural(best.messages, 'message')}{calls}.",),
    )  # fmt: skip


def _streak(recap: Recap) -> Slide | None:
    if recap.streak is None or recap.streak.days < MIN_STREAK_DAYS:
        return None
    last = long_date(recap.streak.last_day, with_year=False)
    rule = "A missed day in any seven does not end a streak."
    return Slide(
        "streak", "Your longest streak", plural(recap.streak.days, "day"), (f"Up to {last}.", rule)
    )


def _rhythm(recap: Recap) -> Slide | None:
    if not any(recap.hours):
        return None
    hour = recap.hours.index(max(recap.hours))
    part = next((text for end, text in HOURS_OF_DAY if hour < end), "in the evening")
    day = WEEKDAY_NAMES[recap.weekdays.index(max(recap.weekdays))]
    highest = max(recap.weekdays) or 1
    counts = zip(WEEKDAY_NAMES, recap.weekdays, strict=True)
    bars = tuple(SlideBar(name, f"{count:,}", count / highest) for name, count in counts)
    lines = (f"You wrote most {part}, and on {day}s.",)
    return Slide("rhythm", "Your hour of the day", f"{hour}:00", lines, bars)


def _favourites(slide_id: str, heading: str, counted: Sequence[RecapCount]) -> Slide | None:
    if not counted:
        return None
    shown = counted[:MAX_BARS]
    bars = tuple(
        SlideBar(item.name, format_count(item.times), item.times / shown[0].times) for item in shown
    )
    return Slide(slide_id, heading, shown[0].name, (), bars)


def _comebacks(recap: Recap) -> Slide | None:
    stubborn, tests, returns = recap.comebacks
    lines = (
        f"{plural(stubborn, 'time')} a success came after ten or more failures in a row."
        if stubborn else "",
        f"{plural(tests, 'time')} the tests passed after five or more failing runs."
        if tests else "",
        f"{plural(returns, 'conversation')} continued after a week or more." if returns else "",
    )  # fmt: skip
    total = stubborn + tests + returns
    if not total:
        return None
    return Slide("comebacks", "Comebacks", format_count(total), tuple(filter(None, lines)))


def _badges(recap: Recap) -> Slide | None:
    if not recap.tier_ups:
        return None
    latest = sorted(recap.tier_ups, key=lambda step: -step["at"])[:MAX_BADGES]
    names = tuple(f"{step['name']} ({step['tier']})" for step in latest)
    return Slide("badges", "Badges and tiers earned", format_count(len(recap.tier_ups)), names)


def _closing(recap: Recap, name: str) -> Slide:
    totals = recap.totals
    bars = [
        ("conversations", totals.conversations), ("messages sent", totals.messages),
        ("tool calls", totals.tool_calls), ("badges and tiers", len(recap.tier_ups)),
    ]  # fmt: skip
    lines = tuple(f"{format_count(count)} {label}" for label, count in bars if count)
    return Slide("closing", "That was", name, lines)
