"""`schedule` sets reminders and scheduled jobs; all but listing them needs approval.

Members approve what they could do themselves with `/remind`: their own reminders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from hermes_agent.permissions.command_review import CommandReview
from hermes_agent.permissions.verdicts import RiskFinding
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    choice,
    number,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.tools.base import ToolContext
    from hermes_core.json_values import JsonObject

SCHEDULE_TOOL: Final = "schedule"
OWN_REMINDER: Final = "own-reminder"  # the key of a finding that the person may approve
ACTIONS: Final = ("list", "add", "remind", "remove")
DESCRIPTION: Final = (
    "Reminders and jobs of the user: `remind` sends a text, `add` runs a prompt and sends the "
    "answer. Schedules: 'in 20 minutes', 'tomorrow 9:00', 'every weekday 8:00', '0 8 * * 1-5'."
)
MAX_NUMBER: Final = 2**62


class SchedulesJobs(Protocol):
    """The scheduled jobs of the person of a conversation."""

    def add(self, kind: str, schedule: str, prompt: str) -> JsonObject:
        """Store a reminder or a job; what was stored."""

    def list(self) -> list[JsonObject]:
        """The jobs of the person."""

    def remove(self, job_id: int) -> JsonObject:
        """Delete a job of the person."""


def schedule_tool(open_jobs: Callable[[], SchedulesJobs]) -> Tool:
    """The tool."""
    return Tool(
        SCHEDULE_TOOL,
        DESCRIPTION,
        schema(
            "action",
            action=parameter("string", enum=list(ACTIONS)),
            schedule=parameter("string"),
            text=parameter("string", "prompt or reminder"),
            number=parameter("integer", "to remove"),
        ),
        reporting_errors(lambda arguments, _context: _run(open_jobs(), arguments)),
    )


def _run(jobs: SchedulesJobs, arguments: JsonObject) -> str:
    action = choice(arguments, "action", ACTIONS)
    try:
        if action == "list":
            return success(jobs=jobs.list())
        if action == "remove":
            return success(removed=jobs.remove(number(arguments, "number", 0, 0, MAX_NUMBER)))
        kind = "reminder" if action == "remind" else "job"
        return success(added=jobs.add(kind, text(arguments, "schedule"), text(arguments, "text")))
    except UsageError as error:
        raise ToolError(str(error)) from error


def review_call(arguments: JsonObject, context: ToolContext) -> tuple[str, CommandReview]:
    """How a call is shown, and whether it needs approval."""
    del context
    action = str(arguments.get("action"))
    if action == "list":
        return "schedule list", CommandReview((), True)
    if action == "remove":
        finding = RiskFinding("schedule", "removes a scheduled job")
        return f"schedule remove {arguments.get('number')}", CommandReview((finding,), True)
    shown = f"schedule {action} {arguments.get('schedule')!r}: {arguments.get('text')}"
    reason = "sets a reminder" if action == "remind" else "schedules a job that runs without you"
    return shown, CommandReview((RiskFinding("schedule", reason),), True)


def review_members_call(arguments: JsonObject, context: ToolContext) -> tuple[str, CommandReview]:
    """Like `review_call`; setting and removing an own reminder has a key of its own."""
    shown, review = review_call(arguments, context)
    if arguments.get("action") == "add":
        return shown, review
    own = tuple(finding._replace(key=OWN_REMINDER) for finding in review.findings)
    return shown, review._replace(findings=own)
