"""The start of the daemon by its clients, as a process with an interpreter of its own."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from support.daemons import stopping_daemon
from support.waiting import wait_until
from tui_gateway import daemon


def children() -> set[int]:
    """The running child processes."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    files = Path("/proc/self/task").glob("*/children")
    return {int(word) for file in files for word in file.read_text().split()}


def test_concurrent_clients_start_one_daemon() -> None:
    pids: list[int] = []
    before = children()
    threads = [
        threading.Thread(target=lambda: pids.append(daemon.ensure_running().pid)) for _ in range(4)
    ]
    with stopping_daemon(has_own_interpreter=True):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(pids) == 4
        assert len(set(pids)) == 1
        # The others find a running daemon and exit.
        wait_until(lambda: children() - before == {pids[0]})
