"""`memory` keeps facts, each with the words of the user that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.memory.evidence import Support, support
from hermes_agent.memory.facts import Proposal, checked_entry
from hermes_agent.memory.files import MEMORY_KINDS, used_characters
from hermes_agent.permissions.command_review import CommandReview
from hermes_agent.permissions.verdicts import Refuse, RiskFinding
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    choice,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)

if TYPE_CHECKING:
    from hermes_agent.memory.facts import AgentMemory, Remembered
    from hermes_agent.permissions.approvals import ReviewCall
    from hermes_agent.tools.base import ToolContext
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_state.facts import Author

MEMORY_TOOL: Final = "memory"
ACTIONS: Final = ("add", "replace", "remove", "read")
PROJECT: Final = "project"
TARGETS: Final = (*MEMORY_KINDS, PROJECT)
UNSUPPORTED: Final = RiskFinding("memory", "saves something that you did not say in your words")
NOT_KEPT: Final = "Not saved: {}."
ASK_AGAIN: Final = " To ask the user for approval instead, make the same call again."


def memory_tool(memory: AgentMemory) -> Tool:
    """The tool that keeps facts."""
    return Tool(
        MEMORY_TOOL,
        "Facts for later prompts: user, memory (work, machine), project (this folder); "
        "with `quotes`.",
        schema(
            "action",
            action=parameter("string", enum=list(ACTIONS)),
            target=parameter("string", enum=list(TARGETS)),
            text=parameter("string"),
            quotes={"type": "array", "items": {"type": "string"}},
            old=parameter("string"),
        ),
        reporting_errors(lambda arguments, context: _memory(memory, arguments, context)),
    )


def memory_review(memory: AgentMemory) -> ReviewCall:
    """How calls are reviewed: what the user did not say is refused once, and then asked for.

    In a review of the conversation it is refused always.
    """
    refused: set[str] = set()

    def review(arguments: JsonObject, context: ToolContext) -> tuple[str, CommandReview] | Refuse:
        action = str(arguments.get("action"))
        entry = str(arguments.get("text") or "")
        shown = f"memory {action}: {entry}"
        if action == "remove" and context.is_review:
            return Refuse("A review removes nothing. Replace what is no longer true.")
        if action not in ("add", "replace"):
            return shown, CommandReview((), True)
        try:
            checked_entry(entry, "agent")
        except ToolError as error:
            return Refuse(str(error))
        found = _support(memory, arguments, context)
        if found.problem and (context.is_review or entry not in refused):
            refused.add(entry)
            advice = "" if context.is_review else ASK_AGAIN
            return Refuse(NOT_KEPT.format(found.problem) + advice)
        return shown, CommandReview((UNSUPPORTED,) if found.problem else (), True)

    return review


def _support(memory: AgentMemory, arguments: JsonObject, context: ToolContext) -> Support:
    quotes = arguments.get("quotes")
    listed = [str(each) for each in quotes] if isinstance(quotes, list) else []
    messages = memory.said_in(context.session_id)
    entry = str(arguments.get("text") or "")
    return support(entry, listed, messages, must_quote=context.is_review)


def _memory(memory: AgentMemory, arguments: JsonObject, context: ToolContext) -> str:
    action = text(arguments, "action")
    chosen = choice(arguments, "target", TARGETS)
    target = "memory" if chosen == PROJECT else chosen
    if action == "read":
        return _state(memory, target, with_entries=True)
    if action == "remove":
        piece = _piece(arguments, "old" if arguments.get("old") else "text")
        removed = memory.forget(target, piece, "agent")
        return _state(memory, target, outcome={"removed": removed.id})
    if action not in ("add", "replace"):
        raise ToolError(f"`action` must be one of {', '.join(ACTIONS)}.")
    found = _support(memory, arguments, context)
    if found.problem and context.is_review:
        raise ToolError(NOT_KEPT.format(found.problem))
    proposal = Proposal(
        target,
        checked_entry(_piece(arguments, "text"), "agent"),
        _author(found, context),
        found.evidence,
        replaces=_piece(arguments, "old") if action == "replace" else "",
        folder=str(context.cwd) if chosen == PROJECT else "",
    )
    return _state(memory, target, outcome=_outcome(memory.remember(proposal)))


def _author(found: Support, context: ToolContext) -> Author:
    if context.is_review:
        return "review"
    return "owner" if found.problem else "agent"  # the owner has approved the call


def _outcome(remembered: Remembered) -> dict[str, JsonData]:
    facts: dict[str, JsonData] = {remembered.outcome: remembered.fact_id}
    if remembered.superseded:
        label = "kept" if remembered.outcome == "superseded" else "superseded_facts"
        facts[label] = [fact.text for fact in remembered.superseded]
    return facts


def _piece(arguments: JsonObject, name: str) -> str:
    piece = text(arguments, name).strip()
    if not piece:
        raise ToolError(f"`{name}` is empty.")
    return piece


def _state(
    memory: AgentMemory,
    target: str,
    *,
    with_entries: bool = False,
    outcome: dict[str, JsonData] | None = None,
) -> str:
    entries = [fact.text for fact in memory.active(target)]
    listed = used_characters(memory.entries(target))
    facts: dict[str, JsonData] = {
        "target": target,
        "entries": len(entries),
        "used": f"{listed:,} of {MEMORY_KINDS[target].characters:,} characters",
        **(outcome or {}),
    }
    if with_entries:
        facts["entries"] = list(entries)
    return success(**facts)
