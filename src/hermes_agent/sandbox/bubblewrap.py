"""bubblewrap: namespaces of the kernel with a view of the file system made for one command.

The command sees the whole system read-only, its writable folders, a private /tmp, empty
folders in place of hidden ones, and only its own processes. Without the network it has its own
loopback interface. The process group stays ours, so that ending a command works as without a
sandbox: the kernel ends every process of the namespace with its first one.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.sandbox import seccomp
from hermes_agent.sandbox.policy import without_nested
from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_agent.sandbox.policy import SandboxPolicy

PROGRAM: Final = "bwrap"
PROBE_SECONDS: Final = 10.0
NULL: Final = "/dev/null"
NAMESPACES: Final = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
# Without this a command of root keeps its capabilities, and unmounts what hides a folder.
NO_CAPABILITIES: Final = ("--cap-drop", "ALL")
# The kernel lets the user 0 write its settings without any capability, in a sandbox, too.
PROC: Final = ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
TEMPORARY: Final = Path("/tmp")  # noqa: S108 - where a command sees its private folder


def find_problem() -> str | None:
    """Why bubblewrap cannot be used here; None when a trial run succeeds.

    Only a run tells: the program may be there and user namespaces forbidden, as in many
    containers and on systems that allow them per program.
    """
    program = system_program(PROGRAM)
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    if not seccomp.is_supported():
        return "the system calls of this processor are not known"
    arguments = [
        program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net",
        "--ro-bind", "/", "/", "--dev", "/dev", *PROC, "--tmpfs", str(TEMPORARY), "--", "true",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            arguments, capture_output=True, stdin=subprocess.DEVNULL, check=False,
            timeout=PROBE_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap failed: {error}"
    if done.returncode != 0:
        return f"bubblewrap failed: {done.stderr.decode(errors='replace').strip()}"
    return None


def wrap(
    command: Sequence[str],
    policy: SandboxPolicy,
    cwd: Path,
    filter_fd: int,
    *,
    keeps_network: bool = False,
) -> list[str]:
    """The command line that runs *command* under *policy*.

    With *keeps_network* it stays in the network namespace in which it is started.
    """
    program = system_program(PROGRAM) or PROGRAM
    return [
        program,
        *NAMESPACES,
        *NO_CAPABILITIES,
        *([] if keeps_network or policy.has_network else ["--unshare-net"]),
        *_system(policy),
        *_writable(policy),
        *_around_installation(policy),
        *_protected(policy),
        *_reopened(policy),
        *_installation(policy),
        *_hidden(policy),
        *_revealed(policy),
        "--chdir", str(cwd),
        "--seccomp", str(filter_fd),
        "--", *command,
    ]  # fmt: skip


def build_filter(policy: SandboxPolicy) -> bytes:
    """The seccomp filter; the network needs none, it has its own namespace."""
    denied = [seccomp.AF_VSOCK, seccomp.AF_PACKET]
    if not policy.has_local_sockets:
        denied.append(seccomp.AF_UNIX)
    return seccomp.build_filter(tuple(denied))


def _system(policy: SandboxPolicy) -> list[str]:
    bind = "--ro-bind" if policy.is_limited else "--bind"
    arguments = [bind, "/", "/", "--dev", "/dev", *PROC]
    if policy.is_limited:
        arguments += ["--bind", str(policy.temporary), str(TEMPORARY)]
        shown = [path for path in policy.visible if path.is_relative_to(TEMPORARY)]
        for path in without_nested(shown):
            arguments += _same("--ro-bind", path)
    return arguments


def _writable(policy: SandboxPolicy) -> list[str]:
    if not policy.is_limited:
        return []
    folders = without_nested(policy.writable)
    return [part for folder in folders if folder.exists() for part in _same("--bind", folder)]


def _protected(policy: SandboxPolicy) -> list[str]:
    return [part for path in policy.protected if path.exists() for part in _same("--ro-bind", path)]


def _reopened(policy: SandboxPolicy) -> list[str]:
    if not policy.is_limited:
        return []
    return [part for path in policy.reopened for part in _same("--bind", path)]


def _around_installation(policy: SandboxPolicy) -> list[str]:
    """The writable folders around the program files: one that is a mount cannot be renamed."""
    arguments: list[str] = []
    for path in without_nested(policy.installation):
        tops = [*policy.writable, *([] if policy.is_limited else [Path("/")])]
        for parent in reversed(path.parents):
            if parent not in tops and any(parent.is_relative_to(top) for top in tops):
                arguments += _same("--bind", parent)
    return arguments


def _installation(policy: SandboxPolicy) -> list[str]:
    paths = (path for path in without_nested(policy.installation) if path.exists())
    return [part for path in paths for part in _same("--ro-bind", path)]


def _hidden(policy: SandboxPolicy) -> list[str]:
    arguments: list[str] = []
    for path in without_nested(policy.hidden):
        if path.is_dir():
            arguments += ["--tmpfs", str(path)]
        elif path.exists():
            arguments += ["--ro-bind", NULL, str(path)]
    return arguments


def _revealed(policy: SandboxPolicy) -> list[str]:
    """Exceptions below hidden folders: writable where the policy allows it."""
    arguments: list[str] = []
    for path in policy.revealed:
        if path.exists():
            is_writable = any(path.is_relative_to(folder) for folder in policy.writable)
            arguments += _same("--bind" if is_writable else "--ro-bind", path)
    for folder in without_nested(policy.hidden):
        if folder.is_dir():
            arguments += ["--remount-ro", str(folder)]
    return arguments


def _same(option: str, path: Path) -> list[str]:
    """A mount of a path onto itself; a symbolic link is mounted where it points to."""
    real = os.path.realpath(path)
    return [option, real, real]
