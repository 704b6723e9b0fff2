"""Users who may write to the gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_state import SessionDB


def pair(db: SessionDB, platform: str, user_id: str, user_name: str = "") -> None:
    """Pair a user, as somebody does who sends a code that the owner approves."""
    code = db.pairings.request(platform, user_id, user_name)
    assert code is not None
    assert db.pairings.approve(platform, code) is not None
