"""The process that scans for a service, which must not outlive it nor hold up its exit."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess


class ScanProcess:
    """The one that is under way, if any."""

    def __init__(self) -> None:
        self.is_exiting = False
        self._process: BaseProcess | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def started(self, process: BaseProcess) -> None:
        """Take care of *process* from now on."""
        with self._lock:
            if self._owner != os.getpid():
                self._owner = os.getpid()
                # Exit hooks run in reverse order: this one has to come before that of
                # multiprocessing, which waits for every process there is.
                atexit.register(self._exit)
            self._process = process
            if self.is_exiting:
                process.terminate()

    def end(self) -> None:
        """End it; what it has read is kept, and the next scan goes on from there."""
        with self._lock:
            process = self._process
            self._process = None
            if process is not None and self._owner == os.getpid() and process.is_alive():
                process.terminate()

    def close(self) -> None:
        """End it, and no longer wait for the exit."""
        self.end()
        atexit.unregister(self._exit)
        self._owner = 0

    def _exit(self) -> None:
        self.is_exiting = True
        self.end()
