"""`/copy`: the last answer, or a code block of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes_conversation.attachments import text_of
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_conversation.conversation import Conversation

CODE_BLOCK: Final = re.compile(
    r"^ {0,3}(```+|~~~+)[^\n]*\n(.*?)^ {0,3}\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL
)


def text_to_copy(conversation: Conversation, words: str) -> str:
    """The text of the last answer; with a number, that code block of it."""
    answer = _last_answer(conversation)
    if not words:
        return answer
    if not words.isdigit():
        raise UsageError("Usage: /copy, or /copy 2 for the second code block of the last answer")
    blocks = code_blocks(answer)
    if not 1 <= int(words) <= len(blocks):
        raise UsageError(f"The last answer has {len(blocks) or 'no'} code blocks.")
    return blocks[int(words) - 1]


def code_blocks(text: str) -> list[str]:
    """The contents of the fenced code blocks of a text."""
    return [match[2].removesuffix("\n") for match in CODE_BLOCK.finditer(text)]


def _last_answer(conversation: Conversation) -> str:
    rows = conversation.db.messages.rows(conversation.session_id) if conversation.exists else []
    texts = (text_of(row.content).strip() for row in reversed(rows) if row.role == "assistant")
    answer = next(filter(None, texts), "")
    if not answer:
        raise UsageError("No answer to copy yet.")
    return answer
