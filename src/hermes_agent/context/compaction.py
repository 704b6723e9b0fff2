"""Compaction: older messages leave the model's context, not the history.

The conversation keeps its ID. The model then reads a summary of the older messages and the
last messages in full; the rest of the history stays searchable and readable.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.context.window import (
    estimate_tokens,
    max_result_characters,
    message_tokens,
    newest_that_fit,
    profile_for,
    repaired,
    reserve,
    tokens_in,
    with_short_results,
)
from hermes_agent.costs import complete
from hermes_agent.events import LENGTH_REASON, Failed, FailureKind, Reply
from hermes_agent.messages import ModelRequest, Usage, calls_in
from hermes_agent.tools.todo import current_items, format_items
from hermes_core.messages import is_prompt, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.messages import Message, ToolSchema
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.turn_control import Cancel

SUMMARY_HEADING: Final = "[Summary of the conversation so far]\n\n"
WRITING_TOOLS: Final = frozenset({"write_file", "patch"})
MAX_FILES: Final = 40  # the latest
MESSAGES_SHARE: Final = 0.05  # of the window, for the user's messages
CHARACTERS_PER_TOKEN: Final = 4
MAX_CHARACTERS: Final = 1_000  # of a message of the user


def carried_facts(messages: Sequence[Message], tail: Sequence[Message], window: int) -> str:
    """The sections that follow the summary; *tail* stays in the context."""
    budget = int(window * MESSAGES_SHARE * CHARACTERS_PER_TOKEN)
    kept = {plain_text(message.get("content")) for message in tail}
    open_items = [item for item in current_items(messages) if item.is_open]
    sections = {
        "Files changed in this conversation": _lines(_latest_files(messages)),
        "Messages of the user, word for word": _lines(user_messages(messages, kept, budget)),
        "Open items of the todo list": format_items(open_items),
    }
    return "".join(f"\n\n## {heading}\n{text}" for heading, text in sections.items() if text)


def _latest_files(messages: Sequence[Message]) -> list[str]:
    return list(dict.fromkeys(reversed(list(changed_files(messages)))))[:MAX_FILES][::-1]


def changed_files(messages: Sequence[Message]) -> Iterator[str]:
    """The paths that were written, the latest last."""
    for message in messages:
        for name, arguments in calls_in(message):
            if name not in WRITING_TOOLS:
                continue
            try:
                path = json.loads(arguments).get("path")
            except (ValueError, AttributeError):
                continue
            if isinstance(path, str) and path:
                yield path


def user_messages(messages: Sequence[Message], kept: set[str], budget: int) -> list[str]:
    """The first message of the user and the newest ones that fit into *budget* characters."""
    own = [
        text
        for message in messages
        if is_prompt(message)
        and (text := plain_text(message.get("content")).strip())
        and text not in kept
        and not text.startswith(SUMMARY_HEADING.strip())
    ]
    shortened = [_shorten(text) for text in own]
    chosen: list[int] = []
    for index in (*range(min(1, len(own))), *range(len(own) - 1, 0, -1)):
        budget -= len(shortened[index])
        if budget < 0:
            break
        chosen.append(index)
    return [shortened[index] for index in sorted(chosen)]


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


def _lines(texts: list[str]) -> str:
    return "\n".join("- " + text.replace("\n", "\n  ") for text in texts)


TAIL_SHARE: Final = 0.2  # of the window: messages kept in full
REQUESTED_SHARE: Final = 0.25  # of the conversation, if the user asks for a summary
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
    is_requested: bool = False  # by the user: then a short conversation is summarized as well


def is_due(tokens: int, window: int) -> bool:
    """Whether a context of *tokens* is too close to the window."""
    return tokens >= profile_for(window).full * window


def compact(
    store: ConversationStore, provider: FallbackProvider, given: SummaryInput, cancel: Cancel
) -> CompactionResult | Failed:
    """Replace the active messages by a summary and the last messages."""
    messages = store.history()
    window = provider.current.window
    budget = int(TAIL_SHARE * window)
    if given.is_requested:
        budget = min(budget, int(REQUESTED_SHARE * sum(map(message_tokens, messages))))
    old, tail = split(messages, budget)
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


def split(messages: list[Message], budget: int) -> tuple[list[Message], list[Message]]:
    """The messages to summarize and those to keep, which have at most *budget* tokens.

    The latter start with a user message.

    Of an exchange that is too long to be kept, the prompt and the last steps are.
    """
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
