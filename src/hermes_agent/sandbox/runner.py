"""Starts programs in the strongest sandbox that works on this machine.

A backend is chosen by a trial run, once per process. Where none works, programs run without
limits and `Sandbox.problem` is the reason: the approval rules then ask for every command.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from hermes_agent.sandbox import bubblewrap, landlock, seatbelt, seccomp
from hermes_agent.sandbox.git_state import HOOKS
from hermes_agent.sandbox.policy import (
    policy_as_json,
    policy_from_json,
    sandbox_environment,
    without_nested,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from hermes_agent.sandbox.namespaces import NetworkNamespace
    from hermes_agent.sandbox.policy import SandboxPolicy

MIN_LANDLOCK_ABI: Final = 3  # the first that covers truncating a file
EXEC_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from hermes_agent.sandbox.runner import exec_limited; exec_limited(sys.argv[2], sys.argv[3:])"
)
RULESET_SECONDS: Final = 10  # how long the rules of a policy are reused
WRITABLE_DEVICES: Final = (
    "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts",
)  # fmt: skip


class ProgramLaunch(NamedTuple):
    """A program to start: *gate* is a command line that runs outside and then executes it."""

    command: Sequence[str]
    cwd: Path
    policy: SandboxPolicy | None  # None: no limits
    environment: Mapping[str, str]
    gate: Sequence[str] = ()
    namespace: NetworkNamespace | None = None  # shared with other programs without the network
    options: Mapping[str, Any] = MappingProxyType({})

    @property
    def limits(self) -> SandboxPolicy:
        """The policy of a program that has one."""
        if self.policy is None:
            raise ValueError("a program without limits is not started in a sandbox")
        return self.policy


class Sandbox(NamedTuple):
    """A backend: its name, what it does not cover, and how it starts a program."""

    name: str  # bubblewrap, landlock, seatbelt or none
    problem: str | None  # why there is no sandbox, or only a weaker one
    start: Callable[[ProgramLaunch], subprocess.Popen[bytes]]

    @property
    def is_available(self) -> bool:
        """Whether programs are limited at all."""
        return self.name != "none"


@functools.cache
def find_sandbox() -> Sandbox:
    """The strongest backend whose trial run succeeds."""
    if sys.platform == "darwin":
        problem = seatbelt.find_problem()
        if problem is None:
            return Sandbox("seatbelt", None, start_in_seatbelt)
        return Sandbox("none", problem, start_bare)
    problem = bubblewrap.find_problem()
    if problem is None:
        return Sandbox("bubblewrap", None, start_in_bubblewrap)
    if landlock.abi_version() >= MIN_LANDLOCK_ABI and seccomp.is_supported():
        return Sandbox("landlock", problem, start_in_landlock)
    return Sandbox("none", f"{problem}, and the kernel has no Landlock", start_bare)


def limited_command(command: Sequence[str], cwd: Path, policy: SandboxPolicy | None) -> list[str]:
    """The command line that runs *command* under a policy, for a library that starts it itself.

    It is a small Python program that limits itself and then becomes the command. Without a
    sandbox it is the command.
    """
    sandbox = find_sandbox()
    if policy is None or not sandbox.is_available:
        return list(command)
    source = str(Path(__file__).resolve().parents[2])
    settings = json.dumps([sandbox.name, str(cwd), policy_as_json(policy)])
    return [sys.executable, "-I", "-S", "-c", EXEC_PROGRAM, source, settings, *command]


def exec_limited(settings: str, command: list[str]) -> NoReturn:
    """Become *command*, limited as `limited_command` was asked to."""
    backend, cwd, fields = json.loads(settings)
    policy = policy_from_json(fields)
    if backend == "bubblewrap":
        handle = os.memfd_create("hermes-seccomp", 0)
        os.write(handle, bubblewrap.build_filter(policy))
        os.lseek(handle, 0, os.SEEK_SET)
        temporary = bubblewrap.TEMPORARY
        command = bubblewrap.wrap(command, policy, Path(cwd), handle)
    elif backend == "seatbelt":
        temporary, command = policy.temporary, seatbelt.wrap(command, policy)
    else:
        temporary = policy.temporary
        seccomp.hide_own_memory()
        _limit_thread(policy, _ruleset(policy, 0))
    environment = dict(os.environ)
    if policy.is_limited:
        environment = sandbox_environment(environment, temporary)
    os.execvpe(command[0], command, environment)  # noqa: S606 - that is its purpose


def start_limited(launch: ProgramLaunch) -> subprocess.Popen[bytes]:
    """Start a program under its policy, in the sandbox of this machine."""
    return start_bare(launch) if launch.policy is None else find_sandbox().start(launch)


def start_bare(launch: ProgramLaunch) -> subprocess.Popen[bytes]:
    """Start a program without limits."""
    return _popen(launch, launch.command, launch.environment)


def start_in_bubblewrap(launch: ProgramLaunch) -> subprocess.Popen[bytes]:
    """Start a program in namespaces of its own."""
    policy = launch.limits
    handle = os.memfd_create("hermes-seccomp", 0)
    try:
        os.write(handle, bubblewrap.build_filter(policy))
        os.lseek(handle, 0, os.SEEK_SET)
        namespace = _shared_namespace(launch)
        enter = [] if namespace is None else namespace.enter()
        wrapped = bubblewrap.wrap(
            launch.command, policy, launch.cwd, handle, keeps_network=bool(enter)
        )
        environment = dict(_environment(launch, bubblewrap.TEMPORARY))
        if enter and namespace is not None:
            environment |= namespace.environment()
        return _popen(launch, [*enter, *wrapped], environment, pass_fds=[handle])
    finally:
        os.close(handle)


def _shared_namespace(launch: ProgramLaunch) -> NetworkNamespace | None:
    """The network namespace to start in; none where it would reach more than the policy allows."""
    namespace, policy = launch.namespace, launch.limits
    if namespace is None or policy.has_network:
        return None
    return namespace if policy.has_allowed_hosts or not namespace.leads_to_hosts else None


def start_in_seatbelt(launch: ProgramLaunch) -> subprocess.Popen[bytes]:
    """Start a program under `sandbox-exec`."""
    wrapped = seatbelt.wrap(launch.command, launch.limits)
    return _popen(launch, wrapped, _environment(launch, launch.limits.temporary))


def start_in_landlock(launch: ProgramLaunch) -> subprocess.Popen[bytes]:
    """Start it from a thread that limits itself first: the child inherits the limits.

    Landlock, seccomp and capabilities belong to a thread, so that the process stays as it is
    and no code runs between fork and exec.
    """
    environment = _environment(launch, launch.limits.temporary)
    seccomp.hide_own_memory()
    rules = _ruleset(launch.limits, int(time.monotonic() // RULESET_SECONDS))
    limits = (launch.limits, rules)
    with ThreadPoolExecutor(1, "hermes sandbox", _limit_thread, limits) as thread:
        return thread.submit(_popen, launch, launch.command, environment).result()


def _environment(launch: ProgramLaunch, temporary: Path) -> Mapping[str, str]:
    if not launch.limits.is_limited:
        return launch.environment
    return sandbox_environment(launch.environment, temporary)


def _popen(
    launch: ProgramLaunch, command: Sequence[str], environment: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*launch.gate, *command], cwd=launch.cwd, env=dict(environment), **launch.options, **options
    )


def _limit_thread(policy: SandboxPolicy, rules: landlock.Ruleset) -> None:
    """Limit this thread permanently; an error here makes the executor refuse the work."""
    seccomp.drop_capabilities()
    seccomp.restrict_thread(seccomp.build_filter(tuple(_denied_families(policy))))
    rules.restrict_thread()


@functools.lru_cache(maxsize=8)
def _ruleset(policy: SandboxPolicy, _period: int) -> landlock.Ruleset:
    """The rules of a policy; kept for a while, because they name hundreds of paths."""
    hidden = without_nested(path for path in policy.hidden if path.exists())
    readable = [*landlock.paths_around(hidden), *_real(policy.revealed)]
    if policy.is_limited:
        named = (policy.temporary, *map(Path, WRITABLE_DEVICES))
        writable = [*_landlock_writable(policy), *_real(named)]
    else:
        writable = [*landlock.paths_around(_never_written(policy)), *_landlock_writable(policy)]
    return landlock.Ruleset(readable, writable, network=policy.has_network)


def _never_written(policy: SandboxPolicy) -> list[Path]:
    """What no command writes in full mode: startup files, what is hidden, the program files.

    The hooks of a repository are restored instead: git creates files beside them.
    """
    start_up = [path for path in policy.protected if path.name not in {HOOKS, "config"}]
    paths = (*start_up, *policy.hidden, *policy.revealed, *policy.installation)
    return _real(path for path in paths if os.path.lexists(path))


def _landlock_writable(policy: SandboxPolicy) -> Iterator[Path]:
    """The writable paths; Landlock cannot deny what is below one of them."""
    revealed = {*policy.revealed, *policy.writable}
    carved = _real(
        [
            *(
                folder
                for folder in policy.protected
                if any(path.is_relative_to(folder) for path in policy.reopened)
            ),
            *(path for path in policy.hidden if not _contains_any(path, revealed)),
            *policy.installation,
        ]
    )
    for folder in _real(policy.writable):
        yield from landlock.paths_around(carved, folder)
    yield from _real(policy.reopened)


def _real(paths: Iterable[Path]) -> list[Path]:
    """Paths as a rule needs them: it follows no symbolic link."""
    return [Path(os.path.realpath(path)) for path in paths]


def _contains_any(folder: Path, paths: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for path in paths)


def _denied_families(policy: SandboxPolicy) -> Iterator[int]:
    yield from (seccomp.AF_VSOCK, seccomp.AF_PACKET)
    if not policy.has_local_sockets:
        yield seccomp.AF_UNIX
    if not policy.has_network:  # Landlock has no rule for UDP
        yield from (seccomp.AF_INET, seccomp.AF_INET6)
