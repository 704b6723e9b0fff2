"""The plan of a history: number, lengths, lineage and start times of sessions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

MEDIAN_ROWS: Final = 15
MAX_ROWS: Final = 1000
HISTORY_DAYS: Final = 425
ENDS_AT: Final = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
DAY_SECONDS: Final = 86_400
# Activity by hour of the day, from midnight.
HOUR_WEIGHTS: Final = (
    2,
    1,
    1,
    1,
    1,
    1,
    3,
    6,
    10,
    14,
    15,
    14,
    9,
    12,
    15,
    14,
    12,
    9,
    7,
    8,
    9,
    8,
    6,
    4,
)
# Share of sessions that start on a day of the week, from Monday.
WEEKDAY_SHARES: Final = (1.0, 1.0, 0.95, 1.0, 0.8, 0.35, 0.45)

ROOT: Final = "root"
CONTINUATION: Final = "continuation"
BRANCH: Final = "branch"
DELEGATE: Final = "delegate"

SOURCES: Final = {
    "cli": 38, "tui": 18, "telegram": 14, "cron": 12, "matrix": 5, "discord": 4, "slack": 3,
    "whatsapp": 2, "signal": 1, "api-server": 2, "acp": 1,
}  # fmt: skip
CHATS: Final = frozenset({"telegram", "matrix", "discord", "slack", "whatsapp", "signal"})


@dataclass(frozen=True)
class Size:
    """Size of a history; without `total_bytes`, messages have their natural lengths."""

    sessions: int
    messages: int
    total_bytes: int | None = None
    kind: str = "native"
    has_search: bool = False


PRESETS: Final = {
    "small": Size(500, 26_000),
    "pages": Size(3_000, 50_758),
    "quarter": Size(2_141, 132_491, 1_500_000_000),
    "hints": Size(9_600, 500_000, 1_000_000_000),
    "power": Size(25_000, 1_300_000, 2_000_000_000),
    "seeds": Size(8_564, 603_542, 6_400_000_000, "schema16", has_search=True),
}


def size_in_bytes(text: str) -> int:
    """'1.3GB' as a number of bytes."""
    match = re.fullmatch(r"([\d.]+)\s*([kmg]?)b?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write for example 1.3GB")
    return int(float(match[1]) * 1000 ** " kmg".index(match[2] or " "))


@dataclass
class Planned:
    """A planned session, and the sessions that follow from it."""

    kind: str
    source: str
    rows: int
    starts_at: float = 0.0
    then: list[Planned] = field(default_factory=list)
    during: list[Planned] = field(default_factory=list)


def session_lengths(rng: Random, sessions: int, messages: int) -> list[int]:
    """Heavy-tailed lengths that add up to *messages* exactly."""
    if not sessions <= messages <= sessions * MAX_ROWS:
        raise ValueError(f"{messages} messages do not fit into {sessions} sessions")
    normal = [rng.gauss(0, 1) for _ in range(sessions)]

    def lengths(spread: float) -> list[int]:
        return [min(MAX_ROWS, max(1, round(MEDIAN_ROWS * math.exp(spread * z)))) for z in normal]

    low, high = 0.0, 6.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(lengths(middle)) < messages else (low, middle)
    result = lengths(low)
    missing = messages - sum(result)
    while missing:
        position = rng.randrange(sessions)
        step = 1 if missing > 0 else -1
        if 1 <= result[position] + step <= MAX_ROWS:
            result[position] += step
            missing -= step
    return result


def conversations(rng: Random, lengths: list[int]) -> list[Planned]:
    """All sessions, as trees whose roots start at typical times."""
    remaining = iter(lengths)
    roots: list[Planned] = []
    names, weights = list(SOURCES), list(SOURCES.values())
    for rows in remaining:
        source = rng.choices(names, weights)[0]
        root = Planned(ROOT, source, rows)
        _add_relatives(rng, root, remaining)
        roots.append(root)
    times = sorted(_start_time(rng) for _ in roots)
    for root, starts_at in zip(roots, times, strict=True):
        root.starts_at = starts_at
    return roots


def _add_relatives(rng: Random, root: Planned, remaining: Iterator[int]) -> None:
    """Add continuations after compression, branches, and delegates."""
    last = root
    while rng.random() < 0.06 and (rows := next(remaining, None)):
        continuation = Planned(CONTINUATION, root.source, rows)
        last.then.append(continuation)
        last = continuation
    if rng.random() < 0.04 and (rows := next(remaining, None)):
        last.then.append(Planned(BRANCH, root.source, rows))
    while rng.random() < 0.12 and (rows := next(remaining, None)):
        root.during.append(Planned(DELEGATE, "subagent", rows))


def _start_time(rng: Random) -> float:
    """A start time within fourteen months: more frequent recently and in working hours."""
    first_day = ENDS_AT - HISTORY_DAYS * DAY_SECONDS
    while True:
        midnight = first_day + int(HISTORY_DAYS * math.sqrt(rng.random())) * DAY_SECONDS
        if rng.random() < WEEKDAY_SHARES[datetime.fromtimestamp(midnight, UTC).weekday()]:
            break
    hour = rng.choices(range(24), HOUR_WEIGHTS)[0]
    return midnight + hour * 3600 + rng.random() * 3600
