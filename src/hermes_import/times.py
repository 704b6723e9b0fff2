"""Times as other agents write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_core.json_values import JsonValue


MAX_TIME: Final = 1e11  # seconds; what is larger is milliseconds


def seconds_of(value: JsonValue, default: float = 0.0) -> float:
    """Seconds since 1970 of a time: ISO text, seconds or milliseconds."""
    if isinstance(value, bool) or value is None:
        return default
    if isinstance(value, (int, float)):
        if not 0 <= value < MAX_TIME * 1000:  # also for what is not a number
            return default
        return value / 1000 if value > 1e11 else float(value)
    if not isinstance(value, str):
        return default
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return default
