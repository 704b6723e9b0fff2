"""Ports on loopback for servers that tests stop and start again."""

from __future__ import annotations

import contextlib
import random
import socket


def free_port() -> int:
    """A port below the ephemeral range, so that it stays free while nothing listens."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
