"""Option types and the session filters shared by commands."""

import argparse
import re
import time
from typing import TypedDict

DAY_SECONDS = 86_400
UNIT_SECONDS = {"m": 60, "h": 3600, "d": DAY_SECONDS, "w": 7 * DAY_SECONDS, "y": 365 * DAY_SECONDS}
TIME_FORMATS = "5h, 2d, 1w (ago), 2026-03-01 or 2026-03-01T14:30"


def parse_time(text: str) -> float:
    """Parse a point in time: an age, or a date with or without a time."""
    age = re.fullmatch(r"(\d+)([mhdwy])", text.strip())
    if age:
        return time.time() - int(age[1]) * UNIT_SECONDS[age[2]]
    from datetime import datetime  # noqa: PLC0415 - most commands are given no moment

    try:
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid time {text!r}: use {TIME_FORMATS}") from None


def parse_age_days(text: str) -> int:
    """Parse a number of days: '90', '90d', '12w'."""
    age = re.fullmatch(r"(\d+)([dwy]?)", text.strip())
    if not age:
        raise argparse.ArgumentTypeError(f"invalid age {text!r}: use days (90) or weeks (12w)")
    return int(age[1]) * UNIT_SECONDS[age[2] or "d"] // DAY_SECONDS


def parse_positive(text: str) -> int:
    """Parse an integer of at least 1."""
    return _parse_number(text, 1)


def parse_non_negative(text: str) -> int:
    """Parse an integer of at least 0."""
    return _parse_number(text, 0)


def _parse_number(text: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:  # 64 bits in the database
        problem = f"invalid number {text[:30]!r}: use an integer of at least {least}"
        raise argparse.ArgumentTypeError(f"{problem} and at most 18 digits")
    return int(text)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that filter conversations."""
    parser.add_argument("--source", help="filter by source: cli, telegram, …")
    parser.add_argument(
        "--since", type=parse_time, metavar="WHEN", help=f"active since: {TIME_FORMATS}"
    )
    parser.add_argument(
        "--until", type=parse_time, metavar="WHEN", help=f"not active since: {TIME_FORMATS}"
    )
    parser.add_argument(
        "--dir", metavar="DIR", help="filter by working folder (includes subfolders)"
    )
    parser.add_argument("--model", help="filter by model name or a part of it")
    parser.add_argument("--min-messages", type=parse_non_negative, default=0, metavar="N",
                        help="minimum number of messages")  # fmt: skip


class ListFilters(TypedDict, total=False):
    """Filters as arguments of `SessionDB.lists.sessions`."""

    source: str | None
    active_since: float | None
    active_until: float | None
    cwd_prefix: str | None
    model: str | None
    min_message_count: int


def session_filter(arguments: argparse.Namespace) -> ListFilters:
    """The filters that were given."""
    import os  # noqa: PLC0415 - a folder is rarely given

    folder = os.path.abspath(arguments.dir) if arguments.dir else None  # noqa: PTH100 - no links
    return {
        "source": arguments.source,
        "active_since": arguments.since,
        "active_until": arguments.until,
        "cwd_prefix": folder,
        "model": arguments.model,
        "min_message_count": arguments.min_messages,
    }
