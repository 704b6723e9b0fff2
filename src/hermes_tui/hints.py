"""What could come next, above the input: commands and what they do, or names of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.content import Content
from textual.widgets import Static

from hermes_core.terminal_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST: Final = 8


class Hints(Static):
    """Some lines that come and go."""

    def __init__(self) -> None:
        super().__init__(id="hints")
        self.display = False

    def show_commands(self, commands: Sequence[dict[str, Any]]) -> None:
        """Commands that begin like what was typed."""
        width = max((len(_usage(one)) for one in commands), default=0)
        self._show([f"{_usage(one):{width}}  {one['help']}" for one in commands])

    def show_words(self, words: Sequence[str]) -> None:
        """Words that begin so."""
        self._show(list(words))

    def _show(self, lines: list[str]) -> None:
        more = [f"… {len(lines) - MOST} more"] if len(lines) > MOST else []
        self.update(Content(clean("\n".join([*lines[:MOST], *more]))))
        self.display = bool(lines)


def _usage(command: dict[str, Any]) -> str:
    return f"{command['name']} {command['hint']}".rstrip()
