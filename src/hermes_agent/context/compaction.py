"""Compaction: older messages leave the model's context, not the history.

The conversation keeps its ID. The model then reads a summary of the older messages and the
last messages in full; the rest of the history stays searchable and readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.context.profiles import profile_for
from hermes_agent.context.repair import repaired
from hermes_agent.context.window import newest_that_fit, reserve, tokens_in, with_short_results
from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.messages import ModelRequest, Usage
from hermes_agent.providers.completion import complete

if TYPE_CHECKING:
    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.messages import Message
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.turn_control import Cancel

TAIL_SHARE: Final = 0.2  # of the window: messages kept in full
CHARACTERS_PER_TOKEN: Final = 4  # approximate
MIN_MESSAGES: Final = 4
MAX_RESULT_CHARACTERS: Final = 2000  # of a tool result in the summary request
SUMMARY_HEADING: Final = "[Summary of the conversation so far]\n\n"
SUMMARY_TASK: Final = (
    "The conversation above will no longer be in your context. Write what you need to "
    "continue it: what the user wants and has decided, what was done and found (names, paths, "
    "numbers, errors), what is left to do. Be exact and complete, without greetings."
)


class Compacted(NamedTuple):
    """The result of a compaction."""

    before: int
    after: int
    summary: str
    usage: Usage


def is_due(tokens: int, window: int) -> bool:
    """Whether a context of *tokens* is too close to the window."""
    return tokens >= profile_for(window).full * window


def compact(
    store: ConversationStore,
    provider: FallbackProvider,
    system_prompt: str,
    cancel: Cancel,
    focus: str = "",
) -> Compacted | Failed:
    """Replace the active messages by a summary and the last messages."""
    messages = store.history()
    old, tail = split(messages, provider.current.window)
    if len(old) < MIN_MESSAGES:
        return Compacted(len(messages), len(messages), "", Usage())
    answer = _summary(store, provider, _SummaryTask(old, system_prompt, focus), cancel)
    if isinstance(answer, Failed):
        return answer
    summary: Message = {"role": "user", "content": SUMMARY_HEADING + answer.text}
    after = store.replace_active([summary, *tail])
    return Compacted(len(messages), after, answer.text, answer.usage)


def split(messages: list[Message], window: int) -> tuple[list[Message], list[Message]]:
    """The messages to summarize and those to keep; the latter start with a user message."""
    budget = int(TAIL_SHARE * window * CHARACTERS_PER_TOKEN)
    start = len(messages)
    size = 0
    for position in range(len(messages) - 1, -1, -1):
        size += len(str(messages[position].get("content") or ""))
        if size > budget and start < len(messages):
            break
        if messages[position].get("role") == "user":
            start = position
    return messages[:start], messages[start:]


class _SummaryTask(NamedTuple):
    """The input of a summary."""

    old: list[Message]
    system_prompt: str
    focus: str

    def request(self, window: int) -> ModelRequest:
        """The request; of a conversation longer than the window, the beginning and the end."""
        task = SUMMARY_TASK + (f" Keep everything about: {self.focus}." if self.focus else "")
        budget = window - reserve(window) - tokens_in(self.system_prompt) - tokens_in(task)
        messages = newest_that_fit(with_short_results(self.old, MAX_RESULT_CHARACTERS), budget)
        return ModelRequest(
            [
                {"role": "system", "content": self.system_prompt},
                *repaired(messages),
                {"role": "user", "content": task},
            ],
            [],
        )


def _summary(
    store: ConversationStore, provider: FallbackProvider, task: _SummaryTask, cancel: Cancel
) -> Reply | Failed:
    last = complete(provider, task.request(provider.current.window), cancel, store)
    if isinstance(last, Reply) and not last.text.strip():
        return Failed(FailureKind.BROKEN, "The model returned no summary; nothing was changed.")
    return last
