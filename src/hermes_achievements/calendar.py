"""Days and hours as the user sees them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import tzinfo

QUARTER: Final = 900  # seconds; every zone's offset is a multiple of a quarter of an hour
EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC).timestamp()
LATEST: Final = datetime(9998, 1, 1, tzinfo=UTC).timestamp()


class Local(NamedTuple):
    """A moment on the user's wall: the day as `YYYY-MM-DD`, the hour, Monday as 0."""

    day: str
    hour: int
    weekday: int


class Calendar:
    """Moments in one time zone, remembered by the quarter of an hour."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._known: dict[int, Local] = {}

    def at(self, moment: float) -> Local:
        """Where *moment* falls."""
        quarter = int(moment // QUARTER)
        result = self._known.get(quarter)
        if result is None:
            result = self._known[quarter] = self._local(quarter * QUARTER)
        return result

    def day(self, moment: float) -> str:
        """The day of *moment*."""
        return self.at(moment).day

    def _local(self, moment: float) -> Local:
        moment = min(max(moment, EARLIEST), LATEST)  # damaged clocks do not stop a scan
        local = datetime.fromtimestamp(moment, self.zone)
        return Local(local.strftime("%Y-%m-%d"), local.hour, local.weekday())


def days_between(first: str, last: str) -> int:
    """How many days lie between two days."""
    return (date.fromisoformat(last) - date.fromisoformat(first)).days
