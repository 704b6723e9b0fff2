"""Plan mode: the agent reads and proposes, the user approves the plan, then it acts.

The model learns of the mode with each prompt, and shows its plan with the tool `present_plan`,
which is offered in this mode only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.tools.base import (
    Tool,
    ToolError,
    failure,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)

if TYPE_CHECKING:
    from hermes_agent.permissions.approvals import Approvals
    from hermes_agent.tools.base import ToolContext
    from hermes_core.json_values import JsonObject

PLAN_TOOL: Final = "present_plan"
START_CHOICE, KEEP_PLANNING = CHOICES = ("Start with this plan", "Keep planning")
AFFIRMATIVE: Final = frozenset({START_CHOICE.casefold(), "yes", "y", "ok", "okay", "start", "go"})
QUESTION: Final = "{plan}\n\nStart? The agent may then change files in the working folder."
PLAN_NOTE: Final = (
    "Plan mode: look, ask and think; nothing can be changed. When you know what to do, call "
    "present_plan with the steps. You can act after the user has approved them."
)
NO_USER_TEXT: Final = "No user can be asked here. Give the plan as your answer and stop."
APPROVED: Final = "The user approved the plan, and plan mode is off. Carry it out now."


def plan_tool(approvals: Approvals) -> Tool:
    """The tool; it switches the mode of *approvals* when the user agrees."""

    def run(arguments: JsonObject, context: ToolContext) -> str:
        plan = text(arguments, "plan").strip()
        if not plan:
            raise ToolError("`plan` is empty.")
        if approvals.mode != "plan":
            return success(approved=True, note="Plan mode is off already.")
        answer = context.prompter.clarify(QUESTION.format(plan=plan), list(CHOICES)).strip()
        if not answer:
            return failure(NO_USER_TEXT)
        if answer.rstrip(".!").casefold() not in AFFIRMATIVE:
            return success(approved=False, answer=answer)
        approvals.mode = "workspace"
        return success(approved=True, note=APPROVED)

    return Tool(
        PLAN_TOOL,
        "Show the user your plan and ask whether to start.",
        schema("plan", plan=parameter("string", "steps, in Markdown")),
        reporting_errors(run),
        is_offered=lambda: approvals.mode == "plan",
    )
