"""Runs the real command line as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.fork_server import ForkedProcess, ForkServer
from support.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
CLI = [sys.executable, "-P", "-m", "hermes_cli"]


@dataclass(frozen=True)
class Finished:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def command(*arguments: str) -> list[str]:
    """The command that starts `hermes`."""
    return [*CLI, *arguments]


Hermes = Callable[..., Finished]
FORK_SERVER = ForkServer()


def run_hermes(*arguments: str, **environment: str) -> Finished:
    """Run `hermes` with *arguments* to its end."""
    variables = {**os.environ, **environment}
    if needs_own_interpreter(environment):
        process = subprocess.run(
            command(*arguments), capture_output=True, check=False, env=variables,
            timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        code, out, err = process.returncode, process.stdout, process.stderr
    else:
        code, out, err = FORK_SERVER.run(list(arguments), variables, PATIENCE_SECONDS)
    # Bytes decoded by hand: universal newlines would hide a carriage return.
    return Finished(code, out.decode(), err.decode())


DASHBOARD_MODULES = (
    "hermes_dashboard.app", "pydantic.v1", "uvicorn.lifespan.on", "uvicorn.loops.asyncio",
    "uvicorn.loops.auto", "uvicorn.protocols.http.h11_impl", "uvicorn.protocols.websockets.auto",
)  # fmt: skip
GATEWAY_MODULES = (
    "gateway.platforms.api_server", "gateway.platforms.webhook", "gateway.process.runner",
    "uvicorn.lifespan.off",
)  # fmt: skip

DAEMON_MODULES = (
    "tui_gateway.daemon", "tui_gateway.entry", "tui_gateway.hub", "tui_gateway.server",
    "tui_gateway.websocket_server",
)  # fmt: skip

ACP_MODULES = ("hermes_acp.server", *DAEMON_MODULES)

Process = ForkedProcess | subprocess.Popen[bytes]


def start_program(
    program: str,
    *arguments: str,
    streams: tuple[int, int],
    stdin: int | None = None,
    preloaded: tuple[str, ...] = (),
    **environment: str,
) -> Process:
    """Start a program that runs on, with descriptors for stdout and stderr, and perhaps stdin.

    *program* is "hermes_cli", "gateway.process.main" or "tui_gateway.entry".
    """
    variables = {**os.environ, **environment}
    if needs_own_interpreter(environment):
        is_cli = program == "hermes_cli"
        full_command = command(*arguments) if is_cli else [sys.executable, "-P", "-m", program]
        out, err = streams
        given = subprocess.DEVNULL if stdin is None else stdin
        return subprocess.Popen(full_command, stdin=given, stdout=out, stderr=err, env=variables)
    return FORK_SERVER.start(program, list(arguments), variables, streams, preloaded, stdin=stdin)


def needs_own_interpreter(environment: dict[str, str]) -> bool:
    """Whether a variable takes effect at interpreter start."""
    startup_prefixes = ("PYTHON", "LC_", "LANG", "LD_")
    return any(name.startswith(startup_prefixes) for name in environment)
