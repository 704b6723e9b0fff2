"""Markdown as models write it, read in the same way for every platform."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode


def reader(*, has_breaks: bool = False) -> MarkdownIt:
    """Reads Markdown with tables and struck out words; HTML in it stays what it looks like."""
    rules = MarkdownIt("commonmark", {"html": False, "breaks": has_breaks})
    return rules.enable(["table", "strikethrough"])


def tree_of(markdown: str) -> SyntaxTreeNode:
    """A text as a tree of blocks."""
    return SyntaxTreeNode(reader().parse(markdown))


def lines_of(markdown: str) -> list[str]:
    """The lines that the nodes of a tree count."""
    return markdown.replace("\r\n", "\n").split("\n")
