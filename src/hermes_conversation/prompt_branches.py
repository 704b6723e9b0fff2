"""Where the branches of a conversation differ: prompts with more than one version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hermes_state.store import SessionDB

MAX_BRANCHES: Final = 50  # compared; more are not shown
DELEGATE: Final = "delegate"


class PromptVersions(NamedTuple):
    """A prompt and the sessions with its versions, in order of creation."""

    message_id: int
    session_ids: list[str]
    selected: int  # the position of the open session


def prompt_versions(db: SessionDB, session_id: str) -> list[PromptVersions]:
    """The prompts of a session that other branches replaced, oldest first."""
    family = db.facets.family(session_id)
    members = [
        member.id
        for member in family[:MAX_BRANCHES]
        if member.kind != DELEGATE and member.trashed_at is None and member.id != session_id
    ]
    if not members:
        return []
    own_ids = sorted(db.edits.prompt_ids(session_id))
    own = _origins(db, session_id)
    others = {member: _origins(db, member) for member in members}
    versions = []
    for position, message_id in enumerate(own_ids):
        sessions = {own[position]: session_id}
        for member, prompts in others.items():
            if len(prompts) > position and prompts[:position] == own[:position]:
                sessions.setdefault(prompts[position], member)
        if len(sessions) > 1:
            found = [sessions[origin] for origin in sorted(sessions)]
            versions.append(PromptVersions(message_id, found, found.index(session_id)))
    return versions


def _origins(db: SessionDB, session_id: str) -> list[int]:
    """The prompts of a session; a copied one is named by the row that was written first."""
    origins = db.edits.origins(session_id)
    return [origins.get(row_id, row_id) for row_id in sorted(db.edits.prompt_ids(session_id))]
