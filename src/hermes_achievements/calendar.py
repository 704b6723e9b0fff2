"""Calendar days and hours in the time zone of the user."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import tzinfo

QUARTER_HOUR_SECONDS: Final = (
    900  # seconds; every zone's offset is a multiple of a quarter of an hour
)
EARLIEST_TIMESTAMP: Final = datetime(1970, 1, 2, tzinfo=UTC).timestamp()
LATEST_TIMESTAMP: Final = datetime(9998, 1, 1, tzinfo=UTC).timestamp()


class LocalTime(NamedTuple):
    """A local time: the day as `YYYY-MM-DD`, the hour, and the weekday with Monday as 0."""

    day: str
    hour: int
    weekday: int


class Calendar:
    """Converts timestamps to one time zone; results are cached per quarter of an hour."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._cache: dict[int, LocalTime] = {}

    def at(self, moment: float) -> LocalTime:
        """The local time of a timestamp."""
        quarter = int(moment // QUARTER_HOUR_SECONDS)
        result = self._cache.get(quarter)
        if result is None:
            result = self._cache[quarter] = self._local(quarter * QUARTER_HOUR_SECONDS)
        return result

    def day(self, moment: float) -> str:
        """The local day of a timestamp."""
        return self.at(moment).day

    def _local(self, moment: float) -> LocalTime:
        # Timestamps of a wrong clock must not stop a scan.
        moment = min(max(moment, EARLIEST_TIMESTAMP), LATEST_TIMESTAMP)
        local = datetime.fromtimestamp(moment, self.zone)
        return LocalTime(local.date().isoformat(), local.hour, local.weekday())


def days_between(first: str, last: str) -> int:
    """The number of days from *first* to *last*."""
    return (date.fromisoformat(last) - date.fromisoformat(first)).days
