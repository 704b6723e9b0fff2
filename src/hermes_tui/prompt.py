"""The input at the bottom: several lines, what was sent before, words that finish themselves."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlparse

from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from hermes_core.terminal_text import clean
from hermes_tui.input_history import InputHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

MAX_HINT_LINES: Final = 8


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
        more = [f"… {len(lines) - MAX_HINT_LINES} more"] if len(lines) > MAX_HINT_LINES else []
        self.update(Content(clean("\n".join([*lines[:MAX_HINT_LINES], *more]))))
        self.display = bool(lines)


def _usage(command: dict[str, Any]) -> str:
    return f"{command['name']} {command['hint']}".rstrip()


SHORT_LINES: Final = 8
SHORT_CHARACTERS: Final = 1500
PICTURES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
WORD: Final = re.compile(r"\[pasted #(\d+): [\d,]+ (?:lines|characters)\]")


class PasteBuffer:
    """Long texts behind the words that stand for them."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def collapse(self, text: str) -> str:
        """What is put into the input for a pasted text: itself, or a word for it."""
        lines = text.count("\n") + 1
        if lines <= SHORT_LINES and len(text) <= SHORT_CHARACTERS:
            return text
        self._texts.append(text)
        size = f"{lines:,} lines" if lines > SHORT_LINES else f"{len(text):,} characters"
        return f"[pasted #{len(self._texts)}: {size}]"

    def expand(self, text: str) -> str:
        """What was meant: every word replaced by its text."""

        def whole(found: re.Match[str]) -> str:
            number = int(found[1])
            return self._texts[number - 1] if 0 < number <= len(self._texts) else found[0]

        return WORD.sub(whole, text)


def picture_in(text: str) -> Path | None:
    """The picture whose path was pasted or dropped, if that is what it is."""
    line = text.strip()
    if not line or "\n" in line:
        return None
    if line.startswith("file://"):
        line = unquote(urlparse(line).path)
    elif line[0] in "'\"" or "\\ " in line:
        try:
            parts = shlex.split(line)
        except ValueError:
            return None
        line = parts[0] if len(parts) == 1 else ""
    path = Path(line).expanduser()
    try:
        is_picture = path.suffix.lower() in PICTURES and path.is_file()
    except OSError:
        return None
    return path if is_picture else None


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

    def __init__(self, recall: InputHistory | None = None) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask anything; / for commands, F1 for keys",
        )
        self._recall = recall or InputHistory()
        self._pasted = PasteBuffer()
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
