"""The agent's list of steps as the plan that an editor shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acp.helpers import plan_entry, update_plan

from hermes_agent.tools.todo import ACTIVE, DONE, PENDING, TODO_TOOL, parse_call

if TYPE_CHECKING:
    from acp.schema import AgentPlanUpdate, PlanEntryStatus

    from tui_gateway.protocol import ToolStart

STATUSES: Final[dict[str, PlanEntryStatus]] = {
    PENDING: "pending",
    ACTIVE: "in_progress",
    DONE: "completed",
}


def plan_of(call: ToolStart) -> AgentPlanUpdate | None:
    """The plan that a call sets; None for other calls and invalid ones."""
    items = parse_call(call.args_text) if call.name == TODO_TOOL else None
    if items is None:
        return None
    return update_plan(plan_entry(item.text, status=STATUSES[item.status]) for item in items)
