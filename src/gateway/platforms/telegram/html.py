"""Markdown as the HTML that Telegram takes: few tags, everything else as text.

Tags do not count towards the length of a message; what is between them does. A table has no
tag and stays as it was written, in letters of one width.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.platforms.markdown import lines_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markdown_it.tree import SyntaxTreeNode

MARKS: Final = {"strong": "b", "em": "i", "s": "s"}
LINE: Final = "———"
INDENT: Final = "  "


class Rendered(NamedTuple):
    """A text with its tags, and what is shown of it, which is what counts."""

    html: str
    shown: str


def rendered(markdown: str) -> Rendered:
    """*markdown* for `parse_mode=HTML`."""
    tree, lines = tree_of(markdown), lines_of(markdown)
    return Rendered(*(_Page(lines, tags).blocks(tree.children).strip() for tags in (True, False)))


class _Page:
    """One walk over a text, with tags or without."""

    def __init__(self, lines: list[str], has_tags: bool) -> None:
        self._lines = lines
        self._has_tags = has_tags

    def _tag(self, name: str, inner: str, attribute: str = "") -> str:
        if not self._has_tags or not inner:
            return inner
        return f"<{name}{attribute}>{inner}</{name}>"

    def _text(self, text: str) -> str:
        return escape(text, quote=False) if self._has_tags else text

    # Blocks

    def blocks(self, nodes: Iterable[SyntaxTreeNode], between: str = "\n\n", depth: int = 0) -> str:
        """Blocks, one under the other; *depth* is how many lists they are in."""
        return between.join(filter(None, (self._block(one, depth) for one in nodes)))

    def _block(self, node: SyntaxTreeNode, depth: int) -> str:
        if node.type in {"bullet_list", "ordered_list"}:
            return self._list(node, depth)
        kinds = {
            "heading": self._heading,
            "fence": self._code,
            "code_block": self._code,
            "blockquote": self._quote,
            "table": self._source,
        }
        return LINE if node.type == "hr" else kinds.get(node.type, self._inside)(node)

    def _heading(self, node: SyntaxTreeNode) -> str:
        return self._tag("b", self._inside(node))

    def _code(self, node: SyntaxTreeNode) -> str:
        code = self._text(node.content.rstrip("\n"))
        language = node.info.split(maxsplit=1)[0] if node.info.strip() else ""
        if language:
            code = self._tag("code", code, f' class="language-{escape(language)}"')
        return self._tag("pre", code)

    def _source(self, node: SyntaxTreeNode) -> str:
        first, behind = node.map or (0, 0)
        return self._tag("pre", self._text("\n".join(self._lines[first:behind]).strip("\n")))

    def _quote(self, node: SyntaxTreeNode) -> str:
        """A quotation; Telegram has none within another."""
        is_outer = not any(one.type == "blockquote" for one in _above(node))
        inner = self.blocks(node.children)
        return self._tag("blockquote", inner) if is_outer else inner

    def _list(self, node: SyntaxTreeNode, depth: int) -> str:
        first = int(node.attrs.get("start", 1))
        is_ordered = node.type == "ordered_list"
        items = []
        for number, item in enumerate(node.children, first):
            mark = f"{number}." if is_ordered else "•"
            inner = self.blocks(item.children, "\n", depth + 1)
            items.append(f"{INDENT * depth}{mark} {inner}".rstrip())
        return "\n".join(items)

    # Within a line

    def _inside(self, node: SyntaxTreeNode) -> str:
        return "".join(self._inline(one) for one in node.children)

    def _inline(self, node: SyntaxTreeNode) -> str:
        if node.type in MARKS:
            return self._tag(MARKS[node.type], self._inside(node))
        if node.type == "code_inline":
            return self._tag("code", self._text(node.content))
        if node.type == "link":
            return self._link(str(node.attrs.get("href", "")), self._inside(node))
        if node.type == "image":
            address = str(node.attrs.get("src", ""))
            return self._link(address, self._text(node.content) or self._text(address))
        if node.type in {"softbreak", "hardbreak"}:
            return "\n"
        return self._inside(node) if node.children else self._text(node.content)

    def _link(self, address: str, inner: str) -> str:
        return self._tag("a", inner, f' href="{escape(address)}"') if address else inner


def _above(node: SyntaxTreeNode) -> Iterable[SyntaxTreeNode]:
    while node.parent is not None:
        node = node.parent
        yield node
