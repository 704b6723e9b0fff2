"""Opens the menu for what is typed, and inserts what is selected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import list_in
from hermes_tui.completion import (
    argument_items,
    command_items,
    file_request,
    mention_items,
    path_items,
)
from hermes_tui.submission import UNREACHABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_tui.completion import CompletionRequest
    from hermes_tui.completion_menu import CompletionMenu
    from hermes_tui.conversation import ConversationClient
    from hermes_tui.prompt import Prompt
    from tui_gateway.summaries import CommandSummary

TYPING_PAUSE_SECONDS: Final = 0.04  # files are searched when no further key follows
MAX_FILES: Final = 50


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
