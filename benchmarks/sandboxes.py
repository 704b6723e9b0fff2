"""What a sandbox adds to a command, compared with the same command without one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import Figure, Work, interleave
from hermes_agent.permissions.limits import CommandPlace, build_policy
from hermes_agent.sandbox import runner
from hermes_agent.sandbox.namespaces import NetworkNamespace

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from surroundings import BenchmarkContext

ROUNDS: Final = 40
MAX_OVERHEAD_MS: Final = 10


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark: the minimum of many runs, which noise affects least."""
    namespace = NetworkNamespace()
    try:
        with context.folder() as folder:
            launch = _launch(folder, namespace)
            works = [
                _work(runner.start_bare, launch),
                _work(runner.start_in_bubblewrap, launch),
                _work(runner.start_in_landlock, launch),
            ]
            for work in works:
                work()
            times = [min(measured) for measured in interleave(context.rounds(ROUNDS), *works)]
    finally:
        namespace.close()
    bare, bubblewrap, landlock = times
    return [
        Figure("bash -c true", bare, "ms", bare),
        Figure("bubblewrap over the command", bubblewrap - bare, "ms", bare, MAX_OVERHEAD_MS),
        Figure("landlock over the command", landlock - bare, "ms", bare, MAX_OVERHEAD_MS),
    ]


def _launch(folder: Path, namespace: NetworkNamespace) -> runner.ProgramLaunch:
    workspace, temporary = folder / "workspace", folder / "temporary"
    for each in (workspace, temporary, folder / "hermes"):
        each.mkdir()
    place = CommandPlace(workspace, folder / "hermes", Path.home(), temporary)
    policy = build_policy("workspace", (), place)
    return runner.ProgramLaunch(
        ("bash", "-c", "true"), workspace, policy, os.environ, namespace=namespace
    )


def _work(
    start: Callable[[runner.ProgramLaunch], subprocess.Popen[bytes]], launch: runner.ProgramLaunch
) -> Work:
    def run() -> None:
        with start(launch) as process:
            if process.wait() != 0:
                raise RuntimeError(f"the command failed in {start.__name__}")

    return run
