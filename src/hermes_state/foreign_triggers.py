"""Search triggers that another program left on the messages table.

They fill that program's own search index on every change, and a damaged index makes
them refuse the change: the message itself. Then the message comes first. The triggers
are dropped, which is said in the log; their owner makes them and its index anew.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from hermes_state.driver import sqlite3
from hermes_state.trouble import is_passing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.transaction import Tx

log = logging.getLogger(__name__)

SEARCH_TRIGGERS = """
    SELECT name FROM sqlite_master
    WHERE type = 'trigger' AND tbl_name = 'messages' AND name LIKE '%fts%'
"""


def change_messages(tx: Tx, sql: str, parameters: Sequence[Any]) -> sqlite3.Cursor:
    """Run a statement that changes `messages`, without foreign triggers if they break it."""
    try:
        return tx.execute(sql, parameters)
    except sqlite3.Error as error:
        if is_passing(error) or "FOREIGN KEY" in str(error) or not tx.is_open:
            raise
        names = [row[0] for row in tx.rows(SEARCH_TRIGGERS)]
        if not names:
            raise
        for name in names:
            quoted = name.replace('"', '""')
            tx.execute(f'DROP TRIGGER "{quoted}"')
        log.warning(
            "another program's search index is damaged and refused a message (%s); "
            "its triggers were dropped so that the message could be stored: %s",
            error,
            ", ".join(names),
        )
        return tx.execute(sql, parameters)
