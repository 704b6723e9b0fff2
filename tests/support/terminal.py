"""Runs `hermes` on a pseudo-terminal, for interactive commands."""

from __future__ import annotations

import os
from typing import Any

import pexpect

from support.command_line import command
from support.waiting import PATIENCE_SECONDS


def on_terminal(*arguments: str, **environment: str) -> pexpect.spawn[str]:
    """Start `hermes` on a terminal."""
    program, *rest = command(*arguments)
    env: Any = {**os.environ, "TERM": "dumb", **environment}
    return pexpect.spawn(program, rest, encoding="utf-8", env=env, timeout=PATIENCE_SECONDS)


def wait_for_exit(child: pexpect.spawn[str]) -> int | None:
    """Wait for the end; return the exit code."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus
