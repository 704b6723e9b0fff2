"""What the input offers as completions: commands, their arguments, mentioned files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_tui.completion_menu import MenuItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_gateway.summaries import CommandSummary

MENTION: Final = re.compile(r'(?:^|(?<=\s))@("?)([^\s"@]*)$')
ARGUMENT: Final = re.compile(r"(/\S+) +(\S*)$")
PATH_HINT: Final = "FILE"


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
