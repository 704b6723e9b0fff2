"""The events of a turn, which front ends show."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from hermes_agent.answer_problems import AnswerProblem, with_notice
from hermes_agent.messages import ToolCall, Usage

if TYPE_CHECKING:
    from hermes_agent.messages import Message
    from hermes_state.messages.answer_usage import AnswerUsage


class FailureKind(StrEnum):
    """Why a request failed."""

    KEY = "key"
    FORBIDDEN = "forbidden"
    MODEL = "model"
    LIMIT = "limit"
    CREDIT = "credit"
    CONTEXT = "context"
    REFUSED = "refused"
    SERVER = "server"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    CUT = "cut"
    INTERRUPTED = "interrupted"
    BROKEN = "broken"


class TextDelta(NamedTuple):
    """A part of the answer."""

    text: str


class ReasoningDelta(NamedTuple):
    """A part of the model's reasoning."""

    text: str


class Reply(NamedTuple):
    """A provider's final event on success."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage
    cost: float | None = None  # in dollars, if the provider reports it
    reasoning_content: str | None = None  # to be sent back with the calls; it may be empty
    reasoning_details: tuple[object, ...] = ()  # signed reasoning, to be sent back as it is


class Failed(NamedTuple):
    """A provider's final event on failure, with a reason and advice."""

    kind: FailureKind
    message: str
    advice: str = ""
    is_transient: bool = False  # worth a retry
    retry_after: float | None = None
    usage: Usage = Usage()
    cost: float | None = None
    status_code: int | None = None  # of the HTTP response, if there was one
    request_id: str = ""  # the provider's, for its support
    window: int = 0  # the context window that the error names

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".strip()


class Retrying(NamedTuple):
    """A retry after a pause, or a fallback to another model."""

    reason: str
    seconds: float
    model: str = ""
    usage: Usage = Usage()  # of the failed attempt
    attempt: int = 1  # the number of the next attempt
    max_attempts: int = 1

    @property
    def description(self) -> str:
        """What happened and what comes next, without the time."""
        if self.model:
            return f"{self.reason} Trying {self.model}."
        return f"{self.reason} Attempt {self.attempt} of {self.max_attempts}:"


class TurnStarted(NamedTuple):
    """A turn has started; the user's message is stored."""

    session_id: str
    turn_id: str


class ToolStarted(NamedTuple):
    """A tool call has started."""

    call: ToolCall


class ToolOutput(NamedTuple):
    """Output of a running tool, for display."""

    call_id: str
    text: str


class ToolFinished(NamedTuple):
    """A tool's result, as the model gets it."""

    call: ToolCall
    result: str
    seconds: float


class MessageStored(NamedTuple):
    """A message is stored; an answer has what it took, and steering input its text."""

    role: str
    row_id: int
    usage: AnswerUsage | None = None
    text: str = ""


class UsageReport(NamedTuple):
    """Tokens of one request, and of the turn so far."""

    request: Usage
    turn: Usage
    model: str


class Notice(NamedTuple):
    """A line for the user outside the conversation.

    With *ends_answer*, the answer before it is complete, and another one follows.
    """

    text: str
    ends_answer: bool = False


class Attached(NamedTuple):
    """What is attached to the message of the user: files, pictures, output of shell lines."""

    items: tuple[str, ...]


class TurnEnd(StrEnum):
    """How a turn ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    TOO_LONG = "too_long"


class TurnFinished(NamedTuple):
    """The turn has ended and is stored."""

    end: TurnEnd
    text: str
    usage: Usage
    error: str = ""
    failure: Failed | None = None  # of the provider, if it has ended the turn
    problem: AnswerProblem | None = None  # of the answer
    notice: str = ""  # about the problem, for the user
    finish_reason: str = ""  # of the answer, as the provider reports it

    @property
    def reply(self) -> str:
        """The answer with its notice, where both are one message."""
        return with_notice(self.text, self.notice)


ProviderEvent = TextDelta | ReasoningDelta | Reply | Failed | Retrying
Event = (
    TurnStarted
    | TextDelta
    | ReasoningDelta
    | Retrying
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | MessageStored
    | UsageReport
    | Notice
    | Attached
    | TurnFinished
)


class TurnOutcome(TypedDict):
    """The end of a turn as plain values, with the names of hermes-agent."""

    final_response: str
    messages: list[Message]
    completed: bool
    failed: bool
    interrupted: bool
    turn_exit_reason: str
    error: str | None
    session_id: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


def outcome(last: TurnFinished | None, messages: list[Message], session_id: str) -> TurnOutcome:
    """The end of a turn as plain values; None is a turn without a final event."""
    usage = last.usage if last else Usage()
    end = last.end if last else TurnEnd.FAILED
    return {
        "final_response": last.text if last else "",
        "messages": messages,
        "completed": end is TurnEnd.COMPLETE,
        "failed": end is TurnEnd.FAILED,
        "interrupted": end is TurnEnd.INTERRUPTED,
        "turn_exit_reason": str(end),
        "error": (last.error or None) if last else None,
        "session_id": session_id,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }
