"""The lifecycle of a conversation as a table of states and transitions.

Front ends, the gateway and crash recovery change a conversation's state only through
`sessions.create`, `end` and `reopen`, which consult this table. A transition that is not in
the table is an error. docs/explanation/life-of-a-conversation.md shows it.
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
    """State of a conversation, derived from its row."""

    ABSENT = "absent"
    OPEN = "open"
    ENDED = "ended"


class Change(StrEnum):
    """A change of the state."""

    BEGIN = "begin"
    END = "end"
    REOPEN = "reopen"
    PASS = "pass"  # noqa: S105 - a boundary without a state change: a compaction, a branch
    PURGE = "purge"


class Announced(StrEnum):
    """The boundary event that plugins receive for a change."""

    NOTHING = "nothing"
    FINAL = "the end of an epoch"
    BOUNDARY = "a boundary"


class Transition(NamedTuple):
    """The state after a change, and the event it announces."""

    to: State
    announced: Announced = Announced.NOTHING
    begins_epoch: bool = False


TRANSITIONS: Final[dict[tuple[State, Change], Transition]] = {
    (State.ABSENT, Change.BEGIN): Transition(State.OPEN),
    (State.ABSENT, Change.END): Transition(State.ABSENT),  # nothing to end
    (State.ABSENT, Change.REOPEN): Transition(State.ABSENT),
    (State.ABSENT, Change.PURGE): Transition(State.ABSENT),
    (State.OPEN, Change.BEGIN): Transition(State.OPEN),
    (State.OPEN, Change.END): Transition(State.ENDED, Announced.FINAL),
    (State.OPEN, Change.REOPEN): Transition(State.OPEN),
    (State.OPEN, Change.PASS): Transition(State.OPEN, Announced.BOUNDARY),
    (State.ENDED, Change.BEGIN): Transition(State.ENDED),
    (State.ENDED, Change.END): Transition(State.ENDED),  # the first reason is kept
    (State.ENDED, Change.REOPEN): Transition(State.OPEN, Announced.BOUNDARY, begins_epoch=True),
    (State.ENDED, Change.PASS): Transition(State.ENDED, Announced.BOUNDARY),
    (State.ENDED, Change.PURGE): Transition(State.ABSENT),
}

# Boundary kind by end reason.
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
    """Boundary kind of an end reason; unknown reasons count as a shutdown."""
    return KIND_OF_REASON.get(reason, BoundaryKind.SHUTDOWN)


def state_of(reader: Reader, session_id: str) -> State:
    """Current state of a conversation."""
    is_open = reader.value(STATE, (session_id,))
    if is_open is None:
        return State.ABSENT
    return State.OPEN if is_open else State.ENDED


def transition(state: State, change: Change) -> Transition:
    """The transition of a change from a state; raises IllegalChangeError if there is none."""
    result = TRANSITIONS.get((state, change))
    if result is None:
        raise IllegalChangeError(f"a conversation that is {state} cannot {change}")
    return result


def plan(reader: Reader, session_id: str, change: Change) -> Transition:
    """The transition of a change from a conversation's current state."""
    return transition(state_of(reader, session_id), change)
