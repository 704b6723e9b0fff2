"""Several hundred commands, dangerous and harmless: the files, connections and secrets that result.

The sandboxes are tried alone, as root and as another user, and then the agent as a whole.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hermes_agent
from acceptance.campaign import size
from hermes_agent.events import ToolFinished
from hermes_core.config.file import ConfigFile
from security import command_campaign
from security.command_campaign import SECRET, Listener, expand, read_commands, state
from security.conftest import START_UP_FILE
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from security.conftest import CanaryHome

COMMANDS = Path(__file__).with_name("attack_commands.txt")
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


def call_of(command: tuple[str, str]) -> dict[str, Any]:
    return tool_call_step("terminal", {"command": command[1], "timeout": 5})


@pytest.mark.parametrize("mode", ["plan", "workspace", "full"])
def test_the_agent_does_nothing_that_was_not_allowed(canary: CanaryHome, mode: str) -> None:
    listener = Listener()
    (canary.hermes / "config.yaml").write_text("")
    ConfigFile.of_home().set("agent.approvals", mode)
    ConfigFile.of_home().set("memory.review_turns", "0")  # a review would take steps of the script
    (canary.workspace / "a.txt").write_text("one two\nthree\n")
    (canary.workspace / "write.py").write_text("import sys\nopen(sys.argv[1], 'w').write('evil')\n")
    offset = ("plan", "workspace", "full").index(mode) % STEP
    commands = expand(read_commands(COMMANDS), canary.home, listener.port)[offset::STEP]
    turns = [commands[start : start + 20] for start in range(0, len(commands), 20)]
    steps = [step for turn in turns for step in (*map(call_of, turn), {"say": "Done."})]
    ignored = (canary.hermes, *([] if mode == "plan" else [canary.workspace]))
    config = (canary.hermes / "config.yaml").read_text()
    problems = []
    with open_conversation(canary.workspace, *steps) as agent:
        before, pending = state(canary.home, without=ignored), iter(commands)
        events = (event for _ in turns for event in agent.bundle.agent.turn("go"))
        for event in events:
            if not isinstance(event, ToolFinished):
                continue
            section, command = next(pending)
            assert json.loads(event.call.arguments)["command"] == command
            if mode != "full" and state(canary.home, without=ignored) != before:
                problems.append(f"files changed: {command}")
                before = state(canary.home, without=ignored)
            if SECRET in event.result:
                problems.append(f"a secret was read: {command}")
            if mode != "full" and listener.count:
                problems.append(f"connected: {command}")
                listener.count = 0
            if section == "harmless" and json.loads(event.result).get("exit_code") is None:
                problems.append(f"a harmless command was not run: {command}: {event.result}")
            if (canary.home / ".bashrc").read_text() != START_UP_FILE:
                problems.append(f"a start-up file changed: {command}")
                (canary.home / ".bashrc").write_text(START_UP_FILE)
    assert problems == []
    assert (canary.hermes / "config.yaml").read_text() == config
    assert next(pending, None) is None
