"""Conversations as Markdown; HTML in messages is escaped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes_state.portable.readable import ReadableConversation, ReadableMessage

SUFFIX: Final = ".md"
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_CODE: Final = re.compile(r"(`+)(?!`)(?:.*?)(?<!`)\1(?!`)")
_LINK: Final = re.compile(r"(?i)\]\(\s*<?(?=(?:javascript|vbscript|data):)")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|])")


def pages(conversations: Iterable[ReadableConversation]) -> Iterator[str]:
    """A file with these conversations, in chunks."""
    is_first = True
    for conversation in conversations:
        if not is_first:
            yield "\n---\n\n"
        is_first = False
        yield from _conversation(conversation)


def _conversation(conversation: ReadableConversation) -> Iterator[str]:
    yield f"# {escape(conversation.title)}\n\n"
    yield "".join(f"- {name}: {code(value)}\n" for name, value in conversation.facts)
    if conversation.prompt:
        yield f"\n## System prompt\n\n{fenced(conversation.prompt)}"
    for message in conversation.messages():
        yield _message(message)


def _message(message: ReadableMessage) -> str:
    author = f"{message.role} {code(message.name)}" if message.name else message.role
    marks = "".join(f" *({mark})*" for mark in message.marks)
    parts = [f"\n## {author} · {message.at}{marks}\n"]
    if message.reasoning:
        parts.append(f"\n*Reasoning*\n\n{quoted(neutralize(message.reasoning))}")
    if message.text:
        parts.append("\n" + (fenced(message.text) if message.is_tool else neutralize(message.text)))
    parts += [
        f"\n→ {code(name)}\n" + (f"\n{fenced(arguments)}" if arguments else "")
        for name, arguments in message.calls
    ]
    return "".join(parts)


def escape(text: str) -> str:
    """*text* on one line with Markdown characters escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """*text* on one line as inline code."""
    line = " ".join(text.split())
    ticks = "`" * (_longest_run(line, "`") + 1)
    return f"{ticks} {line} {ticks}" if "`" in line or not line else f"{ticks}{line}{ticks}"


def fenced(text: str) -> str:
    """*text* as a code block, whatever it contains."""
    fence = "`" * max(3, _longest_run(text, "`") + 1)
    return f"{fence}\n{text}\n{fence}\n"


def quoted(text: str) -> str:
    """*text* as a block quote."""
    return "".join(f"> {line}\n" for line in text.splitlines())


def neutralize(text: str) -> str:
    """Markdown with HTML and script links disabled.

    An unclosed code block is closed, so that it does not include the rest of the file.
    """
    lines = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            lines.append(line)
            is_end = mark is not None and mark[1].startswith(fence) and not mark[2].strip()
            fence = "" if is_end else fence
        elif mark is not None:
            fence = mark[1]
            lines.append(line)
        else:
            lines.append(_neutralize_line(line))
    if fence:
        lines.append(fence)
    return "\n".join(lines) + "\n"


def _neutralize_line(line: str) -> str:
    pieces, end = [], 0
    for match in _CODE.finditer(line):
        pieces += [_neutralize_text(line[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*pieces, _neutralize_text(line[end:])])


def _neutralize_text(text: str) -> str:
    return _LINK.sub(r"]\\(", text.replace("<", "\\<"))


def _longest_run(text: str, character: str) -> int:
    longest = current = 0
    for each in text:
        current = current + 1 if each == character else 0
        longest = max(longest, current)
    return longest
