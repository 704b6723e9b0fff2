"""Handlers for what a conversation changed in files: list, diff, preview, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_conversation import file_commands
from hermes_conversation.file_history import NO_CHANGES
from hermes_core.errors import UsageError
from tui_gateway.handlers.environment import as_rpc
from tui_gateway.protocol import CheckpointSummary, PlannedFile

if TYPE_CHECKING:
    from typing import Unpack

    from hermes_agent.checkpoints.records import Checkpoint
    from hermes_agent.checkpoints.restore import PlannedPath
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.file_history import CheckpointSelection
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.protocol import CheckpointChoice, DiffView, RestoreOutcome, RestorePlanView


def listed(peer: Dispatcher, *, session_id: str) -> list[CheckpointSummary]:
    """What turns and restores changed in files, newest first."""
    conversation = _conversation(peer, session_id)
    prompts = {prompt.message_id: prompt.text for prompt in conversation.prompts()}
    records = as_rpc(lambda: conversation.files.all().records)
    return [_summary(record, prompts.get(record.message_id, "")) for record in reversed(records)]


def diff(peer: Dispatcher, *, session_id: str, scope: str = "") -> DiffView:
    """Changes as a unified diff; `scope` is all, last or a number."""
    conversation = _conversation(peer, session_id)
    selection = as_rpc(lambda: file_commands.selected(conversation, scope))
    return {"diff": as_rpc(selection.diff), "numbers": list(selection.numbers)}


def preview(
    peer: Dispatcher, *, session_id: str, **choice: Unpack[CheckpointChoice]
) -> RestorePlanView:
    """What a restore would change: of a checkpoint, of a prompt and all later ones, or of the last
    exchanges.
    """
    conversation = _conversation(peer, session_id)
    if not conversation.files.is_available:
        return {"files": [], "diff": "", "numbers": []}
    plan = as_rpc(lambda: _selection(conversation, choice).plan())
    files = [_planned(item) for item in plan.paths]
    return {"files": files, "diff": plan.diff, "numbers": list(plan.numbers)}


def restore(
    peer: Dispatcher,
    *,
    session_id: str,
    paths: str = "",
    force: str = "",
    **choice: Unpack[CheckpointChoice],
) -> RestoreOutcome:
    """Restore files; `paths` limits it, `force` names files to overwrite that were changed since,
    one per line; `within_permissions` refuses files that the agent may not write unasked.
    """
    live = peer.hub.live(session_id)
    only, forced = paths.splitlines(), force.splitlines()
    with live.changing() as conversation:
        outcome = as_rpc(
            lambda: _selection(conversation, choice).restore(conversation.session_id, only, forced)
        )
    return {
        "restored": outcome.restored,
        "refused": [_planned(item) for item in outcome.refused],
        "numbers": list(outcome.undo_numbers),
        "output": file_commands.describe(outcome),
    }


def _conversation(peer: Dispatcher, session_id: str) -> Conversation:
    return peer.hub.live(session_id).conversation


def _selection(conversation: Conversation, choice: CheckpointChoice) -> CheckpointSelection:
    """Checkpoints by number, by the prompt that they start with, or of the last exchanges."""
    files = conversation.files
    if number := choice.get("number"):
        found = files.numbered([number])
    elif message_id := choice.get("message_id"):
        found = files.since_prompt(message_id)
    elif count := choice.get("count"):
        found = files.of_last_prompts(count)
    else:
        found = files.turns()
        if not found:
            raise UsageError(NO_CHANGES)
    return found.within_permissions() if choice.get("within_permissions") else found


def _summary(record: Checkpoint, prompt: str) -> CheckpointSummary:
    return CheckpointSummary(
        number=record.number,
        kind=record.kind,
        folder=record.folder,
        message_id=record.message_id,
        started_at=record.started_at,
        files=record.files,
        about=file_commands.about(record, prompt),
    )


def _planned(item: PlannedPath) -> PlannedFile:
    return PlannedFile(item.name, item.change.kind, item.problem, item.may_force)
