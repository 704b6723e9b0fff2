"""The events of a turn, which front ends show, and how they state what is wrong with an answer."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from hermes_agent.messages import ToolCall, Usage, author_block
from hermes_core.human_format import plural

if TYPE_CHECKING:
    from hermes_agent.messages import Author, Message, ToolCall
    from hermes_state.sessions.usage import AnswerUsage


LENGTH_REASON: Final = "length"
FILTER_REASON: Final = "content_filter"
REFUSAL_REASON: Final = "refusal"
# What lists of stored messages say about an answer that has not ended well.
END_MARKS: Final = {
    "interrupted": "interrupted",
    LENGTH_REASON: "cut off at the output limit",
    FILTER_REASON: "withheld by the provider",
    REFUSAL_REASON: "declined by the model",
    "error": "incomplete: the request failed",
}
MAX_REPEATED_CALLS: Final = 5
MAX_CYCLE: Final = 3  # answers that repeat in turn
MAX_CUT_CALLS: Final = 2  # in a row
MAX_CALL_CHARACTERS: Final = 120
CUT_CALL_TEXT: Final = (
    "This call was not run: it was cut off at the output limit, so its arguments are incomplete. "
    "Split it into several smaller calls."
)


class AnswerProblem(StrEnum):
    """Why an answer is not what was asked for."""

    LENGTH = "length"
    EMPTY = "empty"
    FILTERED = "filtered"
    STEP_LIMIT = "step_limit"
    REPEATED_CALLS = "repeated_calls"


class ProblemNotice(NamedTuple):
    """A problem, and its message to the user."""

    problem: AnswerProblem
    text: str


def find_problem(
    finish_reason: str | None, text: str, model: str, *, limit: int = 0, has_reasoning: bool = False
) -> ProblemNotice | None:
    """The problem of an answer that ends a turn; None for a good one."""
    if finish_reason == LENGTH_REASON:
        size = f" ({limit:,} tokens)" if limit else ""
        return ProblemNotice(
            AnswerProblem.LENGTH,
            f"The answer was cut off at the output limit of {model}{size}. Send `continue` for "
            "the rest, or raise the setting llm.max_output_tokens.",
        )
    if finish_reason == FILTER_REASON:
        return ProblemNotice(
            AnswerProblem.FILTERED,
            f"The provider of {model} withheld the answer (content_filter). Rephrase the "
            "request, or choose another model with /model.",
        )
    if finish_reason == REFUSAL_REASON:
        return ProblemNotice(
            AnswerProblem.FILTERED,
            f"{model} declined to answer (refusal). Rephrase the request, or choose another "
            "model with /model.",
        )
    if not text.strip():
        what = "only reasoning and no answer" if has_reasoning else "an empty answer"
        return ProblemNotice(
            AnswerProblem.EMPTY,
            f"{model} returned {what}. Ask again with /retry, or choose another model with /model.",
        )
    return None


def step_limit_notice(steps: int) -> ProblemNotice:
    """The turn has used all its requests."""
    return ProblemNotice(
        AnswerProblem.STEP_LIMIT,
        f"Stopped at the limit of {plural(steps, 'step')}; the task may be unfinished. Send "
        "`continue` for more, or raise the setting agent.max_steps.",
    )


def repetition_notice(model: str, call: ToolCall) -> ProblemNotice:
    """The model makes the same call again and again."""
    return ProblemNotice(
        AnswerProblem.REPEATED_CALLS,
        f"Stopped: {model} made the same call {MAX_REPEATED_CALLS} times with the same result "
        f"({_described(call)}). What should it do instead? Send `continue` to allow more.",
    )


def cut_call_notice(model: str) -> ProblemNotice:
    """Tool calls were cut off repeatedly."""
    return ProblemNotice(
        AnswerProblem.LENGTH,
        f"A tool call of {model} was cut off at the output limit {MAX_CUT_CALLS} times. Ask for "
        "smaller steps, or raise the setting llm.max_output_tokens.",
    )


def with_notice(text: str, notice: str) -> str:
    """An answer and its notice as one message."""
    return "\n\n".join(filter(None, (text.strip() and text, notice and f"({notice})")))


def _described(call: ToolCall) -> str:
    """A call in one short line."""
    line = " ".join(f"{call.name} {call.arguments}".split())
    return line if len(line) <= MAX_CALL_CHARACTERS else f"{line[: MAX_CALL_CHARACTERS - 1]}…"


def cut_calls(reply: Reply) -> tuple[ToolCall, ...]:
    """The calls of an answer whose arguments end at the output limit."""
    if reply.finish_reason != LENGTH_REASON:
        return ()
    return tuple(call for call in reply.calls if not _is_whole(call.arguments))


def _is_whole(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True


class CallHistory:
    """Notices repeated tool calls of a turn."""

    def __init__(self) -> None:
        self._answers: list[tuple[object, ...]] = []  # the last ones
        self._cut_count = 0

    def add(self, calls: tuple[ToolCall, ...], results: dict[str, str]) -> bool:
        """Add the calls of an answer; whether the same ones had the same results too often.

        These may be those of one answer, or of a few answers that repeat in turn.
        """
        key = tuple((call.name, call.arguments, results.get(call.id)) for call in calls)
        answers = self._answers = [*self._answers, key][-MAX_REPEATED_CALLS * MAX_CYCLE :]
        return any(
            answers[-MAX_REPEATED_CALLS * cycle :] == answers[-cycle:] * MAX_REPEATED_CALLS
            for cycle in range(1, MAX_CYCLE + 1)
        )

    def add_cut(self, calls: tuple[ToolCall, ...]) -> bool:
        """Add the cut calls of an answer; whether there were some in too many answers."""
        self._cut_count = self._cut_count + 1 if calls else 0
        return self._cut_count >= MAX_CUT_CALLS


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
    author: Author | None = None  # who is to get back what it has sent

    @property
    def is_empty(self) -> bool:
        """Whether the model ended without text and calls, and without a reason for that."""
        has_reason = self.finish_reason in {LENGTH_REASON, FILTER_REASON, REFUSAL_REASON}
        return not has_reason and not self.calls and not self.text.strip()

    def message(self) -> Message:
        """The answer as a message."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = [call.stored() for call in self.calls]
        if self.reasoning:
            message["reasoning"] = self.reasoning
        if self.reasoning_content is not None:
            message["reasoning_content"] = self.reasoning_content
        details = list(self.reasoning_details)
        is_kept = details or self.reasoning or any(call.extra for call in self.calls)
        if self.author is not None and (is_kept or self.reasoning_content is not None):
            details.insert(0, author_block(self.author))
        if details:
            message["reasoning_details"] = details
        return message


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
    drops_text: bool = False  # what was streamed so far is replaced by the next attempt

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


ProviderEvent = TextDelta | ReasoningDelta | Reply | Failed | Retrying | Notice
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
