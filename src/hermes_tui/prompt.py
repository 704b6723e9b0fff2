"""The input: multiple lines, history, pastes and completion."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlparse

from textual.message import Message
from textual.widgets import TextArea

from hermes_core import clipboard
from hermes_tui.input_history import InputHistory
from hermes_tui.vim.keys import VimKeys, VimMode
from hermes_tui.vim.motions import clamp, line_number, line_start

if TYPE_CHECKING:
    from textual import events

    from hermes_tui.completer import Completer, CompletionMenu
    from hermes_tui.vim.keys import TextEdit

MAX_INLINE_LINES: Final = 8
MAX_INLINE_CHARACTERS: Final = 1500
IMAGE_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
PASTE_PLACEHOLDER: Final = re.compile(r"\[pasted text #(\d+), [\d,]+ (?:lines|characters)\]")


class PasteBuffer:
    """Long pasted texts, replaced by placeholders in the input."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def collapse(self, text: str) -> str:
        """The text to insert for a paste: the paste itself, or a placeholder if it is long."""
        lines = len(text.splitlines())
        if lines <= MAX_INLINE_LINES and len(text) <= MAX_INLINE_CHARACTERS:
            return text
        self._texts.append(text)
        size = f"{lines:,} lines" if lines > MAX_INLINE_LINES else f"{len(text):,} characters"
        return f"[pasted text #{len(self._texts)}, {size}]"

    def expand(self, text: str) -> str:
        """Replace the placeholders by their texts."""

        def original(match: re.Match[str]) -> str:
            number = int(match[1])
            return self._texts[number - 1] if 0 < number <= len(self._texts) else match[0]

        return PASTE_PLACEHOLDER.sub(original, text)

    def placeholder_before(self, text: str) -> str:
        """The placeholder at the end of a line; empty if there is none."""
        found = [match for match in PASTE_PLACEHOLDER.finditer(text) if match.end() == len(text)]
        return found[0][0] if found else ""


def image_path(text: str) -> Path | None:
    """The path of an image, if the pasted or dropped text is one."""
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
        is_image = path.suffix.lower() in IMAGE_SUFFIXES and path.is_file()
    except OSError:
        return None
    return path if is_image else None


# The last is Shift+Enter in terminals with xterm's modifyOtherKeys.
NEW_LINE: Final = frozenset({"shift+enter", "alt+enter", "ctrl+j", "shift+\r"})
PATH_WORD: Final = re.compile(r"(?:^|(?<=\s))@?((?:~|\.{0,2})/?[^\s@]*)$")


