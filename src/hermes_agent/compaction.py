"""Compaction: older messages leave the model's context, not the history.

The conversation keeps its id. What the model is to read from now on is a summary of what
was said before and the last messages word for word; everything else stays where it is,
searchable and readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.messages import Request, Usage

if TYPE_CHECKING:
    from hermes_agent.cancel import Cancel
    from hermes_agent.keeping import Keeping
    from hermes_agent.messages import Message
    from hermes_agent.providers.patient import Patient

FULL: Final = 0.7  # of the window: from here on a conversation is compacted
KEPT: Final = 0.2  # of the window: how much stays word for word
CHARACTERS: Final = 4  # to a token, roughly
LEAST_MESSAGES: Final = 4
LONGEST_RESULT: Final = 2000  # characters of a tool's result that the summary is made from
OPENING: Final = "[Summary of the conversation so far, made when it grew too long]\n\n"
TASK: Final = (
    "The conversation above will no longer be in your context. Write what you need to go on "
    "with it: what the person wants and has decided, what was done and found (names, paths, "
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
    return tokens >= FULL * window


def compact(
    keeping: Keeping, patient: Patient, system_prompt: str, cancel: Cancel, focus: str = ""
) -> Compacted | Failed:
    """Replace what the model reads by a summary and the last messages."""
    messages = keeping.history()
    old, tail = split(messages, patient.current.window)
    if len(old) < LEAST_MESSAGES:
        return Compacted(len(messages), len(messages), "", Usage())
    answer = _summary(old, patient, system_prompt, cancel, focus)
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


def _summary(
    old: list[Message], patient: Patient, system_prompt: str, cancel: Cancel, focus: str
) -> Reply | Failed:
    task = TASK + (f" Keep everything about: {focus}." if focus else "")
    request = Request(
        [
            {"role": "system", "content": system_prompt},
            *(_shortened(message) for message in old),
            {"role": "user", "content": task},
        ],
        [],
    )
    last: Reply | Failed | None = None
    for event in patient.stream(request, cancel):
        if isinstance(event, Reply | Failed):
            last = event
    if last is None or (isinstance(last, Reply) and not last.text.strip()):
        return Failed(FailureKind.BROKEN, "The model wrote no summary; nothing was changed.")
    return last


def _shortened(message: Message) -> Message:
    content = message.get("content")
    if message.get("role") != "tool" or len(str(content or "")) <= LONGEST_RESULT:
        return message
    half = LONGEST_RESULT // 2
    text = str(content)
    return {**message, "content": f"{text[:half]}\n…\n{text[-half:]}"}
