"""Saves the statistics of a session before its rows are purged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_achievements.scan.history import History


def keep_facts(history: History, session_id: str) -> bytes | None:
    """The facts to keep of a session that is about to be deleted permanently."""
    from hermes_achievements.scan.ledger_entries import facts_to_keep  # noqa: PLC0415 - rarely needed

    return facts_to_keep(history, session_id)
