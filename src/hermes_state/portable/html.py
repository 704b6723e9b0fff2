"""Conversations as a self-contained, static HTML page.

All stored text is escaped. The page has no scripts, external links or images; its
content security policy forbids them as well.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermes_state.portable.readable import ReadableConversation, ReadableMessage

SUFFIX: Final = ".html"
MAX_SUMMARY_CHARACTERS: Final = 90

STYLE: Final = """
:root { color-scheme: light dark; --paper: #fdfcfa; --ink: #23211d; --soft: #736e66;
  --line: #e4e0d8; --shade: #f4f1ea; --user: #1f5fa8; --assistant: #2c7a4b; --tool: #96631a; }
@media (prefers-color-scheme: dark) { :root { --paper: #191816; --ink: #e8e4dc; --soft: #9b958a;
  --line: #35322d; --shade: #23211e; --user: #7fb3ef; --assistant: #7fcf9d; --tool: #dfae6a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 6rem; max-width: 52rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; }
h1 { margin: 0 0 .75rem; font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }
nav ol { padding-left: 1.4rem; } nav a { color: inherit; }
nav time, header time { color: var(--soft); font-size: .85rem; }
nav + article, article + article { margin-top: 4rem; padding-top: 2rem;
  border-top: 2px solid var(--line); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 0 1.5rem;
  color: var(--soft); font-size: .9rem; } dd { margin: 0; overflow-wrap: anywhere; }
section { margin: 1.5rem 0; padding-left: 1rem; border-left: 3px solid var(--line); }
section.user { border-color: var(--user); } section.assistant { border-color: var(--assistant); }
section.tool { border-color: var(--tool); } section.undone { opacity: .6; }
section header { display: flex; flex-wrap: wrap; gap: .25rem .75rem; align-items: baseline; }
section header b { text-transform: capitalize; } section.user header b { color: var(--user); }
section.assistant header b { color: var(--assistant); }
section.tool header b { color: var(--tool); } header code { text-transform: none; }
mark { padding: 0 .4rem; border-radius: 1rem; background: var(--shade); color: var(--soft);
  font-size: .8rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: .4rem; }
summary { padding: .3rem .75rem; cursor: pointer; color: var(--soft); font-size: .9rem;
  overflow-wrap: anywhere; unicode-bidi: plaintext; }
summary code { color: var(--ink); }
pre, code { font: .85rem/1.5 ui-monospace, monospace; }
pre { margin: 0; padding: .75rem; overflow-x: auto; background: var(--shade);
  border-top: 1px solid var(--line); white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: plaintext; }
@media print { body { max-width: none; padding: 0; } section { break-inside: avoid-page; } }
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
)
# Replacements for characters that HTML forbids or that are invisible.
_VISIBLE_CHARACTERS: Final = {
    code: chr(0x2400 + code) for code in range(0x20) if code not in (9, 10)
} | {
    0x7F: "\N{SYMBOL FOR DELETE}",
    **dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], "\N{REPLACEMENT CHARACTER}"),
}


def pages(
    conversations: Iterable[ReadableConversation], contents: Sequence[str] = ()
) -> Iterator[str]:
    """A page with these conversations, in chunks; *contents* are their titles."""
    title = contents[0] if len(contents) == 1 else f"{len(contents)} conversations"
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    if len(contents) > 1:
        yield f"<nav>\n<h1>{escape_text(title)}</h1>\n<ol>\n"
        for number, name in enumerate(contents):
            yield f'<li><a href="#c{number}">{escape_text(name)}</a></li>\n'
        yield "</ol>\n</nav>\n"
    for number, conversation in enumerate(conversations):
        yield from _conversation(conversation, number)
    yield "</body>\n</html>\n"


def _conversation(conversation: ReadableConversation, number: int) -> Iterator[str]:
    facts = "".join(
        f"<dt>{escape_text(name)}</dt><dd>{escape_text(value)}</dd>\n"
        for name, value in conversation.facts
    )
    title = escape_text(conversation.title)
    yield f'<article id="c{number}">\n<h1 dir="auto">{title}</h1>\n<dl>\n{facts}</dl>\n'
    if conversation.prompt:
        yield _details("System prompt", conversation.prompt)
    for message in conversation.messages():
        yield _message(message)
    yield "</article>\n"


def _message(message: ReadableMessage) -> str:
    kind = message.role if message.role in {"user", "assistant", "tool", "system"} else "other"
    classes = f"{kind} undone" if "undone" in message.marks else kind
    author = escape_text(message.role) + (
        f" <code>{escape_text(message.name)}</code>" if message.name else ""
    )
    marks = "".join(f" <mark>{escape_text(mark)}</mark>" for mark in message.marks)
    parts = [
        f'<section class="{classes}">\n<header><b>{author}</b> <time>{message.at}</time>'
        f"{marks}</header>\n"
    ]
    if message.reasoning:
        parts.append(_details("Reasoning", message.reasoning))
    if message.text and message.is_tool:
        parts.append(_details(_summary(message.text), message.text))
    elif message.text:
        parts.append(f'<div class="text" dir="auto">{escape_text(message.text)}</div>\n')
    for name, arguments in message.calls:
        parts.append(_details(f"→ {name} {_summary(arguments)}", arguments))
    return "".join([*parts, "</section>\n"])


def _details(summary: str, text: str) -> str:
    return (
        f'<details><summary dir="auto">{escape_text(summary)}</summary>'
        f'<pre dir="auto">{escape_text(text)}</pre></details>\n'
    )


def _summary(text: str) -> str:
    line = " ".join(text[: 4 * MAX_SUMMARY_CHARACTERS].split())
    return line if len(line) <= MAX_SUMMARY_CHARACTERS else line[:MAX_SUMMARY_CHARACTERS] + " …"


def escape_text(text: str) -> str:
    """*text* escaped for HTML, with invisible characters made visible."""
    return escape(text.replace("\r\n", "\n").translate(_VISIBLE_CHARACTERS), quote=True)
