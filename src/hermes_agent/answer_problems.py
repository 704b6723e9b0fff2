"""Answers that are not what was asked for: cut off, empty, withheld, or stopped by a limit.

Every front end shows the notice that is decided here, and the command line has an exit code for
each problem.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.human_format import plural

if TYPE_CHECKING:
    from hermes_agent.events import Reply
    from hermes_agent.messages import ToolCall

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
        self._last: tuple[object, ...] = ()
        self._count = 0
        self._cut_count = 0

    def add(self, calls: tuple[ToolCall, ...], results: dict[str, str]) -> bool:
        """Add the calls of an answer; whether the same ones had the same results too often."""
        key = tuple((call.name, call.arguments, results.get(call.id)) for call in calls)
        self._count = self._count + 1 if key == self._last else 1
        self._last = key
        return self._count >= MAX_REPEATED_CALLS

    def add_cut(self, calls: tuple[ToolCall, ...]) -> bool:
        """Add the cut calls of an answer; whether there were some in too many answers."""
        self._cut_count = self._cut_count + 1 if calls else 0
        return self._cut_count >= MAX_CUT_CALLS
