"""Every hook a plugin may register for, and every kind of session boundary.

A hook is data: its name, its keyword arguments, when it is called and how its return value
is used. Calls, validation and docs/reference/hooks.md read this table. Callbacks must accept
keyword arguments that they do not know.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from hermes_core.errors import UsageError

RETURN_IGNORED = "ignored"
NONE = "none"


class HookSpec(NamedTuple):
    """A hook: its name, keyword arguments, moment and return value."""

    name: str
    facts: frozenset[str]
    moment: str
    returns: str = RETURN_IGNORED
    decides: bool = False  # whether a callback that fails denies what it is asked about


class GuardFailure(NamedTuple):
    """The result of a callback that should have decided, and failed or did not return in time."""

    plugin: str
    hook: str
    error: str

    def __str__(self) -> str:
        return f"the plugin {self.plugin}, which must decide this, failed: {self.error}"


def _hook(
    name: str, facts: str, moment: str, returns: str = RETURN_IGNORED, *, decides: bool = False
) -> HookSpec:
    return HookSpec(name, frozenset(facts.split()), moment, returns, decides)


_TURN = "session_id task_id turn_id"
_REQUEST = (
    f"{_TURN} api_request_id model provider base_url api_mode platform message_count tool_count"
)
_TOOL = f"{_TURN} api_request_id tool_call_id tool_name args"

HOOKS: tuple[HookSpec, ...] = (
    _hook(
        "on_session_start",
        "session_id model platform",
        "a session runs its first turn",
    ),
    _hook(
        "on_session_end",
        "session_id completed interrupted model platform",
        "a turn has ended, completed or not; the session may continue",
    ),
    _hook(
        "on_session_finalize",
        "session_id platform",
        "a session ID is closed; a `resume` boundary precedes any later message of it",
    ),
    _hook(
        "on_session_reset",
        "session_id platform",
        "a chat or terminal switched to another conversation; session_id is the new one",
    ),
    _hook(
        "on_session_boundary",
        "event_id kind reason old_session_id new_session_id session_id epoch platform occurred_at",
        "a boundary of any kind was committed; at least once; event_id identifies repeats",
    ),
    _hook(
        "on_achievement_unlocked",
        "unlocks count is_first_scan",
        "achievements were unlocked or reached a higher tier; one call per scan",
    ),
    _hook(
        "pre_llm_call",
        f"{_TURN} user_message conversation_history is_first_turn model platform sender_id",
        "a turn is about to start, once per turn",
        'a string, or {"context": string}: added to this turn\'s user message, never stored',
    ),
    _hook(
        "pre_turn_end",
        f"{_TURN} response_text continuations model platform",
        "the model has given its final answer, which is not stored yet; `continuations` counts how "
        "often the turn was continued",
        '{"action": "continue", "message": string}: the model gets the message and continues, at '
        "most 5 times in a turn",
    ),
    _hook(
        "post_llm_call",
        f"{_TURN} user_message assistant_response conversation_history model platform",
        "a turn has produced its final answer",
    ),
    _hook(
        "pre_compaction",
        "session_id trigger focus platform",
        "older messages are about to be summarized; `trigger` is `auto` or `manual`",
    ),
    _hook(
        "pre_api_request",
        f"{_REQUEST} request",
        "a request is about to be sent to the model provider",
    ),
    _hook(
        "post_api_request",
        f"{_REQUEST} duration_ms response usage finish_reason",
        "the provider has answered",
    ),
    _hook(
        "api_request_error",
        f"{_REQUEST} duration_ms status_code retryable error",
        "a request to the provider has failed",
    ),
    _hook(
        "pre_tool_call",
        _TOOL,
        "a tool is about to run",
        '{"action": "block", "message": string}: the call is blocked, the model gets the message; '
        "an exception or a time-out blocks it, too",
        decides=True,
    ),
    _hook(
        "post_tool_call",
        f"{_TOOL} result duration_ms status error_type error_message",
        "a tool call has ended; `status` is `ok`, `error`, `blocked` or `cancelled`",
    ),
    _hook(
        "transform_tool_result",
        f"{_TOOL} result",
        "a tool's result is about to be stored",
        "a string: stored and shown instead; the first one is used",
    ),
    _hook(
        "transform_terminal_output",
        f"{_TURN} tool_call_id command output exit_code",
        "a terminal command's output is about to become a tool result",
        "a string: used instead; the first one is used",
    ),
    _hook(
        "transform_llm_output",
        f"{_TURN} response_text model platform",
        "the final answer is about to be stored and shown; no text is shown before",
        "a string: stored and shown instead; the first that is not empty is used",
    ),
    _hook(
        "subagent_start",
        "parent_session_id parent_turn_id child_session_id child_role child_goal",
        "a sub-agent starts",
    ),
    _hook(
        "subagent_stop",
        "parent_session_id parent_turn_id child_session_id child_role child_summary child_status "
        "duration_ms",
        "a sub-agent has ended, successfully or not",
    ),
    _hook(
        "pre_approval_request",
        "command description pattern_key pattern_keys session_id session_key surface",
        "the user is about to be asked to approve a command",
    ),
    _hook(
        "post_approval_response",
        "command description pattern_key pattern_keys session_id session_key surface choice",
        "the user has answered, or the request has timed out",
    ),
    _hook(
        "pre_gateway_dispatch",
        "event gateway session_store",
        "a chat message has arrived; access control follows it",
        '{"action": "skip"}: dropped; {"action": "rewrite", "text": string}: its text is '
        'replaced; {"action": "allow"}: as without a plugin. The first one is used; after an '
        "exception or a time-out the message is kept and not answered",
        decides=True,
    ),
)
DECIDING_HOOKS = frozenset(hook.name for hook in HOOKS if hook.decides)


class BoundaryKind(StrEnum):
    """Why a session started or ended, and which sessions are announced to which hook.

    Each session that changes has one event. tests/acceptance/test_boundary_kinds.py causes every
    kind and counts its events and calls.
    """

    trigger: str
    events: str  # the sessions with an event each
    finalized: str  # the sessions given to on_session_finalize
    reset: str  # the sessions given to on_session_reset

    def __new__(
        cls, value: str, trigger: str, events: str, finalized: str = NONE, reset: str = NONE
    ) -> BoundaryKind:
        """A member is a string with its row of the table."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.trigger, member.events = trigger, events
        member.finalized, member.reset = finalized, reset
        return member

    NEW = "new", "the user started a new conversation", "the old one", "the old one", "the new one"
    IDLE = (
        "idle",
        "a message arrived after the idle limit of the reset policy",
        "the old one; the new one if the old one had expired before",
        "the old one, unless it had expired before",
        "the new one",
    )
    DAILY = (
        "daily",
        "a message arrived after the daily reset hour",
        "the old one; the new one if the old one had expired before",
        "the old one, unless it had expired before",
        "the new one",
    )
    SUSPEND = (
        "suspend",
        "the route of a chat was suspended, e.g. by hermes-agent, and a message arrived",
        "the old one",
        "the old one",
        "the new one",
    )
    RESUME = (
        "resume",
        "a chat or terminal switched to an earlier conversation, or an ended one continues",
        "the one that was left; the one that had ended and continues",
        "the one that was left",
        "the one that the chat or terminal switched to",
    )
    BRANCH = (
        "branch",
        "a conversation was copied into a new, independent one",
        "the branch; its parent if the chat or terminal switched to the branch",
        "the parent, after a switch",
        "the branch, after a switch",
    )
    HANDOFF = (
        "handoff",
        "a conversation moved to a chat",
        "the one that moved; the one that the chat had",
        "the one that the chat had",
        "the one that moved, for the chat; the new one of the place that it left",
    )
    COMPACTION = (
        "compaction",
        "older messages left the model's context; the history keeps them",
        "the conversation",
    )
    EXPIRY = (
        "expiry",
        "a conversation expired by the reset policy without a new message",
        "the conversation",
        "the conversation",
    )
    PRUNE = (
        "prune",
        "the route of an inactive chat was dropped, or a conversation was deleted",
        "the conversation",
        "the conversation, unless it had ended before",
    )
    SHUTDOWN = (
        "shutdown",
        "a terminal was closed, or the process that ran a turn was asked to stop",
        "the conversation",
        "the conversation",
    )
    CRASH = (
        "crash",
        "the process of a turn or a terminal crashed or was killed",
        "the conversation",
        "the conversation",
    )


def spec(name: str) -> HookSpec:
    """The hook called *name*."""
    for hook in HOOKS:
        if hook.name == name:
            return hook
    known = ", ".join(hook.name for hook in HOOKS)
    raise UsageError(f"Unknown hook {name!r}. Known hooks: {known}.")
