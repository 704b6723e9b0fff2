"""A canary home: secrets and files of a person that no command of the agent may touch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.agent_conversation import open_conversation, tool_call_step
from support.model_servers import configured_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is missing")
SECRET = "canary-4f1c9e"
START_UP_FILE = "# start-up file\n"


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


@pytest.fixture
def model(hermes_home: Path) -> Iterator[Callable[[str], Any]]:
    """A function that configures a scripted model, in the mode that allows most."""
    with configured_models(agent__approvals="full") as choose:
        yield choose


class CanaryHome:
    """The home of a person outside /tmp, with a repository as the working folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.hermes = self.home / ".hermes"
        self.workspace = self.home / "project"
        for folder in (self.hermes / "run", self.home / ".ssh", self.home / "notes"):
            folder.mkdir(parents=True, mode=0o700)
        self.workspace.mkdir()
        self.secrets = [
            self.hermes / ".env",
            self.hermes / "run" / "dashboard.json",
            self.home / ".ssh" / "id_ed25519",
            self.home / ".netrc",
            self.home / ".aws" / "credentials",
        ]
        for path in self.secrets:
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"TOKEN={SECRET}\n")
        (self.home / ".bashrc").write_text(START_UP_FILE)
        (self.home / "notes" / "diary.txt").write_text("dear diary\n")
        subprocess.run(["git", "init", "-q"], cwd=self.workspace, check=True)

    def state(self) -> dict[str, str]:
        """Every file outside the working folder, with its content and mode."""
        return {
            str(path.relative_to(self.root)): f"{path.stat().st_mode:o} {path.read_text()!r}"
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
            and not path.is_relative_to(self.workspace)
            and not path.is_relative_to(self.hermes)
        }


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Iterator[CanaryHome]:
    root = Path(tempfile.mkdtemp(prefix="hermes-canary-", dir="/var/tmp"))
    canary = CanaryHome(root)
    monkeypatch.setenv("HOME", str(canary.home))
    monkeypatch.setenv("HERMES_HOME", str(canary.hermes))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    yield canary
    shutil.rmtree(root, ignore_errors=True)


def run_in_mode(
    canary: CanaryHome, mode: str, *commands: str, reply: str = "deny"
) -> list[dict[str, Any]]:
    """Let the agent run commands in a mode; the results as the model gets them."""
    ConfigFile.of_home().set("agent.approvals", mode)
    steps = [
        tool_call_step("terminal", {"command": command, "timeout": 60}) for command in commands
    ]
    with open_conversation(canary.workspace, *steps, reply=reply) as agent:
        results = agent.results()
    assert len(results) == len(commands), json.dumps(results)
    return results


def is_root() -> bool:
    return os.geteuid() == 0
