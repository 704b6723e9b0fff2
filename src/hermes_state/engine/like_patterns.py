"""Text as a pattern for LIKE … ESCAPE '\\'."""

from __future__ import annotations


def literally(text: str) -> str:
    """A pattern that matches *text* itself, whatever characters it has."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def beginning_with(text: str) -> str:
    """A pattern that matches whatever begins with *text*."""
    return literally(text) + "%"


def containing(text: str) -> str:
    """A pattern that matches whatever contains *text*."""
    return "%" + literally(text) + "%"
