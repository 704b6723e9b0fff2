"""Times as other agents write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_core.json_values import JsonValue


def seconds_of(value: JsonValue, default: float = 0.0) -> float:
    """Seconds since 1970 of a time: ISO text, seconds or milliseconds."""
    if isinstance(value, bool) or value is None:
        return default
    if isinstance(value, (int, float)):
        return value / 1000 if value > 1e11 else float(value)
    if not isinstance(value, str):
        return default
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return default
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
