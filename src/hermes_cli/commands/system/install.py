"""`hermes install`: put `hermes` on PATH, with its manual page and shell completion."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_cli.parser import add_json_option, build_parser
from hermes_core import __version__
from hermes_core.command_name import COMMAND_VARIABLE
from hermes_core.distribution import find_distribution
from hermes_core.errors import UsageError
from hermes_core.system_programs import program_on_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_cli.output import CommandOutput


EXAMPLES = """\
examples:
  hermes install                     link into ~/.local/bin, manual page, completion
  hermes install --dir /usr/local/bin
  hermes install --remove            remove what was installed
  man hermes

Only files written by this command are replaced or removed; the history is not touched.
"""
OWN_FILE_MARK: Final = "written by `hermes install`"
ZSH_LINE: Final = "fpath=({folder} $fpath); autoload -Uz compinit; compinit"


class InstalledFile(NamedTuple):
    """A file outside of the program: its path, purpose and content; a link has none."""

    purpose: str
    path: Path
    content: Callable[[], str] | None

    @property
    def exists(self) -> bool:
        """Whether there is a file, or a link to anywhere."""
        return self.path.exists() or self.path.is_symlink()


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--dir", type=Path, metavar="FOLDER", help="folder of the link (default: ~/.local/bin)"
    )
    parser.add_argument("--remove", action="store_true", help="remove what was installed")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Install or remove the files."""
    # From now on the user types `hermes`: the manual page and the hints name it so.
    os.environ.pop(COMMAND_VARIABLE, None)
    folder = (arguments.dir or Path.home() / ".local" / "bin").expanduser().absolute()
    files = list(installed_files(folder))
    foreign = [file.path for file in files if file.exists and not _is_own(file)]
    if foreign and not arguments.remove:
        advice = "Remove it, or choose another folder with --dir."
        raise UsageError(f"{foreign[0]} exists and belongs to another installation. {advice}")
    change = _remove if arguments.remove else _write
    changed = [file for file in files if change(file)]
    hints = [] if arguments.remove else list(_hints(folder))
    if arguments.json:
        entries = [{"purpose": file.purpose, "path": str(file.path)} for file in changed]
        out.json({"removed" if arguments.remove else "installed": entries, "hints": hints})
        return 0
    verb = "Removed" if arguments.remove else "Installed"
    for file in changed:
        out.text(f"{verb} the {file.purpose}: {file.path}")
    if not changed:
        out.text("Nothing to remove." if arguments.remove else "Everything is already installed.")
    for hint in hints:
        out.text(hint)
    return 0


def installed_files(folder: Path) -> Iterator[InstalledFile]:
    """The files of an installation; completion for the shells that exist."""

    if find_distribution().is_checkout:
        yield InstalledFile("link", folder / "hermes", None)
    data = _data_folder()
    mark = f'.\\" {OWN_FILE_MARK}\n'
    yield InstalledFile("manual page", data / "man/man1/hermes.1", lambda: mark + man_page())
    for shell, path in completion_paths().items():
        if program_on_path(shell):
            yield InstalledFile(f"{shell} completion", path, partial(_completion, shell))


def completion_paths() -> dict[str, Path]:
    """Where each shell looks for the completion of a command."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return {
        "bash": _data_folder() / "bash-completion/completions/hermes",
        "zsh": _zsh_path(),
        "fish": settings / "fish/completions/hermes.fish",
    }


def _zsh_path() -> Path:
    return _data_folder() / "zsh/site-functions/_hermes"


def _data_folder() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def _completion(shell: str) -> str:
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 - this command only

    # zsh reads the names of the commands from the first line, so the mark is the last.
    return f"{shellcode(['hermes'], shell=shell)}\n# {OWN_FILE_MARK}\n"


def _write(file: InstalledFile) -> bool:
    """Write a file or link; return whether it changed."""
    file.path.parent.mkdir(parents=True, exist_ok=True)
    if file.content is None:
        target = find_distribution().launcher
        if file.path.is_symlink():
            if file.path.readlink() == target:
                return False
            file.path.unlink()
        file.path.symlink_to(target)
        return True
    text = file.content()
    if file.path.exists() and file.path.read_text("utf-8") == text:
        return False
    file.path.write_text(text, "utf-8")
    return True


def _remove(file: InstalledFile) -> bool:
    """Remove a file of this command; return whether it existed."""
    if not file.exists or not _is_own(file):
        return False
    file.path.unlink()
    return True


def _is_own(file: InstalledFile) -> bool:
    """Whether an existing file was written by this command.

    A link is our own if it leads to the launcher of a checkout, also of one that was moved.
    """
    if file.content is None:
        if not file.path.is_symlink():
            return False
        target = file.path.parent / file.path.readlink()
        return not target.exists() or (target.parent / "src" / "hermes_cli").is_dir()
    return file.path.is_file() and OWN_FILE_MARK in file.path.read_text("utf-8", errors="replace")


def _hints(folder: Path) -> Iterator[str]:
    """What the user has to do."""
    found = program_on_path("hermes")
    paths = os.environ.get("PATH", "").split(os.pathsep)
    if not find_distribution().is_checkout:
        if found is None:
            launcher = find_distribution().launcher
            yield f"`hermes` is not on your PATH; it is installed as {launcher}."
    elif str(folder) not in paths:
        line = f'export PATH="{folder}:$PATH"'
        yield f"{folder} is not on your PATH. Add this line to your shell's startup file:"
        yield f"  {line}"
    elif found and Path(found).parent != folder:
        yield f"Another `hermes` comes first on your PATH: {found}"
    if program_on_path("zsh") and os.environ.get("SHELL", "").endswith("zsh"):
        yield "For completion in zsh, add this line to ~/.zshrc:"
        yield "  " + ZSH_LINE.format(folder=_zsh_path().parent)


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
