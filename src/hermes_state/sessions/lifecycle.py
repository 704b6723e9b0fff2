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


class SessionState(StrEnum):
    """State of a conversation, derived from its row."""

    ABSENT = "absent"
    OPEN = "open"
    ENDED = "ended"


class LifecycleChange(StrEnum):
    """A change of the state."""

    BEGIN = "begin"
    END = "end"
    REOPEN = "reopen"
    PASS = "pass"  # noqa: S105 - a boundary without a state change: a compaction, a branch
    PURGE = "purge"


class AnnouncedBoundary(StrEnum):
    """The boundary event that plugins receive for a change."""

    NOTHING = "nothing"
    FINAL = "the end of an epoch"
    BOUNDARY = "a boundary"


class Transition(NamedTuple):
    """The state after a change, and the event it announces."""

    to: SessionState
    announced: AnnouncedBoundary = AnnouncedBoundary.NOTHING
    begins_epoch: bool = False


TRANSITIONS: Final[dict[tuple[SessionState, LifecycleChange], Transition]] = {
    (SessionState.ABSENT, LifecycleChange.BEGIN): Transition(SessionState.OPEN),
    (SessionState.ABSENT, LifecycleChange.END): Transition(SessionState.ABSENT),  # nothing to end
    (SessionState.ABSENT, LifecycleChange.REOPEN): Transition(SessionState.ABSENT),
    (SessionState.ABSENT, LifecycleChange.PURGE): Transition(SessionState.ABSENT),
    (SessionState.OPEN, LifecycleChange.BEGIN): Transition(SessionState.OPEN),
    (SessionState.OPEN, LifecycleChange.END): Transition(
        SessionState.ENDED, AnnouncedBoundary.FINAL
    ),
    (SessionState.OPEN, LifecycleChange.REOPEN): Transition(SessionState.OPEN),
    (SessionState.OPEN, LifecycleChange.PASS): Transition(
        SessionState.OPEN, AnnouncedBoundary.BOUNDARY
    ),
    (SessionState.ENDED, LifecycleChange.BEGIN): Transition(SessionState.ENDED),
    (SessionState.ENDED, LifecycleChange.END): Transition(
        SessionState.ENDED
    ),  # the first reason is kept
    (SessionState.ENDED, LifecycleChange.REOPEN): Transition(
        SessionState.OPEN, AnnouncedBoundary.BOUNDARY, begins_epoch=True
    ),
    (SessionState.ENDED, LifecycleChange.PASS): Transition(
        SessionState.ENDED, AnnouncedBoundary.BOUNDARY
    ),
    (SessionState.ENDED, LifecycleChange.PURGE): Transition(SessionState.ABSENT),
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


def state_of(reader: Reader, session_id: str) -> SessionState:
    """Current state of a conversation."""
    is_open = reader.value(STATE, (session_id,))
    if is_open is None:
        return SessionState.ABSENT
    return SessionState.OPEN if is_open else SessionState.ENDED


def transition(state: SessionState, change: LifecycleChange) -> Transition:
    """The transition of a change from a state; raises IllegalChangeError if there is none."""
    result = TRANSITIONS.get((state, change))
    if result is None:
        raise IllegalChangeError(f"a conversation that is {state} cannot {change}")
    return result


def plan(reader: Reader, session_id: str, change: LifecycleChange) -> Transition:
    """The transition of a change from a conversation's current state."""
    return transition(state_of(reader, session_id), change)
