"""The Markdown parser shared by the platforms."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode


def create_parser(*, has_breaks: bool = False) -> MarkdownIt:
    """A parser with tables and strikethrough; HTML is treated as text."""
    rules = MarkdownIt("commonmark", {"html": False, "breaks": has_breaks})
    return rules.enable(["table", "strikethrough"])


def parse_tree(markdown: str) -> SyntaxTreeNode:
    """The syntax tree of a text."""
    return SyntaxTreeNode(create_parser().parse(markdown))


def split_lines(markdown: str) -> list[str]:
    """The lines that the nodes of a tree refer to."""
    return markdown.replace("\r\n", "\n").split("\n")
