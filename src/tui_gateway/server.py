"""The entry points of the server that other programs and the contract tests use.

Functions call each other through their names in this module, so that a replaced function
takes effect.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hermes_conversation.purge_hook import keep_facts
from hermes_core import paths
from hermes_state import SessionDB
from tui_gateway.finalization import finalize

if TYPE_CHECKING:
    from pathlib import Path

    from tui_gateway.finalization import Session


@cache
def _store_at(path: Path) -> SessionDB:
    return SessionDB(path, purge_hook=keep_facts)


def _get_db() -> SessionDB:
    """The user's store, opened once per path."""
    return _store_at(paths.state_db_path())


def _finalize_session(session: Session, end_reason: str = "tui_close") -> None:
    """End a live session: save its messages, announce its end, close its row."""
    finalize(session, end_reason, lambda: _get_db())  # noqa: PLW0108 - looked up at call time
