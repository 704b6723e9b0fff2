"""Runs `hermes` on a pseudo-terminal, for interactive commands."""

from __future__ import annotations

import os
import pty
from typing import TYPE_CHECKING, Any

import pexpect
from ptyprocess import PtyProcess

from support.command_line import CLI, FORK_SERVER, command, needs_own_interpreter
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from support.fork_server import ForkedProcess

LINES_AND_COLUMNS = (24, 80)


def on_terminal(*arguments: str, **environment: str) -> pexpect.spawn[str]:
    """Start `hermes` on a terminal."""
    return spawn(*arguments, environment={"TERM": "dumb", **environment})


def spawn(
    *arguments: str, environment: dict[str, str] | None = None, **options: Any
) -> pexpect.spawn[str]:
    """Start `hermes` on a terminal, with options of `pexpect.spawn`."""
    program, *rest = command(*arguments)
    # Set explicitly: readline in this process puts COLUMNS into the C environment.
    env: Any = {**os.environ, **(environment or {})}
    kind = pexpect.spawn if needs_own_interpreter(environment or {}) else _ForkedSpawn
    return kind(
        program, rest, encoding="utf-8", env=env, **{"timeout": PATIENCE_SECONDS, **options}
    )


def interrupt(child: pexpect.spawn[str]) -> None:
    """Press Ctrl+C until the program ends: Python misses one that comes as it starts to wait."""
    child.sendintr()
    while child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=1):
        child.sendintr()
    child.close()


def wait_for_exit(child: pexpect.spawn[str]) -> int | None:
    """Wait for the end; return the exit code."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


class _ForkedSpawn(pexpect.spawn):  # type: ignore[type-arg]
    """A process of the fork server on a terminal."""

    def _spawnpty(self, args: list[bytes], **options: Any) -> PtyProcess:
        ours, theirs = pty.openpty()
        arguments = [argument.decode() for argument in args[len(CLI) :]]
        terminal = _ForkedPtyProcess(ours)
        try:
            terminal.setwinsize(*options.get("dimensions", LINES_AND_COLUMNS))
            terminal.process = FORK_SERVER.start_on_terminal(arguments, options["env"], theirs)
        finally:
            os.close(theirs)
        terminal.pid = terminal.process.pid
        return terminal


class _ForkedPtyProcess(PtyProcess):  # type: ignore[misc]
    """A process that is no child of this one: the fork server knows its exit code."""

    process: ForkedProcess

    def __init__(self, descriptor: int) -> None:
        super().__init__(0, descriptor)

    def isalive(self) -> bool:
        # After the end of the output, `PtyProcess` waits as well.
        code = self.process.wait(PATIENCE_SECONDS) if self.flag_eof else self.process.poll()
        return self._is_alive_after(code)

    def wait(self) -> int | None:
        self._is_alive_after(self.process.wait())
        return self.exitstatus

    def _is_alive_after(self, code: int | None) -> bool:
        if code is None:
            return True
        self.terminated = True
        self.exitstatus, self.signalstatus = (code, None) if code >= 0 else (None, -code)
        self.status = code << 8 if code >= 0 else -code  # as `os.waitpid` returns it
        return False
