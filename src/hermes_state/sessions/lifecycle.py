"""The life of a conversation as one table: its states, what changes them, what is announced.

Terminal, terminal UI, chats and the sweep after a crash change a conversation's state through
`sessions.create`, `end` and `reopen`, and through nothing else; those look here. What the table
does not hold cannot happen. docs/explanation/life-of-a-conversation.md shows it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import IllegalChangeError
from hermes_core.hooks import BoundaryKind

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader

STATE = "SELECT ended_at IS NULL FROM sessions WHERE id = ?"


class State(StrEnum):
    """What a conversation is; it follows from its row, and is stored nowhere else."""

    ABSENT = "absent"
    OPEN = "open"
    ENDED = "ended"


class Change(StrEnum):
    """What is done to it."""

    BEGIN = "begin"
    END = "end"
    REOPEN = "reopen"
    PASS = "pass"  # noqa: S105 - a boundary that leaves it as it is: a compaction, a branch
    PURGE = "purge"


class Announced(StrEnum):
    """What plugins hear of a change."""

    NOTHING = "nothing"
    FINAL = "the end of an epoch"
    BOUNDARY = "a boundary"


class Transition(NamedTuple):
    """Where a change leads."""

    to: State
    announced: Announced = Announced.NOTHING
    begins_epoch: bool = False


TABLE: Final[dict[tuple[State, Change], Transition]] = {
    (State.ABSENT, Change.BEGIN): Transition(State.OPEN),
    (State.ABSENT, Change.END): Transition(State.ABSENT),  # what never was does not end
    (State.ABSENT, Change.REOPEN): Transition(State.ABSENT),
    (State.ABSENT, Change.PURGE): Transition(State.ABSENT),
    (State.OPEN, Change.BEGIN): Transition(State.OPEN),
    (State.OPEN, Change.END): Transition(State.ENDED, Announced.FINAL),
    (State.OPEN, Change.REOPEN): Transition(State.OPEN),
    (State.OPEN, Change.PASS): Transition(State.OPEN, Announced.BOUNDARY),
    (State.ENDED, Change.BEGIN): Transition(State.ENDED),
    (State.ENDED, Change.END): Transition(State.ENDED),  # the first reason stays
    (State.ENDED, Change.REOPEN): Transition(State.OPEN, Announced.BOUNDARY, begins_epoch=True),
    (State.ENDED, Change.PASS): Transition(State.ENDED, Announced.BOUNDARY),
    (State.ENDED, Change.PURGE): Transition(State.ABSENT),
}

# What each known reason for an end announces.
KIND_OF_REASON: Final = {
    "new_session": BoundaryKind.NEW,
    "session_reset": BoundaryKind.NEW,
    "idle": BoundaryKind.IDLE,
    "daily": BoundaryKind.DAILY,
    "suspended": BoundaryKind.SUSPEND,
    "resumed_other": BoundaryKind.RESUME,
    "session_switch": BoundaryKind.RESUME,
    "branched": BoundaryKind.BRANCH,
    "handoff": BoundaryKind.HANDOFF,
    "compression": BoundaryKind.COMPACTION,
    "idle_timeout": BoundaryKind.EXPIRY,
    "resume_pending_expired": BoundaryKind.EXPIRY,
    "deleted": BoundaryKind.PRUNE,
    "pruned": BoundaryKind.PRUNE,
    "crashed": BoundaryKind.CRASH,
}


def kind_of(reason: str) -> BoundaryKind:
    """The kind of boundary that a reason makes; one that is not known is a process's end."""
    return KIND_OF_REASON.get(reason, BoundaryKind.SHUTDOWN)


def state_of(reader: Reader, session_id: str) -> State:
    """What a conversation is now."""
    is_open = reader.value(STATE, (session_id,))
    if is_open is None:
        return State.ABSENT
    return State.OPEN if is_open else State.ENDED


def transition(state: State, change: Change) -> Transition:
    """Where a change leads from a state; an error if it leads nowhere."""
    found = TABLE.get((state, change))
    if found is None:
        raise IllegalChangeError(f"a conversation that is {state} cannot {change}")
    return found


def plan(reader: Reader, session_id: str, change: Change) -> Transition:
    """Where a change leads a conversation from where it is."""
    return transition(state_of(reader, session_id), change)
