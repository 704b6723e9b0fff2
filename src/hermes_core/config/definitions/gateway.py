"""Settings of the messaging gateway."""

from __future__ import annotations

from typing import Final

from hermes_core.config.schema import Setting

GATEWAY_SETTINGS: Final = (
    Setting(
        "gateway.attempts",
        "int",
        3,
        "Maximum attempts to answer a chat message whose turn fails.",
        minimum=1,
        maximum=1000,
    ),
    Setting(
        "gateway.drain_seconds",
        "int",
        180,
        "Seconds that running turns get to finish when the gateway stops or restarts.",
        minimum=0,
        maximum=86400,
    ),
    Setting(
        "gateway.http_host",
        "str",
        "127.0.0.1",
        "Address the gateway's HTTP server listens on.",
        only_by_hand=True,
    ),
    Setting(
        "gateway.http_port",
        "int",
        8642,
        "Port of the gateway's HTTP server; 0 picks a free one.",
        minimum=0,
        maximum=65535,
    ),
    Setting(
        "gateway.notify",
        "list",
        (),
        "Chats to notify when a platform disconnects or reconnects, e.g. telegram:12345 or a home "
        "channel such as matrix.",
        only_by_hand=True,
    ),
    Setting(
        "gateway.max_concurrent_sessions",
        "int",
        16,
        "Maximum number of chats answered at the same time, in addition to 4 of the owner; others "
        "wait.",
        minimum=1,
        maximum=1000,
    ),
    Setting(
        "gateway.group_sessions_per_user",
        "bool",
        True,
        "Give each member of a group a conversation of their own.",
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.thread_sessions_per_user",
        "bool",
        False,
        "The same for threads; otherwise everyone in a thread shares one conversation.",
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.unauthorized_dm_behavior",
        "choice",
        "pair",
        "Reply to direct messages from unknown users: a pairing code, or nothing.",
        choices=("pair", "ignore"),
        only_by_hand=True,
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.session_store_max_age_days",
        "int",
        90,
        "Days without a message after which a chat's route is dropped; its conversation is ended "
        "and kept. 0 means never.",
        minimum=0,
        maximum=36500,
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.user_turns_per_minute",
        "int",
        0,
        "Maximum turns per user and minute in chats; 0 means no limit.",
        minimum=0,
        maximum=10000,
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.user_dollars_per_day",
        "float",
        0.0,
        "Budget in dollars per user and day, for chats and scheduled jobs; anything beyond it "
        "waits until the next day or until the budget is raised. 0 means no limit.",
        minimum=0,
        maximum=1000000,
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.user_tokens_per_day",
        "int",
        0,
        "Budget in tokens per user and day, as above; 0 means no limit.",
        minimum=0,
        maximum=1000000000,
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.dollars_per_day",
        "float",
        0.0,
        "Budget in dollars per day for all chats and scheduled jobs together; 0 means no limit.",
        minimum=0,
        maximum=1000000,
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.tokens_per_day",
        "int",
        0,
        "Budget in tokens per day for all chats and scheduled jobs together; 0 means no limit.",
        minimum=0,
        maximum=1000000000,
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.job_failures",
        "int",
        5,
        "Failed runs in a row after which a scheduled job is paused.",
        minimum=1,
        maximum=1000,
        is_shared_by_nodes=True,
    ),
    Setting(
        "gateway.workspace",
        "str",
        "",
        "Folder that your own chats work in; empty means `workspaces/owner` in the Hermes folder.",
        only_by_hand=True,
    ),
    Setting(
        "gateway.workspace_is_shared",
        "bool",
        False,
        "Whether gateway.workspace is the same folder on all machines that share the history. If "
        "not, chats that work in it are answered only by the machine that has it.",
    ),
    Setting(
        "gateway.transcribe_command",
        "str",
        "",
        "Command that transcribes voice messages to standard output; {file} is replaced by "
        "the file.",
        only_by_hand=True,
    ),
    Setting(
        "gateway.transcribe_url",
        "str",
        "",
        "OpenAI-compatible transcription server for voice messages, e.g. http://127.0.0.1:8000/v1.",
        format="url",
        only_by_hand=True,
    ),
    Setting(
        "gateway.transcribe_model",
        "str",
        "whisper-1",
        "Model requested from the transcription server.",
    ),
)
