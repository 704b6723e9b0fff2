"""How long to wait before the next try: longer with each failure in a row."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
STEADY_SECONDS: Final = 30.0  # a connection that ends sooner has failed, too
REFUSED_TIMES: Final = 5  # of the longest pause, where a platform does not want us


class Patience:
    """Counts failures of one kind of try."""

    def __init__(
        self, pauses: tuple[float, ...] = PAUSES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pauses = pauses
        self._clock = clock
        self._failures = 0
        self._opened: float | None = None

    def succeed(self) -> None:
        """It worked."""
        self._failures = 0

    def opened(self) -> None:
        """A connection was opened, which has worked only if it lasts."""
        self._opened = self._clock()

    @property
    def is_steady(self) -> bool:
        """Whether the connection that was opened last has lasted."""
        return self._opened is not None and self._clock() - self._opened >= STEADY_SECONDS

    def pause(self, *, is_refused: bool = False) -> float:
        """The seconds to wait after one more failure."""
        if self.is_steady:
            self._failures = 0
        self._opened = None
        place = min(self._failures, len(self._pauses) - 1)
        self._failures += 1
        return self._pauses[-1] * REFUSED_TIMES if is_refused else self._pauses[place]
