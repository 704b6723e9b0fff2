"""The texts of a recap: figures with names, and sentences about notable facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.recap.periods import WEEKDAY_NAMES, long_date, weekday

if TYPE_CHECKING:
    from hermes_achievements.recap.recap import LongestSession, Recap

COMPACT_COUNT_FROM: Final = 10_000
MILLION: Final = 1_000_000
REQUIRED_FIGURES: Final = 3
MAX_TITLE_CHARACTERS: Final = 60
FREQUENCY_WORDS: Final = {1: "once", 2: "twice"}
MIN_SHARE_CHANGE: Final = 0.001  # smaller changes of the failure share are reported as no change


def figures(recap: Recap) -> list[tuple[str, str]]:
    """The totals with their names; zeros are omitted, except in the first three."""
    totals = recap.totals
    shown = [
        ("conversations", totals.conversations, format_count(totals.conversations)),
        ("messages sent", totals.messages, format_count(totals.messages)),
        ("tool calls", totals.tool_calls, format_count(totals.tool_calls)),
        ("active time", totals.active_seconds, format_duration(totals.active_seconds)),
        ("files touched", totals.files_touched, format_count(totals.files_touched)),
        ("commits", totals.commits, format_count(totals.commits)),
        ("test runs", totals.test_runs, format_count(totals.test_runs)),
        ("tokens", totals.tokens, format_count(totals.tokens)),
        ("cost", totals.cost_cents, f"${totals.cost_cents / 100:,.2f}"),
    ]
    return [
        (name, text)
        for position, (name, count, text) in enumerate(shown)
        if count or position < REQUIRED_FIGURES
    ]


def summary(recap: Recap) -> str:
    """The period and its active days in one line."""
    days = date_range(recap)
    return f"{days} · active on {plural(recap.active_days, 'day')} of {len(recap.days):,}"


def date_range(recap: Recap) -> str:
    """The first and last day: '1 to 30 September 2026'."""
    first, last = long_date(recap.first_day), long_date(recap.last_day)
    if first == last:
        return first
    if recap.first_day[:7] == recap.last_day[:7]:
        return f"{int(recap.first_day[8:])} to {last}"
    if recap.first_day[:4] == recap.last_day[:4]:
        return f"{long_date(recap.first_day, with_year=False)} to {last}"
    return f"{first} to {last}"


def highlights(recap: Recap, *, is_public: bool = False) -> list[str]:
    """Sentences about notable facts; public sentences contain no session title."""
    longest = _longest_publicly if is_public else _longest
    sentences = [
        _best_day(recap),
        _streak(recap),
        _rhythm(recap),
        longest(recap.longest_by_time, recap.longest_by_calls),
        _failures(recap),
        *_comebacks(recap),
    ]
    return [item for item in sentences if item]


def _best_day(recap: Recap) -> str:
    best = recap.best_day
    if best is None:
        return ""
    name = f"{WEEKDAY_NAMES[weekday(best.day)]}, {long_date(best.day, with_year=False)}"
    calls = f" and {plural(best.tool_calls, 'tool call')}" if best.tool_calls else ""
    return f"Your best day was {name}: {plural(best.messages, 'message')}{calls}."


def _streak(recap: Recap) -> str:
    if recap.streak is None or recap.streak.days < 2:
        return ""
    last = long_date(recap.streak.last_day, with_year=False)
    return f"Your longest streak was {recap.streak.days:,} days, up to {last}."


def _rhythm(recap: Recap) -> str:
    if not any(recap.hours):
        return ""
    hour = recap.hours.index(max(recap.hours))
    day = WEEKDAY_NAMES[recap.weekdays.index(max(recap.weekdays))]
    return f"You wrote most between {hour}:00 and {hour + 1}:00, and on {day}s."


def _longest(by_time: LongestSession | None, by_calls: LongestSession | None) -> str:
    if by_time is None:
        return _busiest(by_calls) if by_calls else ""
    start = f"You stayed longest with {_quoted_title(by_time)}: {format_duration(by_time.amount)}"
    if by_calls is None:
        return f"{start}."
    if by_calls.session_id == by_time.session_id:
        calls = plural(by_calls.amount, "tool call")
        return f"{start}, and {calls}, the most of all."
    return f"{start}. {_busiest(by_calls)}"


def _busiest(longest: LongestSession) -> str:
    calls = plural(longest.amount, "tool call")
    return f"The most work was done in {_quoted_title(longest)}: {calls}."


def _longest_publicly(by_time: LongestSession | None, by_calls: LongestSession | None) -> str:
    facts = [
        f"the longest session took {format_duration(by_time.amount)}" if by_time else "",
        f"the busiest one made {plural(by_calls.amount, 'tool call')}" if by_calls else "",
    ]
    text = ", ".join(item for item in facts if item)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _quoted_title(longest: LongestSession) -> str:
    title = " ".join(longest.title.split())
    if not title:
        return longest.session_id
    if len(title) > MAX_TITLE_CHARACTERS:
        title = title[: MAX_TITLE_CHARACTERS - 1].rstrip() + "…"
    return f"“{title}”"


def _failures(recap: Recap) -> str:
    share, before = recap.failures.share, recap.failures.share_before
    if share is None:
        return ""
    text = f"{_percent(share)} of tool calls failed"
    if before is None:
        return f"{text}."
    days = plural(len(recap.days), "day")
    if abs(share - before) < MIN_SHARE_CHANGE:
        return f"{text}, as many as in the {days} before."
    verb = "down" if share < before else "up"
    return f"{text}, {verb} from {_percent(before)} in the {days} before."


def _comebacks(recap: Recap) -> list[str]:
    stubborn, tests, returns = recap.comebacks
    return [
        text
        for count, text in (
            (
                stubborn,
                f"{_frequency(stubborn)} a success came after ten or more failures in a row.",
            ),
            (tests, f"{_frequency(tests)} the tests passed after five or more failing runs."),
            (returns, f"{_frequency(returns)} you continued a conversation after a week or more."),
        )
        if count
    ]


def _frequency(count: int) -> str:
    return FREQUENCY_WORDS.get(count, f"{count:,} times").capitalize()


def plural(count: int, noun: str) -> str:
    """'1 day', '2 days'."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_count(count: int) -> str:
    """A count in compact form: '9,876', '12.3 k', '4.6 M', '5.0 B'."""
    if count < COMPACT_COUNT_FROM:
        return f"{count:,}"
    if count < MILLION:
        return f"{count / 1000:,.1f} k"
    if count < MILLION * 1000:
        return f"{count / MILLION:,.1f} M"
    return f"{count / MILLION / 1000:,.1f} B"


def format_duration(seconds: int) -> str:
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
