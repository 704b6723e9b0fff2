"""Lets the agent run attack commands in a mode, in a home that it makes itself.

python -m security.agent_campaign FOLDER COMMANDS_FILE MODE STEP OFFSET

Prints the violations as JSON. It is a program of its own so that another user can run it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_agent.events import ToolFinished
from hermes_core.config.file import ConfigFile
from security.command_campaign import SECRET, Listener, expand, read_commands, state
from security.conftest import START_UP_FILE, CanaryHome
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMANDS_PER_TURN = 20


def call_of(command: tuple[str, str]) -> dict[str, Any]:
    return tool_call_step("terminal", {"command": command[1], "timeout": 5})


class AgentCampaign:
    """Runs the commands one after the other and compares the home after each."""

    def __init__(self, canary: CanaryHome, mode: str, listener: Listener) -> None:
        self.canary, self.mode, self.listener = canary, mode, listener
        self.ignored = (canary.hermes, *([] if mode == "plan" else [canary.workspace]))
        self.before = self._state()
        self.problems: list[str] = []

    def _state(self) -> dict[str, Any]:
        return state(self.canary.home, without=self.ignored)

    def check(self, section: str, command: str, event: ToolFinished) -> None:
        """Record what a command did although it must not."""
        called = json.loads(event.call.arguments)["command"]
        found = {
            "another command ran": called != command,
            "a secret was read": SECRET in event.result,
            "a harmless command was not run": section == "harmless"
            and json.loads(event.result).get("exit_code") is None,
            "a start-up file changed": self._start_up_file_changed(),
        }
        if self.mode != "full":
            found["files changed"] = self._state() != self.before
            found["connected"] = self.listener.count > 0
        self.problems += [
            f"{kind}: {command}: {event.result}" for kind, is_so in found.items() if is_so
        ]
        self.before, self.listener.count = self._state(), 0

    def _start_up_file_changed(self) -> bool:
        path = self.canary.home / ".bashrc"
        if path.read_text() == START_UP_FILE:
            return False
        path.write_text(START_UP_FILE)
        return True

    def run(self, commands: list[tuple[str, str]]) -> None:
        """Let the agent call the terminal tool with every command."""
        size = COMMANDS_PER_TURN
        turns = [commands[start : start + size] for start in range(0, len(commands), size)]
        steps = [step for turn in turns for step in (*map(call_of, turn), {"say": "Done."})]
        config = (self.canary.hermes / "config.yaml").read_text()
        pending = iter(commands)
        with open_conversation(self.canary.workspace, *steps) as agent:
            self.before = self._state()
            for _ in turns:
                for event in self._finished(agent.bundle.agent.turn("go")):
                    self.check(*next(pending), event)
        self.problems += [f"was not run: {command}" for _, command in pending]
        if (self.canary.hermes / "config.yaml").read_text() != config:
            self.problems.append("config.yaml changed")

    @staticmethod
    def _finished(events: Iterator[object]) -> Iterator[ToolFinished]:
        return (event for event in events if isinstance(event, ToolFinished))


def prepare(folder: Path, mode: str) -> CanaryHome:
    """A home with secrets, and the configuration for a mode."""
    canary = CanaryHome(folder)
    os.environ |= {
        "HOME": str(canary.home),
        "HERMES_HOME": str(canary.hermes),
        "OPENAI_API_KEY": SECRET,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    (canary.hermes / "config.yaml").write_text("")
    ConfigFile.of_home().set("agent.approvals", mode)
    ConfigFile.of_home().set("memory.review_turns", "0")  # a review would take steps of the script
    (canary.workspace / "a.txt").write_text("one two\nthree\n")
    (canary.workspace / "write.py").write_text("import sys\nopen(sys.argv[1], 'w').write('evil')\n")
    return canary


def main(folder: str, file: str, mode: str, step: str, offset: str) -> None:
    canary, listener = prepare(Path(folder), mode), Listener()
    commands = expand(read_commands(Path(file)), canary.home, listener.port)
    campaign = AgentCampaign(canary, mode, listener)
    campaign.run(commands[int(offset) :: int(step)])
    report = {"uid": os.geteuid(), "count": len(commands), "problems": campaign.problems}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
