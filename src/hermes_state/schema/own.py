"""Tables of Hermes in addition to the base tables, as the first release created them.

All of them have the prefix `hermes_`; other programs ignore them. Later changes are
migrations: see `migrations`.
"""

from __future__ import annotations

from typing import Final

from hermes_core.errors import StoreUnavailableError

LAYOUT_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS hermes_layout (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
)
# {blob}, {identity} and {clustered} are filled in by the dialect.
FIRST_TABLES: Final = (
    LAYOUT_TABLE,
    # The durable identity of a message: what makes append idempotent.
    """
    CREATE TABLE IF NOT EXISTS hermes_message (
        uid {blob} PRIMARY KEY,
        message_id INTEGER NOT NULL
    ) {clustered}
    """,
    # Rows that are copies (branches), which are not counted again.
    """
    CREATE TABLE IF NOT EXISTS hermes_copy (
        message_id INTEGER PRIMARY KEY,
        origin_id INTEGER NOT NULL
    )
    """,
    # Derived from sessions and messages in the same transaction; can be rebuilt.
    # A purged session keeps its row: lifetime counts never decrease.
    """
    CREATE TABLE IF NOT EXISTS hermes_session_index (
        session_id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        root_id TEXT NOT NULL,
        shown INTEGER NOT NULL,
        last_activity DOUBLE PRECISION NOT NULL,
        last_message_id INTEGER NOT NULL,
        active_count INTEGER NOT NULL,
        lifetime_messages INTEGER NOT NULL,
        lifetime_tool_calls INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        preview TEXT
    ) {clustered}
    """,
    "CREATE INDEX IF NOT EXISTS hermes_session_index_recent"
    " ON hermes_session_index(shown, last_activity)",
    "CREATE INDEX IF NOT EXISTS hermes_session_index_root"
    " ON hermes_session_index(root_id) WHERE root_id <> session_id",
    # Session columns that an older file lacks.
    """
    CREATE TABLE IF NOT EXISTS hermes_session_extra (
        session_id TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT,
        PRIMARY KEY (session_id, name)
    ) {clustered}
    """,
    # Pieces of a streaming reply, in order.
    """
    CREATE TABLE IF NOT EXISTS hermes_draft (
        uid {blob} NOT NULL,
        part INTEGER NOT NULL,
        session_id TEXT NOT NULL,
        process_id TEXT NOT NULL,
        channel TEXT NOT NULL,
        piece TEXT NOT NULL,
        written_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (uid, part)
    ) {clustered}
    """,
    # Running processes, and the owners of open sessions.
    """
    CREATE TABLE IF NOT EXISTS hermes_process (
        process_id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        boot_id TEXT NOT NULL,
        namespace TEXT NOT NULL,
        pid INTEGER NOT NULL,
        birth TEXT NOT NULL,
        seen_at DOUBLE PRECISION NOT NULL,
        seen_monotonic DOUBLE PRECISION NOT NULL
    ) {clustered}
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_owner (
        session_id TEXT PRIMARY KEY,
        process_id TEXT NOT NULL,
        since DOUBLE PRECISION NOT NULL
    ) {clustered}
    """,
    # One turn at a time: the token never decreases, even when a lease is taken over.
    """
    CREATE TABLE IF NOT EXISTS hermes_lease (
        session_id TEXT PRIMARY KEY,
        token INTEGER NOT NULL,
        process_id TEXT,
        holder TEXT,
        acquired_at DOUBLE PRECISION,
        expires_at DOUBLE PRECISION,
        expires_monotonic DOUBLE PRECISION
    ) {clustered}
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_inbox (
        inbox_id {identity},
        platform TEXT NOT NULL,
        account TEXT NOT NULL,
        chat_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        session_key TEXT NOT NULL,
        payload TEXT NOT NULL,
        received_at DOUBLE PRECISION NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'claimed', 'done', 'failed')),
        attempts INTEGER NOT NULL DEFAULT 0,
        process_id TEXT,
        session_id TEXT,
        settled_at DOUBLE PRECISION,
        error TEXT,
        UNIQUE (platform, account, chat_id, message_id)
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_inbox_unsettled ON hermes_inbox(session_key, inbox_id)"
    " WHERE state IN ('waiting', 'claimed')",
    "CREATE INDEX IF NOT EXISTS hermes_inbox_next ON hermes_inbox(state, inbox_id)"
    " WHERE state IN ('waiting', 'claimed')",
    "CREATE INDEX IF NOT EXISTS hermes_inbox_message ON hermes_inbox(message_id)",
    "CREATE INDEX IF NOT EXISTS hermes_inbox_settled ON hermes_inbox(settled_at)"
    " WHERE settled_at IS NOT NULL",
    """
    CREATE TABLE IF NOT EXISTS hermes_outbox (
        outbox_id {identity},
        idempotency_key TEXT NOT NULL UNIQUE,
        session_id TEXT,
        inbox_id INTEGER,
        platform TEXT NOT NULL,
        target TEXT NOT NULL,
        payload TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        state TEXT NOT NULL
            CHECK (state IN ('waiting', 'sending', 'sent', 'ambiguous', 'failed')),
        attempts INTEGER NOT NULL DEFAULT 0,
        due_at DOUBLE PRECISION NOT NULL,
        process_id TEXT,
        settled_at DOUBLE PRECISION,
        receipt TEXT,
        error TEXT
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_outbox_next ON hermes_outbox(platform, outbox_id)"
    " WHERE state IN ('waiting', 'sending', 'ambiguous')",
    "CREATE INDEX IF NOT EXISTS hermes_outbox_chat ON hermes_outbox(platform, target, outbox_id)"
    " WHERE state IN ('waiting', 'sending', 'ambiguous')",
    "CREATE INDEX IF NOT EXISTS hermes_outbox_of_message ON hermes_outbox(inbox_id)",
    "CREATE INDEX IF NOT EXISTS hermes_outbox_settled ON hermes_outbox(settled_at)"
    " WHERE settled_at IS NOT NULL",
    """
    CREATE TABLE IF NOT EXISTS hermes_boundary (
        sequence {identity},
        event_id TEXT NOT NULL UNIQUE,
        session_id TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        kind TEXT NOT NULL,
        reason TEXT NOT NULL,
        old_session_id TEXT,
        new_session_id TEXT,
        platform TEXT NOT NULL,
        occurred_at DOUBLE PRECISION NOT NULL,
        is_final INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'delivering', 'delivered', 'dead')),
        attempts INTEGER NOT NULL DEFAULT 0,
        due_at DOUBLE PRECISION NOT NULL,
        process_id TEXT,
        settled_at DOUBLE PRECISION,
        error TEXT
    )
    """,
    # A session has one final event per epoch, even under concurrency.
    "CREATE UNIQUE INDEX IF NOT EXISTS hermes_boundary_final"
    " ON hermes_boundary(session_id, epoch) WHERE is_final = 1",
    "CREATE INDEX IF NOT EXISTS hermes_boundary_undelivered ON hermes_boundary(due_at, sequence)"
    " WHERE state IN ('waiting', 'delivering')",
    # Events accepted by each consumer.
    """
    CREATE TABLE IF NOT EXISTS hermes_delivery (
        event_id TEXT NOT NULL,
        consumer TEXT NOT NULL,
        taken_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (event_id, consumer)
    ) {clustered}
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_undo (
        undo_id {identity},
        session_id TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        last_message_id INTEGER NOT NULL,
        is_open INTEGER NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_undo_session ON hermes_undo(session_id, undo_id)",
    """
    CREATE TABLE IF NOT EXISTS hermes_undo_row (
        undo_id INTEGER NOT NULL,
        message_id INTEGER NOT NULL,
        PRIMARY KEY (undo_id, message_id)
    ) {clustered}
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_trash (
        session_id TEXT PRIMARY KEY,
        trashed_at DOUBLE PRECISION NOT NULL,
        reason TEXT NOT NULL,
        was_archived INTEGER NOT NULL,
        was_open INTEGER NOT NULL,
        title TEXT
    ) {clustered}
    """,
    # Sessions that were changed other than by new messages, with the latest change.
    """
    CREATE TABLE IF NOT EXISTS hermes_change (
        session_id TEXT PRIMARY KEY,
        sequence INTEGER NOT NULL
    ) {clustered}
    """,
    "CREATE INDEX IF NOT EXISTS hermes_change_sequence ON hermes_change(sequence)",
    # Tags of a conversation, under the ID of its first row.
    """
    CREATE TABLE IF NOT EXISTS hermes_tag (
        session_id TEXT NOT NULL,
        folded TEXT NOT NULL,
        tag TEXT NOT NULL,
        PRIMARY KEY (session_id, folded)
    ) {clustered}
    """,
    "CREATE INDEX IF NOT EXISTS hermes_tag_folded ON hermes_tag(folded, session_id)",
    # The current conversation of a place.
    """
    CREATE TABLE IF NOT EXISTS hermes_route (
        place TEXT PRIMARY KEY,
        session_key TEXT NOT NULL UNIQUE,
        session_id TEXT NOT NULL,
        updated_at DOUBLE PRECISION NOT NULL,
        entry TEXT NOT NULL
    ) {clustered}
    """,
    # Spending of a chat user per day, and answers that are being streamed.
    """
    CREATE TABLE IF NOT EXISTS hermes_spending (
        platform TEXT NOT NULL,
        user_id TEXT NOT NULL,
        day TEXT NOT NULL,
        dollars DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (platform, user_id, day)
    ) {clustered}
    """,
    "CREATE TABLE IF NOT EXISTS hermes_shown (inbox_id INTEGER PRIMARY KEY, receipt TEXT NOT NULL)",
    # Actions that must not be repeated.
    """
    CREATE TABLE IF NOT EXISTS hermes_mark (
        name TEXT PRIMARY KEY,
        made_at DOUBLE PRECISION NOT NULL
    ) {clustered}
    """,
    # Approved users, pending pairing codes, and wrong codes.
    """
    CREATE TABLE IF NOT EXISTS hermes_allowed (
        platform TEXT NOT NULL,
        user_id TEXT NOT NULL,
        user_name TEXT NOT NULL,
        allowed_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (platform, user_id)
    ) {clustered}
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_pairing (
        platform TEXT NOT NULL,
        user_id TEXT NOT NULL,
        user_name TEXT NOT NULL,
        salt {blob} NOT NULL,
        digest {blob} NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (platform, user_id)
    ) {clustered}
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_guess (
        guess_id {identity},
        platform TEXT NOT NULL,
        guessed_at DOUBLE PRECISION NOT NULL
    )
    """,
    # What purged sessions add to lifetime statistics: numbers, no text.
    """
    CREATE TABLE IF NOT EXISTS hermes_kept (
        session_id TEXT PRIMARY KEY,
        facts {blob} NOT NULL,
        kept_at DOUBLE PRECISION NOT NULL
    ) {clustered}
    """,
)


# In a database into which a history is being copied.
UNFINISHED_COPY: Final = "unfinished_copy"
READ_LAYOUT: Final = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = ?"
RAISE_LAYOUT: Final = """
    INSERT INTO hermes_layout (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    WHERE CAST(hermes_layout.value AS INTEGER) < CAST(excluded.value AS INTEGER)
"""
REMOVE_LAYOUT: Final = "DELETE FROM hermes_layout WHERE name = ?"
ADD_LAYOUT: Final = "INSERT INTO hermes_layout (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
RECORD_MIGRATION: Final = """
    INSERT INTO hermes_migration (number, name, applied_at, position) VALUES (?, ?, ?, ?)
"""


def refuse_unfinished_copy(mark: int, place: str) -> None:
    """Refuse a database that holds only a part of a history; *mark* is that of UNFINISHED_COPY."""
    if mark:
        raise StoreUnavailableError(
            f"{place} is an unfinished copy of a history. Run `hermes store copy --to …` again on "
            "the machine that has the original; if the setting store.url already names the copy, "
            "run `hermes config unset store.url` first."
        )
