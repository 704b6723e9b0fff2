"""Signals that ask a long-running process to stop.

A signal that is ignored when the process starts stays ignored: `nohup` ignores SIGHUP and a
shell without job control ignores SIGINT for background jobs, so that the process outlives the
terminal. SIGTERM is always handled.
"""

from __future__ import annotations

import signal


def stop_signals() -> list[signal.Signals]:
    """The signals to stop on: SIGTERM, and SIGINT and SIGHUP unless the parent ignored them."""
    optional = (signal.SIGINT, signal.SIGHUP)
    return [signal.SIGTERM, *(s for s in optional if signal.getsignal(s) != signal.SIG_IGN)]
