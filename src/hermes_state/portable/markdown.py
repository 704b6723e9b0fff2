"""Conversations as Markdown: what was said stays Markdown, but HTML in it is only shown."""

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
    """One file with these conversations, piece by piece."""
    is_first = True
    for conversation in conversations:
        if not is_first:
            yield "\n---\n\n"
        is_first = False
        yield from _one(conversation)


def _one(conversation: ReadableConversation) -> Iterator[str]:
    yield f"# {escape(conversation.title)}\n\n"
    yield "".join(f"- {name}: {code(value)}\n" for name, value in conversation.facts)
    if conversation.prompt:
        yield f"\n## System prompt\n\n{fenced(conversation.prompt)}"
    for said in conversation.said():
        yield _said(said)


def _said(said: ReadableMessage) -> str:
    who = f"{said.role} {code(said.name)}" if said.name else said.role
    marks = "".join(f" *({mark})*" for mark in said.marks)
    parts = [f"\n## {who} · {said.at}{marks}\n"]
    if said.reasoning:
        parts.append(f"\n*Reasoning*\n\n{quoted(inert(said.reasoning))}")
    if said.text:
        parts.append("\n" + (fenced(said.text) if said.is_tool else inert(said.text)))
    parts += [
        f"\n→ {code(name)}\n" + (f"\n{fenced(arguments)}" if arguments else "")
        for name, arguments in said.calls
    ]
    return "".join(parts)


def escape(text: str) -> str:
    """A text on one line in which nothing is a sign of Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """A text on one line as code."""
    line = " ".join(text.split())
    ticks = "`" * (_longest_run(line, "`") + 1)
    return f"{ticks} {line} {ticks}" if "`" in line or not line else f"{ticks}{line}{ticks}"


def fenced(text: str) -> str:
    """A text as a block of code, whatever is in it."""
    fence = "`" * max(3, _longest_run(text, "`") + 1)
    return f"{fence}\n{text}\n{fence}\n"


def quoted(text: str) -> str:
    """A text as a quotation."""
    return "".join(f"> {line}\n" for line in text.splitlines())


def inert(text: str) -> str:
    """Markdown that somebody wrote, in which no HTML and no script in a link is alive.

    A block of code that is not closed is closed, so that it does not swallow the rest.
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
            lines.append(_inert_line(line))
    if fence:
        lines.append(fence)
    return "\n".join(lines) + "\n"


def _inert_line(line: str) -> str:
    pieces, end = [], 0
    for match in _CODE.finditer(line):
        pieces += [_inert_text(line[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*pieces, _inert_text(line[end:])])


def _inert_text(text: str) -> str:
    return _LINK.sub(r"]\\(", text.replace("<", "\\<"))


def _longest_run(text: str, character: str) -> int:
    longest = current = 0
    for each in text:
        current = current + 1 if each == character else 0
        longest = max(longest, current)
    return longest
