"""Markdown made into the marks of Slack, and what Slack sends made into plain text.

Everything that would be a mention or a link by itself is escaped, so an answer pings nobody.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gateway.platforms.markdown import lines_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from markdown_it.tree import SyntaxTreeNode

MARKS: Final = {"strong": "*", "em": "_", "s": "~"}
RULE: Final = "———"
INDENT: Final = "    "
MENTIONED: Final = re.compile(r"<@([A-Z0-9]+)(?:\|[^>]*)?>")
BRACKETED: Final = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


def escaped(text: str) -> str:
    """A text in which nothing is a mark for a mention or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mrkdwn(markdown: str) -> str:
    """*markdown* as Slack writes it; a table stays as it is, in letters of one width."""
    return _Page(lines_of(markdown)).blocks(tree_of(markdown).children).strip()


class _Page:
    """One walk over a text."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._is_bold = False  # within a heading, which is bold as a whole

    def blocks(self, nodes: Iterable[SyntaxTreeNode], between: str = "\n\n") -> str:
        """Blocks, one under the other."""
        return between.join(filter(None, map(self._block, nodes)))

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "heading":
                return self._heading(node)
            case "fence" | "code_block":
                return _code(node.content)
            case "table":
                first, behind = node.map or (0, 0)
                return _code("\n".join(self._lines[first:behind]))
            case "blockquote":
                return _before("> ", self.blocks(node.children))
            case "bullet_list" | "ordered_list":
                return self._list(node)
        return RULE if node.type == "hr" else self._inside(node)

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
                inner, mark = self._inside(node), MARKS[node.type]
                is_said = self._is_bold and node.type == "strong"
                return inner if is_said or not inner else f"{mark}{inner}{mark}"
            case "code_inline":
                return f"`{escaped(node.content)}`"
            case "link":
                return _link(str(node.attrs.get("href", "")), self._inside(node))
            case "image":
                return _link(str(node.attrs.get("src", "")), escaped(node.content))
            case "softbreak" | "hardbreak":
                return "\n"
        return self._inside(node) if node.children else escaped(node.content)


def _code(text: str) -> str:
    inner = text.strip("\n")
    return f"```\n{escaped(inner)}\n```"


def _before(mark: str, text: str) -> str:
    return "\n".join(f"{mark}{line}" for line in text.split("\n"))


def _link(address: str, inner: str) -> str:
    """A link; what stands in its address can end it no sooner."""
    safe = escaped(address).replace("|", "%7C")
    if not re.match(r"(?i)https?://|mailto:", address):
        return f"{inner} ({safe})" if inner and safe and inner != safe else inner or safe
    return f"<{safe}|{inner}>" if inner and inner != safe else f"<{safe}>"


def plain(text: str, name_of: Callable[[str], str]) -> str:
    """What somebody wrote, with names for ids and without marks of Slack's own."""
    named = MENTIONED.sub(lambda found: f"@{name_of(found[1])}", text)
    bare = BRACKETED.sub(_unbracketed, named)
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
    """A text without the bot in it, and whether it was named."""
    found = re.sub(rf"<@{re.escape(me)}(?:\|[^>]*)?>[:,]?\s*", "", text)
    return found.strip(), found != text
