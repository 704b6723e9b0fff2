"""The input at the bottom: several lines, what was sent before, names of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.message import Message
from textual.widgets import TextArea

from hermes_cli import slash

if TYPE_CHECKING:
    from textual import events

# The last is Shift+Enter of terminals that tell modifiers in xterm's way.
NEW_LINE: Final = frozenset({"shift+enter", "alt+enter", "ctrl+j", "shift+\r"})


class Prompt(TextArea):
    """Enter sends; Ctrl+J or a backslash at the end make a new line.

    So do Shift+Enter and Alt+Enter, on terminals that tell them from Enter.
    """

    class Sent(Message):
        """Somebody has pressed Enter."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask something; / for commands, F1 for keys",
        )
        self._sent: list[str] = []
        self._back = 0

    def on_key(self, event: events.Key) -> None:
        """The keys that mean something else here than in other texts."""
        if not self._is_taken(event.key):
            return
        event.stop()
        event.prevent_default()

    def _is_taken(self, key: str) -> bool:
        if key == "enter":
            self._enter()
        elif key in NEW_LINE:
            self.insert("\n")
        elif key == "up" and self._is_recalling:
            self._recall(1)
        elif key == "down" and self._back and self._is_recalling:
            self._recall(-1)
        elif key == "tab" and self.text.startswith("/"):
            self._complete()
        else:
            return False
        return True

    def _enter(self) -> None:
        if self.text.endswith("\\"):
            self.fill(f"{self.text[:-1]}\n")
            return
        text = self.text.strip()
        if text:
            self._sent.append(text)
            self._back = 0
            self.fill("")
            self.post_message(self.Sent(text))

    def fill(self, text: str) -> None:
        """Put a text in, the cursor behind it."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    @property
    def _is_recalling(self) -> bool:
        """Whether what stands here is nothing, or what was sent before."""
        return not self.text or (self._back > 0 and self.text == self._sent[-self._back])

    def _recall(self, step: int) -> None:
        if not self.text:
            self._back = 0
        self._back = max(0, min(self._back + step, len(self._sent)))
        self.fill(self._sent[-self._back] if self._back else "")

    def _complete(self) -> None:
        names = [f"/{one.name}" for one in slash.COMMANDS]
        found = [name for name in names if name.startswith(self.text)]
        if len(found) == 1:
            self.fill(f"{found[0]} ")
        elif found:
            self.fill(_shared_start(found))
            self.app.notify("  ".join(found), timeout=4)


def _shared_start(words: list[str]) -> str:
    first, last = min(words), max(words)
    length = next(
        (place for place, letter in enumerate(first) if letter != last[place : place + 1]),
        len(first),
    )
    return first[:length]
