from __future__ import annotations

import json
from contextlib import closing

import pytest

from hermes_agent.memory.facts import AgentMemory
from hermes_agent.tools.base import ToolContext
from hermes_agent.tools.jobs import Jobs
from hermes_agent.tools.prompter import ApprovalAnswer
from hermes_agent.tools.toolset import standard_tools
from hermes_agent.turn_control import Cancel
from hermes_conversation.history_scope import ConversationHistory
from hermes_state import SessionDB


class NoLimits:
    """Runs commands without a sandbox: these tests are about the commands themselves."""

    def policy(self, *_args):
        return None

    def may_exceed(self, *_args):
        return False

    def only_reads(self, *_args):
        return False

    def is_hidden(self, *_args):
        return False

    def real_path(self, path, _context):
        return path.resolve()


class Person:
    """Somebody who answers as told."""

    def __init__(self):
        self.reply = ""
        self.asked = []

    def approve(self, request):
        self.asked.append(request)
        return ApprovalAnswer(self.reply)

    def clarify(self, question, choices):
        self.asked.append((question, choices))
        return self.reply


class Bench:
    """Every tool, and what it takes to call one."""

    def __init__(self, cwd, jobs, db):
        self.cwd, self.jobs, self.db = cwd, jobs, db
        self.person, history = Person(), ConversationHistory(db)
        self.tools = {
            standard_tool.name: standard_tool
            for standard_tool in standard_tools(jobs, NoLimits(), AgentMemory(db), history)
        }
        self.cancel = Cancel()
        self.shown = []

    def text(self, tool, **arguments):
        context = ToolContext(
            "s1", "t1", "c1", self.cwd, self.cancel, self.person, self.shown.append
        )
        return self.tools[tool].run(arguments, context)

    def __call__(self, tool, **arguments):
        return json.loads(self.text(tool, **arguments))


@pytest.fixture
def bench(tmp_path):
    cwd = tmp_path / "work"
    cwd.mkdir()
    with closing(Jobs()) as jobs, SessionDB() as db:
        yield Bench(cwd, jobs, db)
