"""macOS: a profile for `sandbox-exec`.

Everything is allowed but writes outside the writable folders, reads of hidden ones, and the
network without a grant. Written by its documentation; not run in our tests, which have no Mac.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from hermes_agent.sandbox.policy import SandboxPolicy

PROGRAM: Final = "sandbox-exec"
PROBE_SECONDS: Final = 10.0
DEVICES: Final = (
    '(allow file-write* (regex #"^/dev/(null|zero|tty|fd/|stdout|stderr|dtracehelper)"))'
)


def find_problem() -> str | None:
    """Why sandbox-exec cannot be used here; None when a trial run succeeds."""
    program = system_program(PROGRAM)
    if program is None:
        return "sandbox-exec is not installed"
    try:
        done = subprocess.run(
            [program, "-p", "(version 1)(allow default)(deny network*)", "/usr/bin/true"],
            capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=PROBE_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"sandbox-exec failed: {error}"
    if done.returncode != 0:
        return f"sandbox-exec failed: {done.stderr.decode(errors='replace').strip()}"
    return None


def wrap(command: Sequence[str], policy: SandboxPolicy) -> list[str]:
    """The command line that runs *command* under *policy*."""
    return [system_program(PROGRAM) or PROGRAM, "-p", build_profile(policy), *command]


def build_profile(policy: SandboxPolicy) -> str:
    """The rules; a later one wins over an earlier one."""
    rules = ["(version 1)", "(allow default)"]
    if policy.is_limited:
        rules += ["(deny file-write*)", DEVICES]
        rules += _rule("allow file-write*", [*policy.writable, policy.temporary])
    rules += _rule("deny file-write*", policy.protected)
    rules += _rule("allow file-write*", policy.reopened)
    rules += _rule("deny file-write*", policy.installation)
    rules += _rule("deny file-read* file-write*", policy.hidden)
    rules += _rule("allow file-read*", policy.revealed)
    writable = [path for path in policy.revealed if _is_below(path, policy.writable)]
    rules += _rule("allow file-write*", writable)
    if not policy.has_network:
        rules += ["(deny network*)", '(allow network* (local ip "localhost:*"))']
        rules += ['(allow network-outbound (remote ip "localhost:*"))']
    if not policy.has_local_sockets:
        rules.append("(deny network-outbound (remote unix-socket))")
    return "\n".join(rules)


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _rule(action: str, paths: Iterable[Path]) -> list[str]:
    """A rule for each path with everything below it, as the kernel resolves it."""
    return [f"({action} (subpath {_quoted(os.path.realpath(path))}))" for path in paths]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
