"""Compaction: older messages leave the model's context, not the history.

The conversation keeps its ID. The model then reads a summary of the older messages and the
last messages in full; the rest of the history stays searchable and readable.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.answer_problems import LENGTH_REASON
from hermes_agent.context.carried_facts import SUMMARY_HEADING, carried_facts
from hermes_agent.context.profiles import profile_for
from hermes_agent.context.repair import repaired
from hermes_agent.context.window import (
    estimate_tokens,
    max_result_characters,
    message_tokens,
    newest_that_fit,
    reserve,
    tokens_in,
    with_short_results,
)
from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.messages import ModelRequest, Usage, calls_in
from hermes_agent.providers.completion import complete
from hermes_core.messages import is_prompt, plain_text

if TYPE_CHECKING:
    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.messages import Message, ToolSchema
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.turn_control import Cancel

TAIL_SHARE: Final = 0.2  # of the window: messages kept in full
MIN_MESSAGES: Final = 4
MAX_RESULT_CHARACTERS: Final = 2000  # of a tool result in a transcript
CUT_OFF: Final = "\n\n[The summary is cut off here.]"
SUMMARY_TASK: Final = """\
The conversation above will be removed from your context{kept}. Write down what you need to \
continue it, exactly and completely, without greetings and without calling tools, \
in these sections; leave out empty ones:
## Goal
what the user wants in the end
## Decisions
what was decided, by whom, and why
## What the user asked for
wishes and corrections in the user's own words
## Done and found
what was done, with names, paths, numbers, commands and errors
## Files
each file that matters: what it is, what was changed
## Open steps
what is left to do, and what comes next
"""


class CompactionResult(NamedTuple):
    """The result of a compaction."""

    before: int
    after: int
    summary: str
    usage: Usage


class SummaryInput(NamedTuple):
    """What requests of the conversation begin with, and what a summary is to contain."""

    system_prompt: str
    tools: list[ToolSchema]
    focus: str = ""


def is_due(tokens: int, window: int) -> bool:
    """Whether a context of *tokens* is too close to the window."""
    return tokens >= profile_for(window).full * window


def compact(
    store: ConversationStore, provider: FallbackProvider, given: SummaryInput, cancel: Cancel
) -> CompactionResult | Failed:
    """Replace the active messages by a summary and the last messages."""
    messages = store.history()
    window = provider.current.window
    old, tail = split(messages, window)
    if len(old) < MIN_MESSAGES:
        return CompactionResult(len(messages), len(messages), "", Usage())
    answer = _summary(store, provider, _SummaryTask(messages, len(old), given), cancel)
    if isinstance(answer, Failed):
        return answer
    facts = carried_facts(store.everything(), tail, window)
    text = answer.text
    if answer.finish_reason == LENGTH_REASON:
        text += CUT_OFF
    summary: Message = {"role": "user", "content": f"{SUMMARY_HEADING}{text}{facts}"}
    after = store.replace_active([summary, *tail])
    return CompactionResult(len(messages), after, answer.text, answer.usage)


def split(messages: list[Message], window: int) -> tuple[list[Message], list[Message]]:
    """The messages to summarize and those to keep; the latter start with a user message.

    Of an exchange that is too long to be kept, the prompt and the last steps are.
    """
    budget = int(TAIL_SHARE * window)
    prompts = [place for place, each in enumerate(messages) if is_prompt(each)]
    tokens = list(accumulate(map(message_tokens, reversed(messages))))[::-1]  # from each to the end
    start = next((place for place in prompts if tokens[place] <= budget), len(messages))
    if start < len(messages) or not prompts:
        return messages[:start], messages[start:]
    last = prompts[-1]
    steps = [
        place
        for place, each in enumerate(messages)
        if place > last + 1 and each.get("role") == "assistant"
    ]
    fitting = [place for place in steps if tokens[place] <= budget] or steps[-1:]
    if not fitting:
        return messages[:last], messages[last:]
    return messages[: fitting[0]], [messages[last], *messages[fitting[0] :]]


class _SummaryTask(NamedTuple):
    """The input of a summary: all messages, and how many of them leave the context."""

    messages: list[Message]
    old_count: int
    given: SummaryInput

    def requests(self, window: int) -> list[ModelRequest]:
        """The requests to try, one after the other.

        The first continues the conversation, so that the provider has its beginning in its cache.
        The second has no tool calls: for a conversation that is too long for the first, and for
        a model that calls tools instead of writing.
        """
        request = self._continued(window)
        is_fitting = estimate_tokens(request) <= window - reserve(window)
        return [request, self._transcript(window)] if is_fitting else [self._transcript(window)]

    def _task(self, kept: int = 0) -> str:
        words = f"; only the last {kept} messages stay" if kept else ""
        task = SUMMARY_TASK.format(kept=words)
        focus = self.given.focus
        return f"{task}Keep everything about: {focus}." if focus else task

    def _continued(self, window: int) -> ModelRequest:
        messages = with_short_results(self.messages, max_result_characters(window))
        kept = len(self.messages) - self.old_count
        return self._request([*messages, {"role": "user", "content": self._task(kept)}])._replace(
            tools=self.given.tools
        )

    def _transcript(self, window: int) -> ModelRequest:
        """The old messages as one text; of a long conversation, the beginning and the end."""
        task = self._task()
        old = with_short_results(repaired(self.messages[: self.old_count]), MAX_RESULT_CHARACTERS)
        used = tokens_in(self.given.system_prompt) + tokens_in(task)
        written = [_as_text(each) for each in newest_that_fit(old, window - reserve(window) - used)]
        return self._request([{"role": "user", "content": "\n\n".join([*written, task])}])

    def _request(self, messages: list[Message]) -> ModelRequest:
        return ModelRequest(
            [{"role": "system", "content": self.given.system_prompt}, *messages], []
        )


def _as_text(message: Message) -> str:
    """A message as a part of a transcript."""
    calls = "".join(f"\n[calls {name} {arguments}]" for name, arguments in calls_in(message))
    return f"[{message.get('role')}] {plain_text(message.get('content'))}{calls}"


def _summary(
    store: ConversationStore, provider: FallbackProvider, task: _SummaryTask, cancel: Cancel
) -> Reply | Failed:
    last: Reply | Failed | None = None
    for request in task.requests(provider.current.window):
        last = complete(provider, request, cancel, store)
        if isinstance(last, Reply) and last.text.strip() and not last.calls:
            return last
        if isinstance(last, Failed) and last.kind is not FailureKind.CONTEXT:
            return last
    if isinstance(last, Failed):
        return last
    return Failed(FailureKind.BROKEN, "The model returned no summary; nothing was changed.")
