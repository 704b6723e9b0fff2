"""A line on the terminal that counts down to the next attempt of a request."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from hermes_core.human_format import duration

if TYPE_CHECKING:
    from hermes_cli.output import CommandOutput

MIN_SECONDS: Final = 1.0  # a shorter pause needs no countdown


class Countdown:
    """Replaces its line every second until it is stopped; only on a terminal."""

    def __init__(self, out: CommandOutput) -> None:
        self._out = out
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def start(self, seconds: float) -> None:
        """Start to count down."""
        self.stop()
        if not self._out.is_watched or seconds < MIN_SECONDS:
            return
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(time.monotonic() + seconds, self._stop), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Remove the line."""
        if self._stop is not None and self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._stop = self._thread = None
            self._out.progress("")

    def _run(self, until: float, stop: threading.Event) -> None:
        while not stop.is_set():
            left = until - time.monotonic()
            self._out.progress(
                f"Next attempt in {duration(left)}…" if left > 0 else "Trying again…"
            )
            stop.wait(max(0.0, left) % 1.0 or 1.0)
