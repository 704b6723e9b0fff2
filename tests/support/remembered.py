"""A fact with the message that it rests on, and calls of tools, as agents store them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes_agent.memory.evidence import owner_messages, support
from hermes_agent.memory.facts import AgentMemory, Proposal

if TYPE_CHECKING:
    from hermes_state import SessionDB

SESSION = "20260101_000000_abcdef"


def remember(db: SessionDB) -> int:
    """A fact that a review has found; the message that it rests on."""
    db.create_session(SESSION, "cli")
    message = db.append_message(SESSION, "user", "By the way, I like tea a lot.")
    found = support("Likes tea.", ["I like tea"], owner_messages(db, SESSION), must_quote=True)
    AgentMemory(db).remember(Proposal("user", "Likes tea.", "review", found.evidence))
    return message


def call(name: str, arguments: dict[str, Any], call_id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}
