"""Facts that code adds to the summary of a compaction, so that they do not depend on the model.

They are taken from the whole conversation, with what was compacted before: the files that the
agent changed, the user's own messages within a budget, and the open items of the todo list.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hermes_agent.messages import calls_in
from hermes_agent.tools.todo import current_items, format_items
from hermes_core.messages import is_prompt, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_agent.messages import Message

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
