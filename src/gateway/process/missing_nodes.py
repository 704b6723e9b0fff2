"""Commands in chats whose conversation works on a node that is down.

Messages wait for that node. Commands that need no folder are answered by any node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.inbound import inbox_codec
from gateway.inbound.commands import OVERTAKING_COMMANDS

if TYPE_CHECKING:
    from gateway.inbound.inbox_workers import InboxWorkers
    from hermes_state import SessionDB
    from hermes_state.delivery.nodes import BoundMessage

# These select another conversation, so messages that wait before them come first.
ROUTING_COMMANDS: Final = frozenset({"new", "reset", "resume"})


def is_answered_anywhere(message: BoundMessage) -> bool:
    """Whether a message is a command that needs neither the folder nor the messages before it."""
    name = inbox_codec.decode(message.payload).get_command()
    is_routing = message.is_oldest and name in ROUTING_COMMANDS
    return is_routing or name == "stop" or name in OVERTAKING_COMMANDS


def answer_commands(db: SessionDB, workers: InboxWorkers) -> None:
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
