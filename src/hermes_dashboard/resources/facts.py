"""Facts of the memory: why each is believed, and correcting them. Facts grant nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fastapi import HTTPException
from pydantic import BaseModel

from hermes_agent.memory.facts import AgentMemory
from hermes_conversation import remembered_facts
from hermes_core.errors import UsageError
from hermes_dashboard.models.text import MessageId, Text, View, problems
from hermes_dashboard.routes import ResourceRouter
from hermes_state.facts import Author, FactState, Subject

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state.facts import Fact


class FactView(View):
    """A fact that the agent remembers."""

    id: int
    text: Text
    subject: Subject
    folder: Text | None
    state: FactState
    created_by: Author
    created_at: float
    changed_at: float
    superseded_by: int | None
    is_pinned: bool
    is_in_file: bool
    times_used: int
    last_used_at: float | None


class FactList(BaseModel):
    """All facts, in any state."""

    items: list[FactView]


class EvidenceView(View):
    """A quotation that a fact rests on."""

    message_id: MessageId
    session_id: Text | None
    title: Text | None
    said_at: float
    quotation: Text
    problem: Text


class FactChangeView(View):
    """A change of a fact."""

    at: float
    by: Text
    what: Text


class FactDetails(FactView):
    """A fact with its evidence and its history."""

    evidence: list[EvidenceView]
    changes: list[FactChangeView]


class FactAction(BaseModel):
    """A correction of a fact."""

    action: Literal["pin", "unpin", "reject", "confirm"]


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of facts."""
    routes = ResourceRouter("/api/facts", tag="memory")
    memory = AgentMemory(context.db)

    def find(number: int) -> Fact:
        try:
            return remembered_facts.fact_of(memory, number)
        except UsageError as error:
            raise HTTPException(404, f"Unknown fact: {number}") from error

    @routes.get("", responses=problems(503))
    def list_facts() -> FactList:
        """What the agent remembers, oldest first."""
        facts = remembered_facts.all_facts(memory)
        return FactList.model_validate(
            {"items": [remembered_facts.fact_fields(fact) for fact in facts]}
        )

    @routes.get("/{number}", responses=problems(404, 503))
    def show_fact(number: int) -> FactDetails:
        """A fact with the messages that it rests on."""
        shown = remembered_facts.shown(context.db, find(number))
        return FactDetails.model_validate(shown.as_fields())

    @routes.post("/undo", responses=problems(409, 503))
    def undo_change() -> FactList:
        """Undo the latest change, such as that of a review; the facts that it changed."""
        try:
            changes = remembered_facts.undo_last(context.db, memory)
        except UsageError as error:
            raise HTTPException(409, str(error)) from error
        facts = [context.db.facts.get(change.fact_id) for change in changes]
        return FactList.model_validate(
            {"items": [remembered_facts.fact_fields(fact) for fact in facts]}
        )

    @routes.post("/{number}", responses=problems(404, 503))
    def change_fact(number: int, change: FactAction) -> FactView:
        """Pin a fact, reject it, or believe it again."""
        fact = find(number)
        if change.action in ("pin", "unpin"):
            memory.pin(fact, "owner", is_pinned=change.action == "pin")
        else:
            memory.set_state(fact, "owner", is_active=change.action == "confirm")
        return FactView.model_validate(remembered_facts.fact_fields(context.db.facts.get(number)))

    return routes
