"""Converts Markdown to Slack mrkdwn and Slack messages to plain text.

Text that would form a mention or a link is escaped, so a reply never pings users.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gateway.platforms.markdown import parse_tree, split_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from markdown_it.tree import SyntaxTreeNode

INLINE_MARKS: Final = {"strong": "*", "em": "_", "s": "~"}
RULE_TEXT: Final = "———"
INDENT: Final = "    "
MENTION_PATTERN: Final = re.compile(r"<@([A-Z0-9]+)(?:\|[^>]*)?>")
BRACKET_PATTERN: Final = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


def escape_text(text: str) -> str:
    """A text with the control characters of Slack escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render_mrkdwn(markdown: str) -> str:
    """*markdown* as mrkdwn; a table becomes a code block."""
    return _MrkdwnRenderer(split_lines(markdown)).blocks(parse_tree(markdown).children).strip()


class _MrkdwnRenderer:
    """Renders a syntax tree."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._is_bold = False  # inside a heading, which is bold

    def blocks(self, nodes: Iterable[SyntaxTreeNode], between: str = "\n\n") -> str:
        """Blocks below each other."""
        return between.join(filter(None, map(self._block, nodes)))

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "heading":
                return self._heading(node)
            case "fence" | "code_block":
                return _code(node.content)
            case "table":
                first, end = node.map or (0, 0)
                return _code("\n".join(self._lines[first:end]))
            case "blockquote":
                return _prefix_lines("> ", self.blocks(node.children))
            case "bullet_list" | "ordered_list":
                return self._list(node)
        return RULE_TEXT if node.type == "hr" else self._inside(node)

    def _heading(self, node: SyntaxTreeNode) -> str:
        self._is_bold = True
        inner = self._inside(node)
        self._is_bold = False
        return f"*{inner}*" if inner else ""

    def _list(self, node: SyntaxTreeNode) -> str:
        first = int(node.attrs.get("start", 1))
        items = []
        for number, item in enumerate(node.children, first):
            mark = f"{number}." if node.type == "ordered_list" else "•"
            inner = self.blocks(item.children, "\n").replace("\n", f"\n{INDENT}")
            items.append(f"{mark} {inner}".rstrip())
        return "\n".join(items)

    def _inside(self, node: SyntaxTreeNode) -> str:
        return "".join(map(self._inline, node.children))

    def _inline(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "strong" | "em" | "s":
                inner, mark = self._inside(node), INLINE_MARKS[node.type]
                is_bold = self._is_bold and node.type == "strong"
                return inner if is_bold or not inner else f"{mark}{inner}{mark}"
            case "code_inline":
                return f"`{escape_text(node.content)}`"
            case "link":
                return _link(str(node.attrs.get("href", "")), self._inside(node))
            case "image":
                return _link(str(node.attrs.get("src", "")), escape_text(node.content))
            case "softbreak" | "hardbreak":
                return "\n"
        return self._inside(node) if node.children else escape_text(node.content)


def _code(text: str) -> str:
    inner = text.strip("\n")
    return f"```\n{escape_text(inner)}\n```"


def _prefix_lines(mark: str, text: str) -> str:
    return "\n".join(f"{mark}{line}" for line in text.split("\n"))


def _link(address: str, inner: str) -> str:
    """A link; the URL is escaped so that it cannot end the link."""
    safe = escape_text(address).replace("|", "%7C")
    if not re.match(r"(?i)https?://|mailto:", address):
        return f"{inner} ({safe})" if inner and safe and inner != safe else inner or safe
    return f"<{safe}|{inner}>" if inner and inner != safe else f"<{safe}>"


def plain_text(text: str, name_of: Callable[[str], str]) -> str:
    """A Slack message as plain text, with names instead of IDs."""
    named = MENTION_PATTERN.sub(lambda item: f"@{name_of(item[1])}", text)
    bare = BRACKET_PATTERN.sub(_unbracketed, named)
    return bare.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _unbracketed(found: re.Match[str]) -> str:
    target, label = found[1], found[2]
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    bare = target.removeprefix("mailto:").removeprefix("tel:")
    return f"{label} ({target})" if label and label not in {target, bare} else bare


def without_mention(text: str, me: str) -> tuple[str, bool]:
    """A text without mentions of the bot, and whether there was one."""
    result = re.sub(rf"<@{re.escape(me)}(?:\|[^>]*)?>[:,]?\s*", "", text)
    return result.strip(), result != text
