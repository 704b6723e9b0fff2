"""Every setting there is, as one table.

Validation, the `config` commands, the environment variables and
docs/reference/settings.md all read this table; a setting that is not in it does
not exist. A name is `section.key`, and the same two words are its place in
config.yaml. A section whose keys are names of the user's own is in BLOCKS instead;
whoever uses it reads what is in it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Value = bool | int | float | str | tuple[str, ...]
Kind = Literal["bool", "int", "float", "str", "list", "choice"]


class Setting(NamedTuple):
    """One thing the user may decide."""

    name: str
    kind: Kind
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    secret: bool = False
    secret_variable: str = ""
    only_by_hand: bool = False  # says what is run or who is let in: never set through a web page

    @property
    def section(self) -> str:
        """The top-level word in config.yaml."""
        return self.name.partition(".")[0]

    @property
    def key(self) -> str:
        """The word below the section."""
        return self.name.partition(".")[2]

    @property
    def variable(self) -> str:
        """The environment variable that overrides the files."""
        return self.secret_variable or f"HERMES_{self.name.replace('.', '_').upper()}"


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "store.busy_seconds",
        "float",
        10.0,
        "How long a write waits for another process before it goes to the journal.",
        minimum=0.1,
        maximum=600,
    ),
    Setting(
        "store.trash_days",
        "int",
        30,
        "How long deleted sessions can be restored; 0 keeps them in the trash for ever.",
        minimum=0,
        maximum=36500,
    ),
    Setting(
        "store.wal_limit_mb",
        "int",
        64,
        "Size in MB to which the write-ahead log is cut back once its pages are in the file.",
        minimum=1,
        maximum=4096,
    ),
    Setting(
        "store.draft_interval_ms",
        "int",
        150,
        "How often a streaming reply is saved; the most that a crash can lose of it.",
        minimum=10,
        maximum=250,
    ),
    Setting(
        "search.tool_output",
        "bool",
        False,
        "Whether the search index covers tool calls and their results, too.",
    ),
    Setting(
        "sessions.auto_prune",
        "bool",
        False,
        "Whether old sessions are moved to the trash without asking each time.",
    ),
    Setting(
        "sessions.retention_days",
        "int",
        0,
        "With auto_prune: days without activity after which an ended session goes to the "
        "trash; 0 keeps every session for ever.",
        minimum=0,
        maximum=36500,
    ),
    Setting(
        "session_reset.mode",
        "choice",
        "none",
        "When a chat gets a new conversation by itself: never, after a pause, once a day, or both.",
        choices=("none", "idle", "daily", "both"),
    ),
    Setting(
        "session_reset.at_hour",
        "int",
        4,
        "The hour of the daily reset, in the time zone of display.timezone.",
        minimum=0,
        maximum=23,
    ),
    Setting(
        "session_reset.idle_minutes",
        "int",
        1440,
        "The pause, in minutes, after which a conversation counts as over.",
        minimum=1,
        maximum=5_256_000,
    ),
    Setting(
        "display.color",
        "choice",
        "auto",
        "Whether output is coloured; auto means only on a terminal.",
        choices=("auto", "always", "never"),
    ),
    Setting(
        "display.timezone",
        "str",
        "",
        "Time zone of all times shown, such as Europe/Berlin; empty means the system's.",
    ),
    Setting(
        "llm.model",
        "str",
        "",
        "The model that answers; empty looks for one on this machine.",
    ),
    Setting(
        "llm.api",
        "choice",
        "openai",
        "How the model is spoken to: OpenAI's API and all that are like it, Anthropic's, "
        "the built-in model, or a script.",
        choices=("openai", "anthropic", "local", "script"),
    ),
    Setting(
        "llm.base_url",
        "str",
        "",
        "Where the model is served, such as http://127.0.0.1:11434/v1; empty means the "
        "provider's own address.",
        only_by_hand=True,
    ),
    Setting(
        "llm.window",
        "int",
        0,
        "How many tokens the model can read at once; 0 takes what is usual for it.",
        minimum=0,
        maximum=100_000_000,
    ),
    Setting(
        "llm.fallbacks",
        "list",
        (),
        "Models that step in when the first cannot answer, such as anthropic:NAME.",
    ),
    Setting(
        "llm.key",
        "str",
        "",
        "The key for the model, when it has one of its own.",
        secret=True,
        secret_variable="HERMES_LLM_KEY",
    ),
    Setting(
        "keys.openai",
        "str",
        "",
        "The key for OpenAI.",
        secret=True,
        secret_variable="OPENAI_API_KEY",
    ),
    Setting(
        "keys.anthropic",
        "str",
        "",
        "The key for Anthropic.",
        secret=True,
        secret_variable="ANTHROPIC_API_KEY",
    ),
    Setting(
        "keys.openrouter",
        "str",
        "",
        "The key for OpenRouter.",
        secret=True,
        secret_variable="OPENROUTER_API_KEY",
    ),
    Setting(
        "keys.telegram",
        "str",
        "",
        "The token of your Telegram bot, from @BotFather.",
        secret=True,
        secret_variable="TELEGRAM_BOT_TOKEN",
    ),
    Setting(
        "keys.telegram_webhook",
        "str",
        "",
        "The secret Telegram shows when it calls your webhook.",
        secret=True,
        secret_variable="TELEGRAM_WEBHOOK_SECRET",
    ),
    Setting(
        "keys.matrix",
        "str",
        "",
        "The access token of the Matrix account the agent has.",
        secret=True,
        secret_variable="MATRIX_ACCESS_TOKEN",
    ),
    Setting(
        "keys.discord",
        "str",
        "",
        "The token of your Discord bot.",
        secret=True,
        secret_variable="DISCORD_BOT_TOKEN",
    ),
    Setting(
        "keys.slack_bot",
        "str",
        "",
        "The bot token of your Slack app (xoxb-…).",
        secret=True,
        secret_variable="SLACK_BOT_TOKEN",
    ),
    Setting(
        "keys.slack_app",
        "str",
        "",
        "The app-level token of your Slack app (xapp-…).",
        secret=True,
        secret_variable="SLACK_APP_TOKEN",
    ),
    Setting(
        "keys.transcribe",
        "str",
        "",
        "The key of the server that writes down voice messages, when it is not OpenAI's.",
        secret=True,
        secret_variable="HERMES_TRANSCRIBE_KEY",
    ),
    Setting(
        "keys.webhook",
        "str",
        "",
        "The secret that signs what webhooks bring and what is sent to them.",
        secret=True,
        secret_variable="WEBHOOK_SECRET",
    ),
    Setting(
        "keys.api_server",
        "str",
        "",
        "The bearer key of the API; without one it does not start.",
        secret=True,
        secret_variable="API_SERVER_KEY",
    ),
    Setting(
        "agent.approvals",
        "choice",
        "workspace",
        "What the agent may do without asking: only read, work inside the folder, or all but "
        "what is never allowed.",
        choices=("read_only", "workspace", "full"),
        only_by_hand=True,
    ),
    Setting(
        "memory.review_turns",
        "int",
        10,
        "After how many of your turns the agent looks back, while you go on, for what is worth "
        "remembering; 0 never.",
        minimum=0,
        maximum=1000,
    ),
    Setting(
        "tui.theme",
        "choice",
        "dark",
        "The colours of the full-screen terminal UI; Ctrl+T changes them.",
        choices=("dark", "light"),
    ),
    Setting(
        "agent.busy_input",
        "choice",
        "steer",
        "What Enter does while a turn runs: say it to the turn, after it, or in its place.",
        choices=("steer", "queue", "interrupt"),
    ),
    Setting(
        "gateway.attempts",
        "int",
        3,
        "How often a chat message is tried whose turn breaks off in the middle.",
        minimum=1,
        maximum=1000,
    ),
    Setting(
        "gateway.drain_seconds",
        "int",
        180,
        "How long a gateway that ends or starts anew lets running turns finish.",
        minimum=0,
        maximum=86400,
    ),
    Setting(
        "gateway.http_host",
        "str",
        "127.0.0.1",
        "The address the gateway's web server listens on.",
        only_by_hand=True,
    ),
    Setting(
        "gateway.http_port",
        "int",
        8642,
        "The port of the gateway's web server; 0 takes a free one.",
        minimum=0,
        maximum=65535,
    ),
    Setting(
        "gateway.max_concurrent_sessions",
        "int",
        16,
        "How many chats the gateway answers at once; others wait their turn.",
        minimum=1,
        maximum=1000,
    ),
    Setting(
        "gateway.group_sessions_per_user",
        "bool",
        True,
        "Whether each member of a group has a conversation of their own.",
    ),
    Setting(
        "gateway.thread_sessions_per_user",
        "bool",
        False,
        "Whether that holds in threads, too; otherwise all who write in a thread share one.",
    ),
    Setting(
        "gateway.unauthorized_dm_behavior",
        "choice",
        "pair",
        "What a stranger gets who writes directly: a code to be approved with, or nothing.",
        choices=("pair", "ignore"),
        only_by_hand=True,
    ),
    Setting(
        "gateway.session_store_max_age_days",
        "int",
        90,
        "After how many days without a message a chat's route is forgotten; its conversation "
        "is ended and kept. 0 never.",
        minimum=0,
        maximum=36500,
    ),
    Setting(
        "gateway.user_turns_per_minute",
        "int",
        0,
        "How many turns one person in a chat may ask for in a minute; 0 means any number.",
        minimum=0,
        maximum=10_000,
    ),
    Setting(
        "gateway.user_dollars_per_day",
        "float",
        0.0,
        "How many dollars one person in a chat may spend in a day; 0 means any amount.",
        minimum=0,
        maximum=1_000_000,
    ),
    Setting(
        "gateway.transcribe_command",
        "str",
        "",
        "The command that writes down voice messages; {file} stands for the file, what it "
        "prints is the text.",
        only_by_hand=True,
    ),
    Setting(
        "gateway.transcribe_url",
        "str",
        "",
        "A server that writes down voice messages as OpenAI's does, such as "
        "http://127.0.0.1:8000/v1.",
        only_by_hand=True,
    ),
    Setting(
        "gateway.transcribe_model",
        "str",
        "whisper-1",
        "The model that server is asked for.",
    ),
    Setting(
        "achievements.enabled",
        "bool",
        True,
        "Whether your history is measured and rewarded with achievements.",
    ),
    Setting(
        "achievements.hidden_ids",
        "list",
        (),
        "Achievements you do not want to see, by their ids.",
    ),
    Setting(
        "achievements.notify",
        "bool",
        True,
        "Whether a line in the terminal tells you of new achievements.",
    ),
    Setting(
        "dashboard.port",
        "int",
        9229,
        "The port of the dashboard; 0 takes a free one.",
        minimum=0,
        maximum=65535,
    ),
    Setting(
        "dashboard.host",
        "str",
        "127.0.0.1",
        "The address the dashboard listens on; any but this machine's own needs a password.",
        only_by_hand=True,
    ),
    Setting(
        "dashboard.hosts",
        "list",
        (),
        "Further names under which the dashboard is opened: NAME, NAME:PORT, or https://NAME "
        "where a proxy is in front of it.",
        only_by_hand=True,
    ),
    Setting(
        "dashboard.tls_cert",
        "str",
        "",
        "The file with the certificate for https; empty means http.",
        only_by_hand=True,
    ),
    Setting(
        "dashboard.tls_key",
        "str",
        "",
        "The file with the key of that certificate.",
        only_by_hand=True,
    ),
    Setting(
        "dashboard.hidden_plugins",
        "list",
        (),
        "Plugins whose tabs the dashboard does not show.",
    ),
    Setting("plugins.enabled", "list", (), "Plugins to load.", only_by_hand=True),
    Setting(
        "plugins.disabled",
        "list",
        (),
        "Plugins never to load, even when they are enabled elsewhere.",
    ),
    Setting(
        "log.level",
        "choice",
        "info",
        "The least serious kind of entry that reaches the log file.",
        choices=("debug", "info", "warning", "error"),
    ),
)

BLOCKS: dict[str, str] = {
    "mcp_servers": "MCP servers whose tools the agent may use, by the names you give them.",
    "platforms": "Chat platforms, by name: what each is told besides its tokens.",
    "reset_by_platform": "What session_reset says, for one platform each.",
    "reset_by_type": "What session_reset says, for one kind of chat each: dm, group, thread.",
    "streaming": "Whether and how an answer is shown in chats while it is written.",
}
