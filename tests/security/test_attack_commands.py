"""Several hundred commands, dangerous and harmless: the files, connections and secrets that result.

The sandboxes are tried alone, as root and as another user, and then the agent as a whole.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hermes_agent
from acceptance.campaign import size
from security import command_campaign
from security.command_campaign import expand, read_commands

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMANDS = Path(__file__).with_name("attack_commands.txt")
ROOT = Path(__file__).resolve().parents[2]
MODES = ("plan", "workspace", "full")
STEP = size(8, 1)  # the short form runs every eighth command, another eighth in each variant
USER = "nobody"
VARIANTS = [
    (user, backend, mode)
    for user in ("root", USER)
    for backend in ("bubblewrap", "landlock")
    for mode in ("plan", "workspace")
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with the sandbox package and the commands, which every user can read."""
    root = Path(tempfile.mkdtemp(prefix="hermes-attack-", dir="/var/tmp"))
    source = Path(str(hermes_agent.__file__)).parent
    for name in ("sandbox", "permissions"):
        shutil.copytree(
            source / name,
            root / "lib" / "hermes_agent" / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    (root / "lib" / "hermes_agent" / "__init__.py").touch()
    (root / "lib" / "hermes_core").mkdir()
    for name in ("__init__.py", "paths.py", "system_programs.py"):
        shutil.copy(source.parent / "hermes_core" / name, root / "lib" / "hermes_core" / name)
    shutil.copy(COMMANDS, root / "commands.txt")
    shutil.copy(str(command_campaign.__file__), root / "campaign.py")
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    root.chmod(0o755)
    yield root
    subprocess.run(["rm", "-rf", str(root)], check=False)


def test_there_are_enough_commands() -> None:
    commands = expand(read_commands(COMMANDS), Path("/home/me"), 1)
    assert len({command for _, command in commands}) >= 300


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("user", "backend", "mode"), VARIANTS)
def test_the_sandbox_alone_stops_every_command(
    folder: Path, user: str, backend: str, mode: str
) -> None:
    home = folder / "user"
    home.mkdir()
    shutil.chown(home, user)
    offset = VARIANTS.index((user, backend, mode)) % STEP
    program = ["/usr/bin/python3", str(folder / "campaign.py"), str(home)]
    done = subprocess.run(
        [*program, str(folder / "commands.txt"), backend, mode, str(STEP), str(offset)],
        capture_output=True,
        text=True,
        check=False,
        user=user,
        cwd=home,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "lib")},
    )
    assert done.returncode == 0, done.stderr
    count, *problems = json.loads(done.stdout)
    assert problems == []
    assert int(count.split()[0]) * STEP > 280


@pytest.fixture
def checkout() -> Iterator[Path]:
    """An empty folder where another user sees the checkout, whatever stands above it."""
    root = Path(tempfile.mkdtemp(prefix="hermes-agent-", dir="/var/tmp"))
    (root / "checkout").mkdir()
    root.chmod(0o755)
    yield root / "checkout"
    subprocess.run(["rm", "-rf", str(root)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("user", ["root", USER])
@pytest.mark.parametrize("mode", MODES)
def test_the_agent_does_nothing_that_was_not_allowed(checkout: Path, mode: str, user: str) -> None:
    home = checkout.with_name("home")
    home.mkdir()
    shutil.chown(home, user, None if user == "root" else "nogroup")
    python = checkout / Path(sys.executable).relative_to(ROOT)
    offset = (MODES.index(mode) + 3 * (user == USER)) % STEP
    arguments = [str(home), str(checkout / COMMANDS.relative_to(ROOT)), mode]
    become = [] if user == "root" else ["setpriv", f"--reuid={user}", "--regid=nogroup"]
    become += [] if user == "root" else ["--clear-groups"]
    program = [*become, str(python), "-m", "security.agent_campaign", *arguments]
    script = f'mount --bind "{ROOT}" "{checkout}" && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *program, str(STEP), str(offset)],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{checkout}/src:{checkout}/tests"},
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["problems"] == []
    assert (report["uid"] == 0) == (user == "root")
    assert report["count"] > 280
