"""The tables that a session file shares with hermes-agent, which defined the format.

They are created only in a new file. An existing file is used as it is: no column is added
and no version row is changed.
"""

from __future__ import annotations

from typing import Final

BASE_VERSION: Final = 26

BASE_TABLES: Final = (
    "CREATE TABLE schema_version (version INTEGER NOT NULL)",
    "CREATE TABLE system_prompts (hash TEXT PRIMARY KEY, prompt TEXT NOT NULL)",
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        source TEXT NOT NULL,
        user_id TEXT,
        session_key TEXT,
        chat_id TEXT,
        chat_type TEXT,
        thread_id TEXT,
        display_name TEXT,
        origin_json TEXT,
        expiry_finalized INTEGER DEFAULT 0,
        model TEXT,
        model_config TEXT,
        system_prompt TEXT,
        system_prompt_hash TEXT REFERENCES system_prompts(hash),
        parent_session_id TEXT REFERENCES sessions(id),
        started_at REAL NOT NULL,
        ended_at REAL,
        end_reason TEXT,
        message_count INTEGER DEFAULT 0,
        tool_call_count INTEGER DEFAULT 0,
        input_tokens INTEGER DEFAULT 0,
        output_tokens INTEGER DEFAULT 0,
        cache_read_tokens INTEGER DEFAULT 0,
        cache_write_tokens INTEGER DEFAULT 0,
        reasoning_tokens INTEGER DEFAULT 0,
        cwd TEXT,
        git_branch TEXT,
        git_repo_root TEXT,
        git_metadata_generation INTEGER NOT NULL DEFAULT 0,
        billing_provider TEXT,
        billing_base_url TEXT,
        billing_mode TEXT,
        estimated_cost_usd REAL,
        actual_cost_usd REAL,
        cost_status TEXT,
        cost_source TEXT,
        pricing_version TEXT,
        title TEXT,
        title_source TEXT,
        last_activity_at REAL,
        last_activity_description TEXT,
        last_activity_provenance TEXT,
        api_call_count INTEGER DEFAULT 0,
        handoff_state TEXT,
        handoff_platform TEXT,
        handoff_error TEXT,
        compression_failure_cooldown_until REAL,
        compression_failure_error TEXT,
        compression_fallback_streak INTEGER NOT NULL DEFAULT 0,
        compression_ineffective_count INTEGER NOT NULL DEFAULT 0,
        profile_name TEXT,
        rewind_count INTEGER NOT NULL DEFAULT 0,
        archived INTEGER NOT NULL DEFAULT 0,
        pinned INTEGER NOT NULL DEFAULT 0,
        hidden INTEGER NOT NULL DEFAULT 0,
        last_read_at REAL
    )
    """,
    """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES sessions(id),
        role TEXT NOT NULL,
        content TEXT,
        tool_call_id TEXT,
        tool_calls TEXT,
        tool_name TEXT,
        effect_disposition TEXT,
        timestamp REAL NOT NULL,
        token_count INTEGER,
        finish_reason TEXT,
        reasoning TEXT,
        reasoning_content TEXT,
        reasoning_details TEXT,
        codex_reasoning_items TEXT,
        codex_message_items TEXT,
        platform_message_id TEXT,
        observed INTEGER DEFAULT 0,
        active INTEGER NOT NULL DEFAULT 1,
        compacted INTEGER NOT NULL DEFAULT 0,
        api_content TEXT,
        display_kind TEXT,
        display_metadata TEXT
    )
    """,
    """
    CREATE TABLE session_model_usage (
        session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        model TEXT NOT NULL,
        billing_provider TEXT NOT NULL DEFAULT '',
        billing_base_url TEXT NOT NULL DEFAULT '',
        billing_mode TEXT NOT NULL DEFAULT '',
        task TEXT NOT NULL DEFAULT '',
        api_call_count INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0,
        cache_read_tokens INTEGER NOT NULL DEFAULT 0,
        cache_write_tokens INTEGER NOT NULL DEFAULT 0,
        reasoning_tokens INTEGER NOT NULL DEFAULT 0,
        estimated_cost_usd REAL NOT NULL DEFAULT 0,
        actual_cost_usd REAL NOT NULL DEFAULT 0,
        cost_status TEXT,
        cost_source TEXT,
        first_seen REAL,
        last_seen REAL,
        PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
    )
    """,
    "CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT)",
    """
    CREATE TABLE gateway_routing (
        scope TEXT NOT NULL DEFAULT '',
        session_key TEXT NOT NULL,
        entry_json TEXT NOT NULL,
        updated_at REAL NOT NULL,
        PRIMARY KEY (scope, session_key)
    )
    """,
    """
    CREATE TABLE compression_locks (
        session_id TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        acquired_at REAL NOT NULL,
        expires_at REAL NOT NULL
    )
    """,
    """
    CREATE TABLE session_turn_leases (
        conversation_id TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        acquired_at REAL NOT NULL,
        expires_at REAL NOT NULL
    )
    """,
)

BASE_INDEXES: Final = (
    "CREATE INDEX idx_sessions_source ON sessions(source)",
    "CREATE INDEX idx_sessions_source_id ON sessions(source, id)",
    "CREATE INDEX idx_sessions_parent ON sessions(parent_session_id)",
    "CREATE INDEX idx_sessions_started ON sessions(started_at DESC)",
    "CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL",
    "CREATE INDEX idx_sessions_session_key ON sessions(session_key, started_at DESC)",
    "CREATE INDEX idx_sessions_system_prompt_hash ON sessions(system_prompt_hash)",
    "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)",
    "CREATE INDEX idx_messages_session_id ON messages(session_id, id)",
    "CREATE INDEX idx_messages_session_active ON messages(session_id, active, timestamp)",
    "CREATE INDEX idx_messages_platform_msg_id ON messages(session_id, platform_message_id)"
    " WHERE platform_message_id IS NOT NULL",
    "CREATE INDEX idx_messages_assistant_calls_by_session ON messages(session_id)"
    " WHERE role = 'assistant' AND tool_calls IS NOT NULL",
    "CREATE INDEX idx_compression_locks_expires ON compression_locks(expires_at)",
)

# Columns of schema 16, the oldest that can be written to, and what reading an older file
# gives for them.
OLDEST_WRITABLE: Final = 16
SESSION_DEFAULTS: Final = {
    **dict.fromkeys(
        ("user_id", "model", "model_config", "system_prompt", "parent_session_id", "ended_at",
         "end_reason", "cwd", "billing_provider", "billing_base_url", "billing_mode",
         "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source",
         "pricing_version", "title", "handoff_state", "handoff_platform", "handoff_error"),
        "NULL",
    ),
    **dict.fromkeys(
        ("message_count", "tool_call_count", "input_tokens", "output_tokens",
         "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "api_call_count",
         "rewind_count", "archived"),
        "0",
    ),
}  # fmt: skip
MESSAGE_DEFAULTS: Final = {
    **dict.fromkeys(
        ("tool_call_id", "tool_calls", "tool_name", "token_count", "finish_reason",
         "reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items",
         "codex_message_items", "platform_message_id"),
        "NULL",
    ),
    "observed": "0",
    "active": "1",
    "compacted": "0",
}  # fmt: skip


def schema_sql() -> str:
    """The tables and indexes of hermes-agent, as one script."""
    return ";\n".join(statement.strip() for statement in (*BASE_TABLES, *BASE_INDEXES)) + ";\n"
