from __future__ import annotations

import json
from contextlib import closing

import pytest

from hermes_agent.memory.files import MemoryFiles
from hermes_agent.tools.base import ToolContext
from hermes_agent.tools.jobs import Jobs
from hermes_agent.tools.prompter import ApprovalAnswer
from hermes_agent.tools.toolset import standard_tools
from hermes_agent.turn_control import Cancel


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


class History:
    """A history that holds what it is given."""

    def __init__(self):
        self.hits = []
        self.asked = []

    def find(self, query, *, limit=20, beside=""):
        self.asked.append((query, limit))
        return self.hits[:limit]

    def get_session_title(self, session_id):
        return {"s1": "Docker at home"}.get(session_id)


class Bench:
    """Every tool, and what it takes to call one."""

    def __init__(self, cwd, jobs):
        self.cwd, self.jobs = cwd, jobs
        self.person, self.history = Person(), History()
        self.tools = {
            standard_tool.name: standard_tool
            for standard_tool in standard_tools(jobs, NoLimits(), MemoryFiles(), self.history)
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
    with closing(Jobs()) as jobs:
        yield Bench(cwd, jobs)
