"""Gateways on several nodes with one history: what they share, and what belongs to one of them.

A chat is received on one node and answered on another: they have to derive the same key for it,
end its conversation at the same time and give it the same model and limits. A conversation that
works in a folder of one node waits for that node; commands that need no folder are answered by any.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.inbound import prompt_format
from gateway.inbound.commands import OVERTAKING_COMMANDS
from hermes_conversation.role_limits import OWNER_FOLDER
from hermes_conversation.slash_commands import ChatRule, names_with
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import ConfigError
from hermes_core.paths import workspace_path
from hermes_state.engine.process_identity import node_name

if TYPE_CHECKING:
    from gateway.inbound.inbox_workers import InboxWorkers
    from hermes_core.config.file import Settings
    from hermes_state.delivery.nodes import BoundMessage
    from hermes_state.store import SessionDB

# These select another conversation, so messages that wait before them come first.
ROUTING_COMMANDS: Final = names_with(ChatRule.ROUTES)
SHARED_BLOCKS: Final = ("reset_by_platform", "reset_by_type")
TIME_ZONE_NAME: Final = "time zone of the system"


def owners_workspace(settings: Settings) -> Path:
    """The configured folder, else one of its own; the root of all files is not accepted."""
    chosen = settings.get_str("gateway.workspace")
    if not chosen:
        return workspace_path(OWNER_FOLDER)
    folder = Path(chosen).expanduser()
    if not folder.is_absolute() or not folder.is_dir():
        raise ConfigError(f"gateway.workspace: {chosen} is not an absolute path of a folder.")
    if folder.resolve() == Path(folder.anchor):
        raise ConfigError(f"gateway.workspace: {chosen} cannot be a working folder.")
    return folder.resolve()


def is_bound_to_node(db: SessionDB, settings: Settings) -> bool:
    """Whether the owner's chats work in a folder that other nodes do not have."""
    if db.engine.database.is_file or not settings.get_str("gateway.workspace"):
        return False
    return not settings.get_bool("gateway.workspace_is_shared")


def is_answered_anywhere(message: BoundMessage) -> bool:
    """Whether a message is a command that needs neither the folder nor the messages before it."""
    event = prompt_format.decode_row(message)
    if event is None:
        return False
    name = event.get_command()
    is_routing = message.is_oldest and name in ROUTING_COMMANDS
    return is_routing or name == "stop" or name in OVERTAKING_COMMANDS


def answer_commands_of_missing(db: SessionDB, workers: InboxWorkers) -> None:
    """Claim the commands that wait for a missing node, and handle them here.

    One at a time per chat: the next one is claimed when the one before it is settled.
    """
    if db.engine.database.is_file:
        return
    started: set[str] = set()
    for message in db.nodes.waiting_for_nodes():
        key = message.session_key
        if not is_answered_anywhere(message) or key in started or db.inbox.is_place_claimed(key):
            continue
        if db.inbox.claim_with([message.inbox_id]):
            started.add(key)
            row = db.inbox.get(message.inbox_id)
            if row is not None:
                workers.start_from_thread(row, is_owners=False, is_reserved=False)


def shared_values() -> dict[str, str]:
    """The settings of this node that all must agree on, as text."""
    config = ConfigFile.of_home()
    shared_names = sorted(item.name for item in SETTINGS if item.is_shared_by_nodes)
    values = {name: str(config.get(name)) for name in shared_names}
    blocks = {name: json.dumps(config.block(name), sort_keys=True) for name in SHARED_BLOCKS}
    return {**values, **blocks, TIME_ZONE_NAME: "/".join(time.tzname)}


def join_nodes(db: SessionDB) -> None:
    """Register this gateway; ConfigError if a running gateway has other values."""
    difference = db.nodes.join(node_name(), shared_values())
    if difference is None:
        return
    raise ConfigError(
        f"The gateways of this history must have the same settings. {difference.name} is "
        f"{difference.here!r} here and {difference.there!r} on {difference.node}. Change one of "
        "them, then start this gateway again."
    )