class Prompt(TextArea):
    """The text area: Enter sends; Ctrl+J or a trailing backslash inserts a new line.

    So do Shift+Enter and Alt+Enter in terminals that distinguish them from Enter.
    """

    class Sent(Message):
        """Enter was pressed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Dropped(Message):
        """An image was pasted or dropped."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class ImagePasted(Message):
        """A picture was pasted from the clipboard."""

        def __init__(self, data: bytes) -> None:
            super().__init__()
            self.data = data

    class ModeChanged(Message):
        """Vim keys: the mode is another one."""

        def __init__(self, mode: VimMode) -> None:
            super().__init__()
            self.mode = mode

    def __init__(
        self,
        menu: CompletionMenu,
        history: InputHistory | None = None,
        *,
        has_vim_keys: bool = False,
    ) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask anything; / commands, @ files, ! shell, # memory, F1 keys",
        )
        self._history = history or InputHistory()
        self._pastes = PasteBuffer()
        self._suggestion = ""  # an earlier prompt that was put here
        self._menu = menu
        self.completer: Completer | None = None
        self._vim = VimKeys() if has_vim_keys else None

    def on_mount(self) -> None:
        """Report the first mode."""
        if self._vim is not None:
            self.post_message(self.ModeChanged(self._vim.mode))

    def on_key(self, event: events.Key) -> None:
        """Handle the keys that differ from a plain text area."""
        if self._vim is not None and self._press_vim_key(self._vim, event):
            event.stop()
            event.prevent_default()
            return
        if event.character == "/" and self._suggestion and self.text == self._suggestion:
            self.fill("")  # a command instead of the suggestion
        if not self._handle_key(event.key):
            return
        event.stop()
        event.prevent_default()

    def _handle_key(self, key: str) -> bool:
        if self.completer is not None:
            self.completer.catch_up()
        if self._menu.is_open and self.completer is not None and self._handle_menu_key(key):
            return True
        if key == "enter":
            self._enter()
        elif key in NEW_LINE:
            self.insert("\n")
        elif key == "up" and self._is_recalling:
            self._recall(1)
        elif key == "down" and self.text and self._is_recalling:
            self._recall(-1)
        elif key == "tab":
            return self._tab()
        elif key == "backspace":
            return self._remove_placeholder()
        else:
            return False
        return True

    # Vim keys

    def _press_vim_key(self, vim: VimKeys, event: events.Key) -> bool:
        """Whether the key belongs to normal mode, or leads to it."""
        key = event.character if event.is_printable and event.character else event.key
        if self._menu.is_open and self.completer is not None:
            if key != "escape":
                return False  # keys of the menu
            self.completer.dismiss()
        mode, (row, column) = vim.mode, self.cursor_location
        cursor = line_number(self.text, row + 1) + column
        change = vim.press(key, self.text, cursor)
        if change is not None:
            self._apply(change)
        if vim.mode is not mode:
            self.post_message(self.ModeChanged(vim.mode))
        return change is not None

    def _apply(self, change: TextEdit) -> None:
        if change.command == "undo":
            self.undo()
        elif change.command:
            if self._is_recalling:
                self._recall(1 if change.command == "earlier" else -1)
        elif change.is_edit:
            text = self.text
            self.replace(change.text, _location(text, change.start), _location(text, change.end))
        cursor = clamp(self.text, len(self.text)) if change.command else change.cursor
        self.move_cursor(_location(self.text, cursor))

    def _restart_vim_keys(self) -> None:
        """Begin in insert mode again, after a message was sent."""
        if self._vim is not None and self._vim.mode is not VimMode.INSERT:
            self._vim.reset()
            self.post_message(self.ModeChanged(self._vim.mode))

    def _remove_placeholder(self) -> bool:
        """Remove the placeholder of a paste as a whole; whether there was one."""
        placeholder = self._pastes.placeholder_before(self.text_before_cursor)
        if not placeholder or self.selection.start != self.selection.end:
            return False
        row, column = self.cursor_location
        self.delete((row, column - len(placeholder)), (row, column))
        return True

    def _handle_menu_key(self, key: str) -> bool:
        if self.completer is None:
            return False
        if key in {"up", "down"}:
            self._menu.move(-1 if key == "up" else 1)
        elif key == "escape":
            self.completer.dismiss()
        elif key == "tab":
            self.completer.accept()
        elif key == "enter":
            if self.completer.accept():
                self._enter()
        else:
            return False
        return True

    def _enter(self) -> None:
        if self.text.endswith("\\"):
            self.fill(f"{self.text[:-1]}\n")
            return
        text = self.full_text.strip()
        if text:
            self._history.add(text)
            self.fill("")
            self._restart_vim_keys()
            self.post_message(self.Sent(text))

    def fill(self, text: str) -> None:
        """Replace the input; the cursor goes to the end."""
        self._suggestion = ""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def suggest(self, text: str) -> None:
        """Fill the input with an earlier prompt to be changed; a slash replaces it."""
        self.fill(text)
        self._suggestion = text

    def prepend(self, text: str) -> None:
        """Insert unsent text before the draft, unless the draft already begins with it."""
        draft = self.text
        if draft.startswith(text) and not draft[len(text) : len(text) + 1].isalnum():
            return
        if draft:
            self.insert(f"{text}\n", (0, 0), maintain_selection_offset=True)
        else:
            self.fill(text)

    @property
    def full_text(self) -> str:
        """The input with expanded pastes."""
        return self._pastes.expand(self.text)

    # History

    @property
    def _is_recalling(self) -> bool:
        """Whether the input is empty or a recalled entry."""
        return not self.text or self.text == self._history.current

    def _recall(self, steps: int) -> None:
        if not self.text:
            self._history.reset()
        text = self._history.move(steps)
        if self.completer is not None:
            self.completer.ignore(text)
        self.fill(text)

    # Pastes

    def on_paste(self, event: events.Paste) -> None:
        """Attach a pasted image, collapse a long text, insert anything else."""
        event.stop()
        event.prevent_default()
        self._paste(event.text)

    def _paste(self, text: str) -> None:
        path = image_path(text)
        if path is not None:
            self.post_message(self.Dropped(path))
        elif text:
            self.insert(self._pastes.collapse(text.replace("\r\n", "\n").replace("\r", "\n")))

    def action_paste(self) -> None:
        """Paste the picture or the text of the clipboard (Ctrl+V)."""
        self.run_worker(self._paste_clipboard(), group="clipboard", exclusive=True)

    async def _paste_clipboard(self) -> None:
        data = await asyncio.to_thread(clipboard.paste_image)
        if data:
            self.post_message(self.ImagePasted(data))
        else:
            self._paste(await asyncio.to_thread(clipboard.paste_text) or self.app.clipboard)

    # Completion

    def _tab(self) -> bool:
        word = PATH_WORD.search(self.text_before_cursor)
        is_path = word is not None and word[1] and not word[0].startswith("@")
        if word is None or not is_path or self.completer is None:
            # The menu of a mention opens automatically; keep the focus while there is text.
            return bool(self.text)
        self.completer.complete_path(word[1])
        return True

    @property
    def text_before_cursor(self) -> str:
        """The current line up to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def complete_word(self, word: str, completions: list[str]) -> None:
        """Insert the common prefix of the completions."""
        if completions and self.text_before_cursor.endswith(word):
            row, column = self.cursor_location
            start = (row, column - len(word))
            self.replace(_common_prefix(completions), start, (row, column))


def _location(text: str, offset: int) -> tuple[int, int]:
    """The row and the column of an offset."""
    return text.count("\n", 0, offset), offset - line_start(text, offset)


def _common_prefix(completions: list[str]) -> str:
    first, last = min(completions), max(completions)
    length = 0
    while first[length : length + 1] and first[length : length + 1] == last[length : length + 1]:
        length += 1
    return first[:length]
