"""The input at the bottom: several lines, what was sent before, words that finish themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from textual.message import Message
from textual.widgets import TextArea

from hermes_tui.input_history import Recall
from hermes_tui.paste import Pasted, picture_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual import events

# The last is Shift+Enter of terminals that tell modifiers in xterm's way.
NEW_LINE: Final = frozenset({"shift+enter", "alt+enter", "ctrl+j", "shift+\r"})
PATH_WORD: Final = re.compile(r"(?:^|(?<=\s))@?((?:~|\.{0,2})/?[^\s@]*)$")


class Prompt(TextArea):
    """Enter sends; Ctrl+J or a backslash at the end make a new line.

    So do Shift+Enter and Alt+Enter, on terminals that tell them from Enter.
    """

    class Sent(Message):
        """Somebody has pressed Enter."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Dropped(Message):
        """A picture was pasted or dropped."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class Tabbed(Message):
        """Tab was pressed behind a word that could be the beginning of a path."""

        def __init__(self, word: str) -> None:
            super().__init__()
            self.word = word

    def __init__(self, recall: Recall | None = None) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask something; / for commands, F1 for keys",
        )
        self._recall = recall or Recall()
        self._pasted = Pasted()
        self.names: Sequence[str] = ()  # of the commands

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
            self._look_back(1)
        elif key == "down" and self.text and self._is_recalling:
            self._look_back(-1)
        elif key == "tab":
            return self._tab()
        else:
            return False
        return True

    def _enter(self) -> None:
        if self.text.endswith("\\"):
            self.fill(f"{self.text[:-1]}\n")
            return
        text = self.whole_text.strip()
        if text:
            self._recall.add(text)
            self.fill("")
            self.post_message(self.Sent(text))

    def fill(self, text: str) -> None:
        """Put a text in, the cursor behind it."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def put_before(self, text: str) -> None:
        """What was not said goes before what is being written, unless that begins so already."""
        draft = self.text
        if draft.startswith(text) and not draft[len(text) : len(text) + 1].isalnum():
            return
        if draft:
            self.insert(f"{text}\n", (0, 0), maintain_selection_offset=True)
        else:
            self.fill(text)

    @property
    def whole_text(self) -> str:
        """What stands here, with what the words of long texts stand for."""
        return self._pasted.expand(self.text)

    # What was sent before

    @property
    def _is_recalling(self) -> bool:
        """Whether what stands here is nothing, or what was sent before."""
        return not self.text or self.text == self._recall.current

    def _look_back(self, steps: int) -> None:
        if not self.text:
            self._recall.forget_place()
        self.fill(self._recall.move(steps))

    # What is pasted

    def on_paste(self, event: events.Paste) -> None:
        """A picture is attached, a long text stands as one word; the rest as it is."""
        event.stop()
        event.prevent_default()
        path = picture_in(event.text)
        if path is not None:
            self.post_message(self.Dropped(path))
        else:
            self.insert(self._pasted.collapse(event.text.replace("\r\n", "\n").replace("\r", "\n")))

    # Words that finish themselves

    def matching(self) -> list[str]:
        """The commands that what stands here could become."""
        if not self.text.startswith("/") or any(one.isspace() for one in self.text):
            return []
        return [name for name in self.names if name.startswith(self.text)]

    def _tab(self) -> bool:
        found = self.matching()
        if found:
            self.fill(f"{found[0]} " if len(found) == 1 else _shared_start(found))
            return True
        before = self.text_before_cursor
        word = PATH_WORD.search(before)
        if word is None or not word[1]:
            return bool(self.text)  # nothing to finish, and no reason to leave a text
        self.post_message(self.Tabbed(word[1]))
        return True

    @property
    def text_before_cursor(self) -> str:
        """The current line up to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def finish_word(self, word: str, found: list[str]) -> None:
        """Put in what a word could become, as far as that is certain."""
        if found and self.text_before_cursor.endswith(word):
            row, column = self.cursor_location
            start = (row, column - len(word))
            self.replace(_shared_start(found), start, (row, column))


def _shared_start(words: list[str]) -> str:
    first, last = min(words), max(words)
    same = 0
    while first[same : same + 1] and first[same : same + 1] == last[same : same + 1]:
        same += 1
    return first[:same]
