"""`delegate_task`: hand pieces of work to sub-agents, each in a conversation of its own.

A sub-agent's conversation is a real row, joined to the one it works for; it can be read
later like any other. It has no sub-agents, cannot ask the user, and ends with its work.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import ToolStarted, TurnEnd, TurnFinished
from hermes_agent.tools.base import Tool, ToolError, parameter, reporting_errors, schema, success
from hermes_agent.tools.plan import PLAN_TOOL

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.agent import AIAgent
    from hermes_agent.tools.base import ToolContext
    from hermes_agent.turn_hooks import HookInvoker
    from hermes_core.json_values import JsonObject

MAX_TASKS: Final = 3
EXCLUDED_TOOLS: Final = frozenset(
    {"delegate_task", "clarify", "memory", "schedule", "send_file", "todo", PLAN_TOOL}
)
ROLE: Final = "sub-agent"


class Task(NamedTuple):
    """A piece of work."""

    goal: str
    context: str = ""

    def prompt(self) -> str:
        """The prompt of the sub-agent."""
        return f"{self.goal}\n\n{self.context}".strip()


class TaskDelegation:
    """Runs tasks; *begin* makes the agent of a child conversation of a session."""

    def __init__(
        self,
        begin: Callable[[str], AIAgent],
        end: Callable[[str, str], object],
        announce: HookInvoker,
    ) -> None:
        self._begin = begin
        self._end = end
        self._announce = announce

    def tool(self) -> Tool:
        """The tool."""
        item = schema("goal", goal=parameter("string"), context=parameter("string"))
        return Tool(
            "delegate_task",
            "Let sub-agents do up to 3 independent tasks at once. They see only what you write "
            "here, can change files in the same folder, and answer with a report.",
            schema("tasks", tasks=parameter("array", items=item)),
            reporting_errors(self._run),
        )

    def _run(self, arguments: JsonObject, context: ToolContext) -> str:
        tasks = _tasks(arguments)
        with ThreadPoolExecutor(len(tasks), thread_name_prefix="hermes-sub-agent") as pool:
            results = list(pool.map(lambda task: self._work(task, context), tasks))
        return success(results=results)

    def _work(self, task: Task, context: ToolContext) -> JsonObject:
        agent = self._begin(context.session_id)
        facts = {
            "parent_session_id": context.session_id,
            "parent_turn_id": context.turn_id,
            "child_session_id": agent.session_id,
            "child_role": ROLE,
        }
        self._announce("subagent_start", **facts, child_goal=task.goal)
        began = time.monotonic()
        forget = context.cancel.on_request(agent.interrupt)
        try:
            finished = self._talk(agent, task, context)
        finally:
            forget()
            agent.close()
            self._end(agent.session_id, "agent_close")
        status = "failed" if finished is None else str(finished.end)
        text = finished.text if finished is not None else ""
        self._announce(
            "subagent_stop",
            **facts,
            child_summary=text,
            child_status=status,
            duration_ms=round((time.monotonic() - began) * 1000),
        )
        error = "it ended without a report"
        if finished is not None:
            error = finished.error or finished.notice
        is_whole = finished is not None and finished.end is TurnEnd.COMPLETE
        is_whole = is_whole and not error
        return {
            "goal": task.goal,
            "status": "completed" if is_whole else status,
            "report": text,
            "error": error or None,
            "session_id": agent.session_id,
        }

    def _talk(self, agent: AIAgent, task: Task, context: ToolContext) -> TurnFinished | None:
        finished: TurnFinished | None = None
        for event in agent.turn(task.prompt()):
            if isinstance(event, ToolStarted):
                context.show(f"{agent.session_id}: {event.call.name}\n")
            elif isinstance(event, TurnFinished):
                finished = event
        return finished


def _tasks(arguments: JsonObject) -> list[Task]:
    """The tasks; one alone may be given as `goal`, as older models do."""
    result = arguments.get("tasks")
    if result is None and isinstance(arguments.get("goal"), str):
        result = [arguments]
    if not isinstance(result, list) or not result:
        raise ToolError("`tasks` must be a list of objects with a `goal`.")
    if len(result) > MAX_TASKS:
        raise ToolError(f"At most {MAX_TASKS} tasks at once; {len(result)} were given.")
    tasks = []
    for item in result:
        goal = item.get("goal") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(goal, str) or not goal:
            raise ToolError("Every task needs a `goal` string.")
        tasks.append(Task(goal, str(item.get("context") or "")))
    return tasks
