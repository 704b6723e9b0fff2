"""Search triggers that another program left on the messages table.

They fill that program's own search index on every change, and a damaged index makes
them refuse the change: the message itself. Then the message comes first. The triggers
are dropped, which is said in the log; their owner makes them and its index anew.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from hermes_state.engine.errors import is_passing

if TYPE_CHECKING:
    from hermes_state.engine.driver import sqlite3
    from hermes_state.engine.transaction import Tx

log = logging.getLogger(__name__)

SEARCH_TRIGGERS: Final = """
    SELECT name FROM sqlite_master
    WHERE type = 'trigger' AND tbl_name = 'messages' AND name LIKE '%fts%'
"""
# Rules of the shared tables; a search index breaks none of these.
OUR_OWN_RULES: Final = ("FOREIGN KEY", "UNIQUE", "NOT NULL", "CHECK constraint")


def drop_if_guilty(tx: Tx, error: sqlite3.Error) -> bool:
    """Drop foreign search triggers if they can have caused *error*; whether to try again."""
    if is_passing(error) or any(rule in str(error) for rule in OUR_OWN_RULES):
        return False
    names = [row[0] for row in tx.rows(SEARCH_TRIGGERS)]
    if not names:
        return False
    tx.execute("BEGIN IMMEDIATE")
    for name in names:
        quoted = name.replace('"', '""')
        tx.execute(f'DROP TRIGGER "{quoted}"')
    tx.execute("COMMIT")
    log.warning(
        "another program's search index is damaged and refused a message (%s); "
        "its triggers were dropped so that the message could be stored: %s",
        error,
        ", ".join(names),
    )
    return True
