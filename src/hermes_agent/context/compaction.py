"""Compaction: older messages leave the model's context, not the history.

The conversation keeps its id. What the model is to read from now on is a summary of what
was said before and the last messages word for word; everything else stays where it is,
searchable and readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.context.profiles import profile_for
from hermes_agent.context.repair import acceptable
from hermes_agent.context.window import newest_that_fit, reserve, tokens_in, with_short_results
from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.messages import ModelRequest, Usage
from hermes_agent.providers.completion import asked

if TYPE_CHECKING:
    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.messages import Message
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.turn_control import Cancel

KEPT: Final = 0.2  # of the window: how much stays word for word
CHARACTERS: Final = 4  # to a token, roughly
MIN_MESSAGES: Final = 4
LONGEST_RESULT: Final = 2000  # characters of a tool's result that the summary is made from
OPENING: Final = "[Summary of the conversation so far]\n\n"
TASK: Final = (
    "The conversation above will no longer be in your context. Write what you need to "
    "continue it: what the user wants and has decided, what was done and found (names, paths, "
    "numbers, errors), what is left to do. Be exact and complete, without greetings."
)


class Compacted(NamedTuple):
    """What a compaction did."""

    before: int
    after: int
    summary: str
    usage: Usage


def is_due(tokens: int, window: int) -> bool:
    """Whether a context of *tokens* leaves too little room."""
    return tokens >= profile_for(window).full * window


def compact(
    keeping: ConversationStore,
    patient: FallbackProvider,
    system_prompt: str,
    cancel: Cancel,
    focus: str = "",
) -> Compacted | Failed:
    """Replace what the model reads by a summary and the last messages."""
    messages = keeping.history()
    old, tail = split(messages, patient.current.window)
    if len(old) < MIN_MESSAGES:
        return Compacted(len(messages), len(messages), "", Usage())
    answer = _summary(keeping, patient, _Work(old, system_prompt, focus), cancel)
    if isinstance(answer, Failed):
        return answer
    summary: Message = {"role": "user", "content": OPENING + answer.text}
    after = keeping.go_on_with([summary, *tail])
    return Compacted(len(messages), after, answer.text, answer.usage)


def split(messages: list[Message], window: int) -> tuple[list[Message], list[Message]]:
    """What is summed up, and what stays: whole exchanges, from a user's message on."""
    room = int(KEPT * window * CHARACTERS)
    start = len(messages)
    size = 0
    for position in range(len(messages) - 1, -1, -1):
        size += len(str(messages[position].get("content") or ""))
        if size > room and start < len(messages):
            break
        if messages[position].get("role") == "user":
            start = position
    return messages[:start], messages[start:]


class _Work(NamedTuple):
    """What is to be summed up."""

    old: list[Message]
    system_prompt: str
    focus: str

    def request(self, window: int) -> ModelRequest:
        """The question; of a conversation longer than the window, the beginning and the end."""
        task = TASK + (f" Keep everything about: {self.focus}." if self.focus else "")
        room = window - reserve(window) - tokens_in(self.system_prompt) - tokens_in(task)
        messages = newest_that_fit(with_short_results(self.old, LONGEST_RESULT), room)
        return ModelRequest(
            [
                {"role": "system", "content": self.system_prompt},
                *acceptable(messages),
                {"role": "user", "content": task},
            ],
            [],
        )


def _summary(
    keeping: ConversationStore, patient: FallbackProvider, work: _Work, cancel: Cancel
) -> Reply | Failed:
    last = asked(patient, work.request(patient.current.window), cancel, keeping)
    if isinstance(last, Reply) and not last.text.strip():
        return Failed(FailureKind.BROKEN, "The model returned no summary; nothing was changed.")
    return last
