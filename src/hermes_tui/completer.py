"""Completes what is typed: commands, their arguments, mentioned files."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content
from textual.widgets import Static

from hermes_core.json_values import list_in
from hermes_core.terminal_text import fit, one_line, pad, width
from hermes_tui.submission import UNREACHABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual import events

    from hermes_tui.conversation import ConversationClient
    from hermes_tui.prompt import Prompt
    from tui_gateway.protocol import CommandSummary

MAX_ROWS: Final = 8
LABEL_SHARE: Final = 0.4  # of the width at least, if a detail is beside it
SELECTION_MARK: Final = "❯ "  # noqa: RUF001 - also visible without colors


class MenuItem(NamedTuple):
    """An entry: what is shown, and what replaces the completed word."""

    label: str
    text: str
    detail: str = ""
    is_complete: bool = True  # nothing has to follow: Enter may send it


class CompletionMenu(Static):
    """A list with a selected entry; it keeps its height until it is closed.

    A change of the height would lay out the whole conversation again at every key.
    """

    def __init__(self) -> None:
        super().__init__(id="menu")
        self.display = False
        self._items: Sequence[MenuItem] = ()
        self._index = 0
        self._first = 0  # the first visible entry
        self._rows = 0

    @property
    def is_open(self) -> bool:
        """Whether there are entries."""
        return bool(self._items)

    @property
    def selected(self) -> MenuItem | None:
        """The selected entry."""
        return self._items[self._index] if self._items else None

    @property
    def items(self) -> Sequence[MenuItem]:
        """All entries."""
        return self._items

    def open(self, items: Sequence[MenuItem]) -> None:
        """Show entries; the first is selected. Without entries the menu is closed."""
        if not items:
            self.close()
            return
        if items == self._items:
            return
        self._items, self._index, self._first = items, 0, 0
        rows = min(len(items), MAX_ROWS) + 1
        if not self.display or rows > self._rows:
            self._rows = rows
            self.styles.height = rows
            self.display = True
        self._draw()

    def close(self) -> None:
        """Hide the menu."""
        self._items = ()
        if self.display:
            self.display = False
            self._rows = 0

    def move(self, steps: int) -> None:
        """Move the selection; it continues at the other end."""
        if self._items:
            self._index = (self._index + steps) % len(self._items)
            self._first = min(max(self._first, self._index - MAX_ROWS + 1), self._index)
            self._draw()

    def on_resize(self, _event: events.Resize) -> None:
        """Fit the entries to the width."""
        if self._items:
            self._draw()

    def _draw(self) -> None:
        columns = max(20, self.content_size.width or self.app.size.width - 4)
        visible = self._items[self._first : self._first + MAX_ROWS]
        widest = max(width(one_line(item.label)) for item in self._items)
        detail = max(width(one_line(item.detail)) for item in self._items)
        rest = columns - detail - (4 if detail else 2)  # what the widest detail leaves
        label_columns = min(widest, max(int(columns * LABEL_SHARE), rest))
        pieces: list[str | tuple[str, str]] = []
        for number, item in enumerate(visible, self._first):
            is_selected = number == self._index
            label = pad(fit(one_line(item.label), label_columns), label_columns)
            line = f"{SELECTION_MARK if is_selected else '  '}{label}"
            about = fit(one_line(item.detail), columns - width(line) - 2)
            padding = " " * max(0, columns - width(line) - width(about) - 2)
            style = "bold $text on $primary-muted" if is_selected else ""
            pieces.append((line, style))
            pieces.append((f"  {about}{padding}", style or "dim"))
            pieces.append("\n")
        pieces.append((f"  {self._index + 1} of {len(self._items)}{KEY_HINT}", "dim"))
        self.update(Content.assemble(*pieces), layout=False)


KEY_HINT: Final = "  ↑↓ select · Tab complete · Enter accept · Esc close"


TYPING_PAUSE_SECONDS: Final = 0.04  # files are searched when no further key follows
MAX_FILES: Final = 50
MENTION: Final = re.compile(r'(?:^|(?<=\s))@("?)([^\s"@]*)$')
ARGUMENT: Final = re.compile(r"(/\S+) +(\S*)$")
PATH_HINT: Final = "FILE"


class Completer:
    """The completions of one input."""

    def __init__(
        self,
        prompt: Prompt,
        menu: CompletionMenu,
        conversation: ConversationClient,
        commands: Callable[[], Sequence[CommandSummary]],
    ) -> None:
        self._prompt = prompt
        self._menu = menu
        self._conversation = conversation
        self._commands = commands
        self._dismissed = ""  # an input for which the menu was closed
        self._start = 0  # column of the word that is replaced
        self._file_start: int | None = None  # of a word that the menu completes with files
        self._seen = "", ""  # the input of the last update, and its part before the cursor

    def catch_up(self) -> None:
        """Update the menu for keys whose change is not reported yet.

        Keys that arrive together are all handled before the first report; Enter would accept an
        entry of a menu for an earlier input.
        """
        if self._seen != (self._prompt.text, self._prompt.text_before_cursor):
            self.update()

    def update(self) -> None:
        """Open or close the menu after a change of the input."""
        prompt, before = self._prompt, self._prompt.text_before_cursor
        self._seen = prompt.text, before
        if not prompt.text or prompt.text == self._dismissed:
            self._menu.close()
            return
        self._dismissed = ""
        commands = self._commands()
        is_line = prompt.text == before  # one line, and the cursor at its end
        items = command_items(before, commands) if is_line else []
        self._start = 0
        if not items and is_line:
            items = argument_items(before, commands)
            self._start = before.rfind(" ") + 1
        request = None if items else file_request(before, commands)
        is_continued = request is not None and self._file_start == request.start
        self._file_start = None if request is None else request.start
        if request is None or not is_continued:
            self._menu.open(items)
        if request is not None:
            self._start = request.start
            prompt.run_worker(self._find(request), group="completion", exclusive=True)

    def dismiss(self) -> None:
        """Close the menu until the input changes."""
        self._dismissed = self._prompt.text
        self._menu.close()

    def ignore(self, text: str) -> None:
        """Open no menu for a text that is put into the input, such as one from the history."""
        self._dismissed = text
        self._menu.close()

    def complete_path(self, word: str) -> None:
        """Show the paths that begin with a word (Tab)."""
        self._start = len(self._prompt.text_before_cursor) - len(word)
        self._prompt.run_worker(self._find_path(word), group="completion", exclusive=True)

    def accept(self) -> bool:
        """Insert the selected entry; whether the input is a complete command."""
        item = self._menu.selected
        if item is None:
            return False
        prompt = self._prompt
        row, column = prompt.cursor_location
        is_command = not self._start and item.text.startswith("/")
        ends = item.text.endswith("/") and not is_command  # a folder, which may be continued
        prompt.replace(f"{item.text}{'' if ends else ' '}", (row, self._start), (row, column))
        if not ends:
            self.ignore(prompt.text)
        return is_command and item.is_complete

    async def _find(self, request: CompletionRequest) -> None:
        await asyncio.sleep(TYPING_PAUSE_SECONDS)
        if request.kind == "file":
            found = await self._call("complete.file", word=request.word, limit=MAX_FILES)
            items = mention_items(found)
        else:
            found = await self._call(
                "complete.path", word=request.word, cwd=self._conversation.info.cwd
            )
            items = path_items(found)
        before = self._prompt.text_before_cursor
        if file_request(before, self._commands()) == request:
            self._menu.open([item for item in items if item.text != before[request.start :]])

    async def _find_path(self, word: str) -> None:
        found = await self._call("complete.path", word=word, cwd=self._conversation.info.cwd)
        self._prompt.complete_word(word, found)
        self._dismissed = self._prompt.text
        self._menu.open(path_items(found) if len(found) > 1 else [])

    async def _call(self, method: str, **params: str | int) -> list[str]:
        try:
            response = await asyncio.to_thread(self._conversation.call, method, **params)
        except UNREACHABLE as error:
            self._prompt.notify(str(error), severity="error", markup=False)
            return []
        return [str(item) for item in list_in(response, "items")]


class CompletionRequest(NamedTuple):
    """A word to complete with files or paths, which the server knows."""

    kind: str  # `file` for a mention, `path` for an argument
    word: str
    start: int  # column of what is replaced


def command_items(line: str, commands: Sequence[CommandSummary]) -> list[MenuItem]:
    """The commands that a line may become: the one with that name, those that begin with it."""
    if not line.startswith("/") or any(character.isspace() for character in line):
        return []
    typed = line[1:].lower()
    starting = [command for command in commands if _starts(command, typed)]
    starting.sort(key=lambda command: line.lower() not in (command.name, *command.aliases))
    containing = [
        command for command in commands if command not in starting and typed in command.name[1:]
    ]
    return [_item(command) for command in [*starting, *containing]]


def _starts(command: CommandSummary, typed: str) -> bool:
    return any(name[1:].startswith(typed) for name in (command.name, *command.aliases))


def _item(command: CommandSummary) -> MenuItem:
    takes_none = not command.hint or command.hint.startswith("[")
    label = f"{command.name} {command.hint}".rstrip()
    return MenuItem(label, command.name, command.help, is_complete=takes_none)


def argument_items(line: str, commands: Iterable[CommandSummary]) -> list[MenuItem]:
    """The known first arguments of a command that begin with what is typed."""
    match = ARGUMENT.fullmatch(line)
    if match is None:
        return []
    command = _named(match[1], commands)
    choices = command.choices if command is not None else []
    found = [choice for choice in choices if choice.startswith(match[2])]
    return [] if found == [match[2]] else [MenuItem(choice, choice) for choice in found]


def _named(name: str, commands: Iterable[CommandSummary]) -> CommandSummary | None:
    found = (command for command in commands if name in (command.name, *command.aliases))
    return next(found, None)


def file_request(before: str, commands: Iterable[CommandSummary]) -> CompletionRequest | None:
    """The mention or the path before the cursor."""
    mention = MENTION.search(before)
    if mention is not None:
        return CompletionRequest("file", mention[2], mention.start())
    argument = ARGUMENT.fullmatch(before)
    command = _named(argument[1], commands) if argument is not None else None
    if argument is None or command is None or PATH_HINT not in command.hint:
        return None
    return CompletionRequest("path", argument[2], argument.start(2))


def mention_items(paths: Iterable[str]) -> list[MenuItem]:
    """Entries for mentioned files."""
    return [MenuItem(path, f"@{_quoted(path)}") for path in paths]


def path_items(paths: Iterable[str]) -> list[MenuItem]:
    """Entries for paths as arguments."""
    return [MenuItem(path, path) for path in paths]


def _quoted(path: str) -> str:
    return f'"{path}"' if any(character.isspace() for character in path) else path
