"""Handlers for what a conversation changed in files: list, diff, preview, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_conversation import file_commands
from hermes_conversation.file_history import NO_CHANGES
from hermes_core.errors import UsageError
from tui_gateway.handlers.environment import as_rpc
from tui_gateway.summaries import CheckpointSummary, PlannedFile

if TYPE_CHECKING:
    from hermes_agent.checkpoints.records import Checkpoint
    from hermes_agent.checkpoints.restore import PlannedPath
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.file_history import CheckpointSelection
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.frames import RpcParams


def listed(peer: Dispatcher, params: RpcParams) -> object:
    conversation = _conversation(peer, params)
    prompts = {prompt.message_id: prompt.text for prompt in conversation.prompts()}
    records = as_rpc(lambda: conversation.files.all().records)
    return {
        "checkpoints": [
            _summary(record, prompts.get(record.message_id, "")) for record in reversed(records)
        ]
    }


def diff(peer: Dispatcher, params: RpcParams) -> object:
    conversation = _conversation(peer, params)
    selection = as_rpc(lambda: file_commands.selected(conversation, params.scope))
    return {"diff": as_rpc(selection.diff), "numbers": list(selection.numbers)}


def preview(peer: Dispatcher, params: RpcParams) -> object:
    conversation = _conversation(peer, params)
    if not conversation.files.is_available:
        return {"files": [], "diff": "", "numbers": []}
    plan = as_rpc(lambda: _selection(conversation, params).plan())
    files = [_planned(item) for item in plan.paths]
    return {"files": files, "diff": plan.diff, "numbers": list(plan.numbers)}


def restore(peer: Dispatcher, params: RpcParams) -> object:
    live = peer.hub.live(params.session_id)
    only, force = params.paths.splitlines(), params.force.splitlines()
    with live.changing() as conversation:
        outcome = as_rpc(
            lambda: _selection(conversation, params).restore(conversation.session_id, only, force)
        )
    return {
        "restored": outcome.restored,
        "refused": [_planned(item) for item in outcome.refused],
        "numbers": list(outcome.undo_numbers),
        "output": file_commands.describe(outcome),
    }


def _conversation(peer: Dispatcher, params: RpcParams) -> Conversation:
    return peer.hub.live(params.session_id).conversation


def _selection(conversation: Conversation, params: RpcParams) -> CheckpointSelection:
    """Checkpoints by number, by the prompt that they start with, or of the last exchanges."""
    files = conversation.files
    if params.number:
        found = files.numbered([params.number])
    elif params.message_id:
        found = files.since_prompt(params.message_id)
    elif params.count:
        found = files.of_last_prompts(params.count)
    else:
        found = files.turns()
        if not found:
            raise UsageError(NO_CHANGES)
    return found.within_permissions() if params.within_permissions else found


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
