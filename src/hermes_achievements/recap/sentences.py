"""A recap in words: the figures, and sentences about what stood out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.recap.periods import WEEKDAYS, spoken, weekday

if TYPE_CHECKING:
    from hermes_achievements.recap.recap import Longest, Recap

MANY: Final = 10_000
MILLION: Final = 1_000_000
LONGEST_TITLE: Final = 60
TIMES: Final = {1: "once", 2: "twice"}
NOTEWORTHY: Final = 0.001  # a share of failures that differs by less is the same


def figures(recap: Recap) -> list[tuple[str, str]]:
    """The sums with their names; what never happened is left out, the first three stay."""
    totals = recap.totals
    shown = [
        ("conversations", totals.conversations, amount(totals.conversations)),
        ("messages", totals.messages, amount(totals.messages)),
        ("tool calls", totals.tool_calls, amount(totals.tool_calls)),
        ("active time", totals.active_seconds, duration(totals.active_seconds)),
        ("files touched", totals.files_touched, amount(totals.files_touched)),
        ("commits", totals.commits, amount(totals.commits)),
        ("test runs", totals.test_runs, amount(totals.test_runs)),
        ("tokens", totals.tokens, amount(totals.tokens)),
        ("cost", totals.cost_cents, f"${totals.cost_cents / 100:,.2f}"),
    ]
    return [(name, said) for place, (name, count, said) in enumerate(shown) if count or place < 3]


def summary(recap: Recap) -> str:
    """When it was, in one line."""
    days = spread(recap)
    return f"{days} · active on {plural(recap.active_days, 'day')} of {len(recap.days):,}"


def spread(recap: Recap) -> str:
    """The first and the last day: '1 to 30 September 2026'."""
    first, last = spoken(recap.first_day), spoken(recap.last_day)
    if first == last:
        return first
    if recap.first_day[:7] == recap.last_day[:7]:
        return f"{int(recap.first_day[8:])} to {last}"
    if recap.first_day[:4] == recap.last_day[:4]:
        return f"{spoken(recap.first_day, with_year=False)} to {last}"
    return f"{first} to {last}"


def highlights(recap: Recap, *, is_public: bool = False) -> list[str]:
    """What stood out, in sentences; public ones name no conversation."""
    longest = _longest_publicly if is_public else _longest
    results = [
        _best_day(recap),
        _streak(recap),
        _rhythm(recap),
        longest(recap.longest_by_time, recap.longest_by_calls),
        _failures(recap),
        *_comebacks(recap),
    ]
    return [item for item in results if item]


def _best_day(recap: Recap) -> str:
    best = recap.best_day
    if best is None:
        return ""
    name = f"{WEEKDAYS[weekday(best.day)]}, {spoken(best.day, with_year=False)}"
    calls = f" and {plural(best.tool_calls, 'tool call')}" if best.tool_calls else ""
    return f"Your best day was {name}: {plural(best.messages, 'message')}{calls}."


def _streak(recap: Recap) -> str:
    if recap.streak is None or recap.streak.days < 2:
        return ""
    last = spoken(recap.streak.last_day, with_year=False)
    return f"Your longest streak was {recap.streak.days:,} days, up to {last}."


def _rhythm(recap: Recap) -> str:
    if not any(recap.hours):
        return ""
    hour = recap.hours.index(max(recap.hours))
    day = WEEKDAYS[recap.weekdays.index(max(recap.weekdays))]
    return f"You wrote most between {hour}:00 and {hour + 1}:00, and on {day}s."


def _longest(by_time: Longest | None, by_calls: Longest | None) -> str:
    if by_time is None:
        return _busiest(by_calls) if by_calls else ""
    spent = duration(by_time.amount)
    if by_calls is None:
        return f"You stayed longest with {_named(by_time)}: {spent}."
    if by_calls.session_id == by_time.session_id:
        calls = plural(by_calls.amount, "tool call")
        return f"You stayed longest with {_named(by_time)}: {spent}, and {calls}, the most of all."
    return f"You stayed longest with {_named(by_time)}: {spent}. {_busiest(by_calls)}"


def _busiest(one: Longest) -> str:
    return f"The most work was done in {_named(one)}: {plural(one.amount, 'tool call')}."


def _longest_publicly(by_time: Longest | None, by_calls: Longest | None) -> str:
    said = [
        f"the longest session took {duration(by_time.amount)}" if by_time else "",
        f"the busiest one made {plural(by_calls.amount, 'tool call')}" if by_calls else "",
    ]
    text = ", ".join(item for item in said if item)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _named(one: Longest) -> str:
    title = " ".join(one.title.split())
    if not title:
        return one.session_id
    if len(title) > LONGEST_TITLE:
        title = title[: LONGEST_TITLE - 1].rstrip() + "…"
    return f"“{title}”"


def _failures(recap: Recap) -> str:
    share, before = recap.failures.share, recap.failures.share_before
    if share is None:
        return ""
    said = f"{_percent(share)} of tool calls failed"
    if before is None:
        return f"{said}."
    days = plural(len(recap.days), "day")
    if abs(share - before) < NOTEWORTHY:
        return f"{said}, as many as in the {days} before."
    verb = "down" if share < before else "up"
    return f"{said}, {verb} from {_percent(before)} in the {days} before."


def _comebacks(recap: Recap) -> list[str]:
    stubborn, tests, returns = recap.comebacks
    return [
        said
        for count, said in (
            (stubborn, f"{_times(stubborn)} a success came after ten or more failures in a row."),
            (tests, f"{_times(tests)} the tests passed after five or more failing runs."),
            (returns, f"{_times(returns)} you took up a conversation after a week or more."),
        )
        if count
    ]


def _times(count: int) -> str:
    return TIMES.get(count, f"{count:,} times").capitalize()


def plural(count: int, noun: str) -> str:
    """'1 day', '2 days'."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def amount(count: int) -> str:
    """A count that stays short: '9,876', '12.3 k', '4.6 M', '5.0 B'."""
    if count < MANY:
        return f"{count:,}"
    if count < MILLION:
        return f"{count / 1000:,.1f} k"
    if count < MILLION * 1000:
        return f"{count / MILLION:,.1f} M"
    return f"{count / MILLION / 1000:,.1f} B"


def duration(seconds: int) -> str:
    """'45 s', '12 min', '3 h 20 min', '210 h'."""
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 6000:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 60:,} h"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
