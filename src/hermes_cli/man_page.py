"""The manual page hermes(1), made from the argument parser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hermes_cli.parser import build_parser
from hermes_core import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

DESCRIPTION = """\
Hermes is a personal AI agent that saves every conversation. Without a command it starts the
full-screen terminal UI. An argument with spaces is a question; the answer is printed.
"""
EXIT_CODES = (
    ("0", "success"),
    ("1", "failure"),
    ("2", "usage error: invalid option, unknown setting, unknown session"),
    ("130", "interrupted with Ctrl+C"),
    ("141", "the reader of the output exited"),
)
VARIABLES = (
    ("HERMES_HOME", "folder of the history, the settings and the keys; default ~/.hermes"),
    ("HERMES_DEBUG", "if set, errors are printed with their traceback"),
    ("NO_COLOR", "if set, output has no colors"),
)
FILES = (
    ("~/.hermes/config.yaml", "settings; see hermes config"),
    ("~/.hermes/state.db", "the history"),
    ("~/.hermes/.env", "keys of model providers and chat platforms"),
)


def man_page() -> str:
    """The page in the man macros of roff."""
    lines = [f'.TH HERMES 1 "" "hermes {__version__}" "User Commands"']
    lines += [".SH NAME", "hermes \\- personal AI agent that saves every conversation"]
    lines += [".SH SYNOPSIS", ".B hermes", "[OPTION] [COMMAND | QUESTION]"]
    lines += [".SH DESCRIPTION", *_text(DESCRIPTION)]
    lines += [".SH COMMANDS"]
    parser = build_parser(None, is_complete=True)
    for command in _subparsers(parser):
        lines += _command(command)
    for title, entries in (
        ("EXIT STATUS", EXIT_CODES), ("ENVIRONMENT", VARIABLES), ("FILES", FILES),
    ):  # fmt: skip
        lines += [f".SH {title}", *(line for entry in entries for line in _entry(*entry))]
    return "\n".join(lines) + "\n"


def _command(parser: argparse.ArgumentParser) -> list[str]:
    """A command with its arguments and its actions."""
    lines = [f".SS {_escape(parser.prog)}", *_text(parser.description or "")]
    lines += _arguments(parser)
    for child in _subparsers(parser):
        lines += _command(child)
    if parser.epilog:
        lines += [".PP", ".nf", *_text(parser.epilog), ".fi"]
    return lines


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    formatter = argparse.HelpFormatter(parser.prog)
    lines: list[str] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to walk
        is_shown = action.help not in {None, argparse.SUPPRESS} and action.dest != "help"
        if is_shown and not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            name = formatter._format_action_invocation(action)  # noqa: SLF001 - as in its own help
            lines += _entry(name, formatter._expand_help(action))  # noqa: SLF001 - as above
    return lines


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001 - as above
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            yield from dict.fromkeys(action.choices.values())


def _entry(name: str, text: str) -> list[str]:
    return [".TP", f".B {_escape(name)}", *_text(text)]


def _text(text: str) -> list[str]:
    return [_escape(line) for line in text.splitlines()]


def _escape(line: str) -> str:
    """*line* without a meaning for roff: backslashes, hyphens, and a first dot or quote."""
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
