"""Completion in `hermes chat`: commands, their arguments, mentioned files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit.completion import Completer, Completion

from hermes_conversation import slash_commands
from hermes_conversation.slash_commands import Surface

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prompt_toolkit.document import Document

    from hermes_conversation.conversation import Conversation

MENTION: Final = re.compile(r'(?:^|(?<=\s))@"?([^\s"@]*)$')
ARGUMENT: Final = re.compile(r"/(\S+) +(\S*)$")


class LineCompleter(Completer):
    """Completes the line before the cursor."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def get_completions(self, document: Document, _event: Any) -> Iterator[Completion]:
        """The completions of the word before the cursor."""
        before = document.text_before_cursor
        mention, argument = MENTION.search(before), ARGUMENT.fullmatch(before)
        if mention is not None:
            yield from self._files(mention[1], len(mention[0]))
        elif argument is not None:
            yield from _arguments(argument[1], argument[2])
        elif before.startswith("/") and " " not in before:
            folder = slash_commands.project_folder(self._conversation)
            for command in slash_commands.listed_commands(Surface.TERMINAL, folder):
                if command.name.startswith(before[1:]):
                    text, shown = f"/{command.name}", command.help
                    yield Completion(text, -len(before), display_meta=shown)

    def _files(self, word: str, length: int) -> Iterator[Completion]:
        for path in self._conversation.file_index.search(word):
            name = f'"{path}"' if " " in path else path
            yield Completion(f"@{name}", -length, display=path)


def _arguments(name: str, typed: str) -> Iterator[Completion]:
    commands = slash_commands.listed_commands(Surface.TERMINAL)
    found = (command for command in commands if name in (command.name, *command.aliases))
    command = next(found, None)
    for choice in command.choices if command is not None else ():
        if choice.startswith(typed):
            yield Completion(choice, -len(typed))
