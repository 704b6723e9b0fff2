"""Achievements of one source: those with a tier that was earned in one of its conversations.

An achievement counts all conversations, so its state and progress stay those of the whole
history. The message that reached a tier decides which source the tier belongs to; a message of
a sub-agent belongs to the source of the conversation that started it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_achievements.scan.history import SessionKind
from hermes_achievements.scan.ledger_entries import decode_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_achievements.evaluation.snapshot import AchievementView, Snapshot, TierStep
    from hermes_achievements.scan.history import History, ScannedSession

    AnyStep = TypeVar("AnyStep", bound=TierStep)

MAX_DEPTH: Final = 20  # of sub-agents of sub-agents


def earned_in(
    snapshot: Snapshot, source: str | None, open_history: Callable[[], History]
) -> Snapshot:
    """The snapshot with only the achievements of which *source* has earned a tier."""
    if source is None:
        return snapshot
    shown = snapshot["achievements"]
    steps = [step for item in shown for step in item.get("tier_history") or ()]
    kept = {step["session_id"] for step in steps_in(steps, source, open_history)}

    def is_kept(item: AchievementView) -> bool:
        return any(step["session_id"] in kept for step in item.get("tier_history") or ())

    return {**snapshot, "achievements": [item for item in shown if is_kept(item)]}


def steps_in(
    steps: Sequence[AnyStep], source: str | None, open_history: Callable[[], History]
) -> list[AnyStep]:
    """The steps that were earned in conversations of *source*; all of them for None."""
    if source is None:
        return list(steps)
    ids = {step["session_id"] for step in steps if step["session_id"]}
    with contextlib.closing(open_history()) as history:
        kept = {each for each in ids if _source_of(history, each) == source}
    return [step for step in steps if step["session_id"] in kept]


def _source_of(history: History, session_id: str) -> str | None:
    """The source of a conversation, also of a purged one; None if it is unknown."""
    session = _session(history, session_id)
    for _ in range(MAX_DEPTH):
        if session is None or session.kind != SessionKind.SUBAGENT or session.parent_id is None:
            break
        session = _session(history, session.parent_id) or session._replace(parent_id=None)
    return None if session is None else session.source


def _session(history: History, session_id: str) -> ScannedSession | None:
    session = history.session(session_id)
    if session is not None:
        return session
    facts = decode_facts(history.purged_facts(session_id))
    return None if facts is None else facts.session
