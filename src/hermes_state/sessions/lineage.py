"""Kinds of child sessions, and which row represents a conversation in a list.

Older programs continue a long conversation in a child row (`compression`); the chain is
one conversation, listed as its last row. Branches and resets are separate conversations;
delegates are tasks of a conversation and are not listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.messages.rows import decode_json

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader

ROOT: Final = "root"
BRANCH: Final = "branch"
RESET: Final = "reset"
DELEGATE: Final = "delegate"
CONTINUATION: Final = "continuation"
CHILD: Final = "child"

KIND_OF_MARKER: Final = {"_branched_from": BRANCH, "_reset_from": RESET}
KIND_BY_PARENT_END_REASON: Final = {"branched": BRANCH, "compression": CONTINUATION}
LISTABLE: Final = frozenset({ROOT, BRANCH, RESET})
MAX_CHAIN_ROWS: Final = 1000

PARENT = "SELECT parent_session_id, model_config, source FROM sessions WHERE id = ?"
END_REASON = "SELECT end_reason FROM sessions WHERE id = ?"
CHILDREN = "SELECT id FROM sessions WHERE parent_session_id = ? ORDER BY started_at, id"


class LineagePosition(NamedTuple):
    """Position of a session among its relatives."""

    kind: str
    root_id: str
    is_tip: bool

    @property
    def is_listed(self) -> bool:
        """Whether this row represents its conversation in a list."""
        return self.is_tip and self.kind in (*LISTABLE, CONTINUATION)


def kind_of(reader: Reader, session_id: str) -> tuple[str, str | None]:
    """The kind of a session, and its parent."""
    parent, config_text, source = reader.row(PARENT, (session_id,)) or (None, None, None)
    config = decode_json(config_text)
    markers: dict[str, Any] = config if isinstance(config, dict) else {}
    if "_delegate_from" in markers or source == "subagent":
        return DELEGATE, parent
    if parent is None:
        return ROOT, None
    for marker, kind in KIND_OF_MARKER.items():
        if marker in markers:
            return kind, parent
    return KIND_BY_PARENT_END_REASON.get(reader.value(END_REASON, (parent,)), CHILD), parent


def position_of(reader: Reader, session_id: str) -> LineagePosition:
    """Position of a session, from its chain up to the root and its continuation."""
    kind, parent = kind_of(reader, session_id)
    root, root_kind = session_id, kind
    steps = 0
    while root_kind == CONTINUATION and parent is not None and steps < MAX_CHAIN_ROWS:
        root = parent
        root_kind, parent = kind_of(reader, root)
        steps += 1
    is_tip = continuation_of(reader, session_id) is None
    shown_kind = kind if root_kind in LISTABLE or kind != CONTINUATION else root_kind
    return LineagePosition(shown_kind, root, is_tip)


def continuation_of(reader: Reader, session_id: str) -> str | None:
    """The next row of the same conversation, if it was continued in one."""
    if reader.value(END_REASON, (session_id,)) != "compression":
        return None
    for (child,) in reader.rows(CHILDREN, (session_id,)):
        if kind_of(reader, child)[0] == CONTINUATION:
            return str(child)
    return None


def tip_of(reader: Reader, session_id: str) -> str:
    """The last row of the conversation that *session_id* belongs to."""
    current = session_id
    for _ in range(MAX_CHAIN_ROWS):
        following = continuation_of(reader, current)
        if following is None:
            return current
        current = following
    return current


def chain_of(reader: Reader, session_id: str) -> list[str]:
    """The rows of one conversation up to *session_id*, oldest first."""
    chain = [session_id]
    for _ in range(MAX_CHAIN_ROWS):
        kind, parent = kind_of(reader, chain[0])
        if kind != CONTINUATION or parent is None:
            break
        chain.insert(0, parent)
    return chain


def conversation_of(reader: Reader, session_id: str) -> list[str]:
    """Every row of the conversation that *session_id* belongs to, oldest first."""
    return chain_of(reader, tip_of(reader, session_id))


def branches_of(reader: Reader, session_id: str) -> set[str]:
    """The rows that share messages or a task with a session: up to the last reset, and down."""
    root = session_id
    for _ in range(MAX_CHAIN_ROWS):
        kind, parent = kind_of(reader, root)
        if parent is None or kind == RESET:
            break
        root = parent
    found = {root}
    queue = [root]
    while queue and len(found) < MAX_CHAIN_ROWS:
        children = [row[0] for row in reader.rows(CHILDREN, (queue.pop(),))]
        new = {
            child for child in children
            if child not in found and kind_of(reader, child)[0] != RESET
        }  # fmt: skip
        found |= new
        queue += new
    return found
