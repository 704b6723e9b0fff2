"""Ordinary work is not in the way: one hundred commands of developers in a real repository."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import size
from hermes_core.config.file import ConfigFile
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from security.conftest import CanaryHome

LINES = Path(__file__).with_name("everyday_commands.txt").read_text().splitlines()
COMMANDS = [line for line in LINES if line and not line.startswith("#")]
MAX_QUESTIONS = 10
STEP = size(4, 1)
NOT_FOUND = 127
FILES = {
    "README.md": "hello\nworld\n",
    "main.py": "import sys\n\n\ndef add(a, b):\n    return a + b\n\n\nprint(add(1, 2))\n",
    "test_main.py": "import unittest\nimport main\n\n\nclass TestAdd(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(main.add(1, 2), 3)\n",
    "index.js": "console.log('hello');\n",
    "package.json": json.dumps(
        {"name": "x", "version": "1.0.0", "scripts": {"build": "node index.js",
         "test": "node --check index.js", "lint": "node --check index.js"}}
    ),
    "Makefile": "all:\n\t@echo built > built.txt\ntest:\n\t@python3 -m unittest -q\nclean:\n"
    "\trm -f built.txt\n",
    "run.sh": "#!/bin/sh\necho running\n",
    "names.txt": "a b c\n",
    "src/lib.py": "VALUE = 1\n",
    ".gitignore": "__pycache__/\n",
}  # fmt: skip


def make_repository(folder: Path) -> None:
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / "run.sh").chmod(0o755)
    (folder / "empty").mkdir()
    (folder / "build").mkdir()
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["tar", "czf", "archive.tar.gz", "src"], cwd=folder, check=True)
    for arguments in (
        ["init", "-q"], ["config", "user.name", "A"], ["config", "user.email", "a@b.c"],
        ["commit", "-q", "--allow-empty", "-m", "empty"], ["add", "."], ["commit", "-qm", "all"],
    ):  # fmt: skip
        subprocess.run([*git, *arguments], cwd=folder, check=True)


def bare_exit_code(command: str, folder: Path) -> int:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    return done.returncode


class Worker:
    """Runs a command in a fresh conversation in a fresh copy of the repository."""

    def __init__(self, canary: CanaryHome) -> None:
        self._canary = canary
        self._original = canary.root / "original"
        self._original.mkdir()
        make_repository(self._original)
        ConfigFile.of_home().set("agent.approvals", "workspace")

    def run(self, command: str) -> tuple[int, Any, bool]:
        """The exit code without a sandbox, that with it, and whether it was asked for."""
        codes: list[Any] = []
        for name in ("bare", "limited"):
            folder = self._canary.home / name
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self._original, folder, symlinks=True)
        codes.append(bare_exit_code(command, self._canary.home / "bare"))
        step = tool_call_step("terminal", {"command": command})
        with open_conversation(self._canary.home / "limited", step, reply="once") as agent:
            (result,) = agent.results()
            is_asked = bool(agent.prompter.requests)
        codes.append(result.get("exit_code"))
        return codes[0], codes[1], is_asked


@pytest.mark.slow
def test_ordinary_commands_run_as_without_a_sandbox_and_seldom_ask(canary: CanaryHome) -> None:
    worker = Worker(canary)
    asked, different, missing = [], [], []
    chosen = COMMANDS[::STEP]
    for command in chosen:
        bare, limited, is_asked = worker.run(command)
        if bare == NOT_FOUND:
            missing.append(command)  # the program is not on this machine
        elif bare != limited:
            different.append((command, bare, limited))
        if is_asked:
            asked.append(command)
    assert different == []
    assert len(asked) * STEP <= MAX_QUESTIONS, asked
    assert len(missing) <= len(chosen) // 10, missing


def test_there_are_a_hundred_commands() -> None:
    assert len(set(COMMANDS)) >= 100
