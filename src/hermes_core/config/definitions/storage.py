"""Settings of the store, of sessions and of the display."""

from __future__ import annotations

from typing import Final

from hermes_core.config.schema import Setting

STORAGE_SETTINGS: Final = (
    Setting(
        "store.url",
        "str",
        "",
        "PostgreSQL database that holds the history instead of state.db, for several machines: "
        "postgresql://USER@HOST/DATABASE, or service=NAME. Empty means the file.",
        only_by_hand=True,
        format="database_url",
    ),
    Setting(
        "store.password",
        "str",
        "",
        "Password of the database, unless a service file has it.",
        secret=True,
    ),
    Setting(
        "store.node_timeout_seconds",
        "float",
        15.0,
        "Seconds without a heartbeat after which another machine takes over the work of one "
        "that shares the database.",
        minimum=2,
        maximum=600,
        is_shared_by_nodes=True,
    ),
    Setting(
        "store.busy_seconds",
        "float",
        10.0,
        "Seconds a write waits for another process before it goes to the journal.",
        minimum=0.1,
        maximum=600,
    ),
    Setting(
        "media.max_mb",
        "int",
        5000,
        "Maximum size of the folder with files of chat messages, in MB. Beyond it, the gateway "
        "deletes the oldest files, but none of the last day; 0 means no limit.",
        minimum=0,
        maximum=10_000_000,
    ),
    Setting(
        "media.keep_days",
        "int",
        0,
        "Days to keep files of chat messages; 0 means forever.",
        minimum=0,
        maximum=36500,
    ),
    Setting(
        "store.trash_days",
        "int",
        30,
        "Days a deleted session can be restored; 0 keeps it in the trash forever.",
        minimum=0,
        maximum=36500,
    ),
    Setting(
        "store.wal_limit_mb",
        "int",
        64,
        "Size in MB to which the write-ahead log is truncated after a checkpoint.",
        minimum=1,
        maximum=4096,
    ),
    Setting(
        "store.journal_mode",
        "choice",
        "keep",
        "Journal of a history that another program created: keep its mode, or convert it to a "
        "write-ahead log.",
        choices=("keep", "wal"),
    ),
    Setting(
        "store.draft_interval_ms",
        "int",
        150,
        "Milliseconds between checkpoints of a streaming reply; a crash loses at most this much.",
        minimum=10,
        maximum=250,
    ),
    Setting(
        "search.tool_output",
        "bool",
        True,
        "Index tool calls and their results when they are searched; if false, every such search "
        "reads them all.",
    ),
    Setting(
        "search.embeddings",
        "str",
        "auto",
        "Search by meaning: auto (MiniLM if `hermes models get minilm` has installed it), off, "
        "minilm, or an OpenAI-compatible endpoint as URL#MODEL, which then gets the text of all "
        "messages.",
        only_by_hand=True,
    ),
    Setting(
        "search.embeddings_key",
        "str",
        "",
        "API key of the endpoint of search.embeddings.",
        secret=True,
        secret_variable="HERMES_EMBEDDINGS_KEY",  # noqa: S106 - a name
        only_by_hand=True,
    ),
    Setting("sessions.auto_prune", "bool", False, "Move old sessions to the trash automatically."),
    Setting(
        "sessions.retention_days",
        "int",
        0,
        "With auto_prune: days without activity after which an ended session moves to the "
        "trash; 0 keeps every session.",
        minimum=0,
        maximum=36500,
    ),
    Setting(
        "session_reset.mode",
        "choice",
        "none",
        "When a chat starts a new conversation automatically: never, after a pause, once a "
        "day, or both.",
        choices=("none", "idle", "daily", "both"),
        is_shared_by_nodes=True,
    ),
    Setting(
        "session_reset.at_hour",
        "int",
        4,
        "Hour of the daily reset, in the time zone of display.timezone.",
        minimum=0,
        maximum=23,
        is_shared_by_nodes=True,
    ),
    Setting(
        "session_reset.idle_minutes",
        "int",
        1440,
        "Minutes of inactivity after which a conversation expires.",
        minimum=1,
        maximum=5256000,
        is_shared_by_nodes=True,
    ),
    Setting(
        "display.color",
        "choice",
        "auto",
        "Colored output; auto means only on a terminal.",
        choices=("auto", "always", "never"),
    ),
    Setting(
        "display.timezone",
        "str",
        "",
        "Time zone for all displayed times, e.g. Europe/Berlin; empty means the system's.",
        format="time_zone",
        is_shared_by_nodes=True,
    ),
    Setting(
        "display.vim_keys",
        "bool",
        False,
        "Vim keys in the input of the terminal UI and of `hermes chat`: Esc leaves insert mode.",
    ),
    Setting(
        "display.dollars_per_month",
        "float",
        0.0,
        "Your own budget in dollars per calendar month: the web page and `hermes usage` show when "
        "it is exceeded; nothing is stopped. 0 means none.",
        minimum=0,
        maximum=1000000,
    ),
    Setting(
        "import.follow",
        "bool",
        False,
        "Import conversations of other agents while they work, in the gateway and in "
        "`hermes serve`.",
    ),
    Setting(
        "import.idle_minutes",
        "int",
        30,
        "Minutes without a new message after which a followed conversation of another agent "
        "has ended.",
        minimum=1,
        maximum=10080,
    ),
    Setting(
        "import.agents",
        "list",
        (),
        "Agents to follow, e.g. claude-code and codex; empty means all that are found.",
    ),
)
