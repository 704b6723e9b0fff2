"""The only module that prints.

On a terminal, output is coloured and tables are cut to its width. Files and pipes get the
complete text without colours. NO_COLOR and the setting `display.color` override the colours.
Every text is cleaned of control characters.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.command_name import with_command_name
from hermes_core.errors import OutputError, UsageError
from hermes_core.terminal_text import clean, fit, one_line, pad, width, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

COLUMN_GAP = "  "
YES_ANSWERS = frozenset({"y", "yes"})
NO_ANSWERS = frozenset({"n", "no"})
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class TableColumn(NamedTuple):
    """A column of a table."""

    title: str
    right: bool = False
    flexible: bool = False  # shrinks on a narrow terminal
    least: int = 12  # minimum cells of a flexible column
    optional: bool = False  # omitted if the terminal is still too narrow
    style: str = ""


class CommandOutput:
    """Prints the output of a command."""

    def __init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            # A character that the terminal cannot encode becomes a question mark.
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="replace")
        self.is_terminal = sys.stdout.isatty()
        self.is_watched = self.is_terminal and sys.stderr.isatty()
        self._color: bool | None = None
        self.is_reporting_settings = True
        self._warnings: set[str] = set()

    @property
    def color(self) -> bool:
        """Whether output is coloured; decided at the first use of a style."""
        if self._color is None:
            self._color = self._decide_color()
        return self._color

    @property
    def columns(self) -> int | None:
        """The width of the terminal in cells; None if stdout is not a terminal."""
        return terminal_columns() if self.is_terminal else None

    def text(self, text: str = "", style: str = "") -> None:
        """Print text."""
        _print(self.paint(clean(text), style))

    def stream(self, text: str) -> None:
        """Print a part of a text without a newline, and flush."""
        _print(clean(text), end="", flush=True)

    def styled(self, *pieces: tuple[str, str]) -> None:
        """Print one line of (text, style) pieces."""
        _print("".join(self.paint(clean(text), style) for text, style in pieces))

    def hint(self, text: str, style: str = "") -> None:
        """Print a message of the program with its commands as the user types them."""
        self.text(with_command_name(text), style)

    def note(self, text: str) -> None:
        """Print a message on stderr, with commands as in a hint; its lines break between words."""
        text = with_command_name(text)
        self.quote(wrap(text, terminal_columns()) if sys.stderr.isatty() else text)

    def quote(self, text: str, style: str = "") -> None:
        """Print on stderr a text that is not the program's own, unchanged."""
        style = style if sys.stderr.isatty() else ""
        print(self.paint(clean(text), style), file=sys.stderr)

    def warn_setting(self, text: str) -> None:
        """Print an invalid output setting on stderr, once."""
        if self.is_reporting_settings and text not in self._warnings:
            self._warnings.add(text)
            self.note(text)

    def prompt(self, text: str) -> None:
        """Print a question on stderr without a newline."""
        self.flush()
        print(clean(text), end="", file=sys.stderr, flush=True)

    def progress(self, text: str) -> None:
        """Show a progress line that the next one replaces; an empty one removes it."""
        if self.is_watched:
            self.flush()
            print(f"\r\x1b[K{clean(text)}", end="", file=sys.stderr, flush=True)

    def error(self, text: str) -> None:
        """Print an error with the program name."""
        self.flush()
        self.note(f"hermes: {text}")

    def json(self, value: object) -> None:
        """Print *value* as one JSON document."""
        _print(to_json(value, indent=2))

    def json_line(self, value: object) -> None:
        """Print *value* as JSON on one line."""
        _print(to_json(value))

    def json_stream(self, head: Mapping[str, object], key: str, items: Iterable[object]) -> None:
        """Print *head* as a JSON object with *items* under *key*, streamed."""
        _print(to_json(head)[:-1] + (", " if head else "") + f"{to_json(key)}: [")
        separator = ""
        for item in items:
            _print(separator + to_json(item), end="")
            separator = ",\n"
        _print("\n]}")

    def raw(self, data: bytes) -> None:
        """Write bytes: unchanged into a pipe, without control characters on a terminal."""
        if self.is_terminal:
            _print(clean(data.decode("utf-8", "replace")), end="")
            return
        with _output_errors():
            sys.stdout.flush()
            sys.stdout.buffer.write(data)

    def table(self, columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> None:
        """Print rows under their titles, one line each."""
        cells = [[one_line(cell) for cell in row] for row in rows]
        shown, widths = _layout(columns, cells, self.columns)
        titles = [column.title for column in columns]
        _print(self._row(columns, titles, shown, widths, style="bold"))
        for row in cells:
            _print(self._row(columns, row, shown, widths))

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Print names and values, aligned."""
        lines = [(one_line(name), one_line(value)) for name, value in pairs]
        indent = max((width(name) for name, _ in lines), default=0)
        for name, value in lines:
            _print(self.paint(pad(name, indent), "dim") + COLUMN_GAP + value)

    def paint(self, text: str, style: str) -> str:
        """Return *text* in *style* if output is coloured; *text* must be clean.

        A style consists of the names above and of colours like #d8a24f, which are omitted on
        terminals that do not support them.
        """
        if not style or not self.color:
            return text
        results = (_STYLES.get(name) or _color_code(name) for name in style.split())
        codes = ";".join(code for code in results if code)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes else text

    def flush(self) -> None:
        """Flush stdout; a broken pipe or a full disk is detected here."""
        with _output_errors():
            sys.stdout.flush()

    def _decide_color(self) -> bool:
        """Decide by NO_COLOR, the setting, and whether stdout is a terminal."""
        if os.environ.get("NO_COLOR"):
            return False
        from hermes_cli import output_settings  # noqa: PLC0415 - `--help` has no styles

        chosen = output_settings.color_setting(self.warn_setting)
        if chosen == output_settings.AUTO:
            return self.is_terminal and os.environ.get("TERM") != "dumb"
        return chosen == "always"

    def _row(
        self,
        columns: Sequence[TableColumn],
        row: Sequence[str],
        shown: Sequence[int],
        widths: Sequence[int],
        style: str = "",
    ) -> str:
        pieces = []
        for index in shown:
            column = columns[index]
            text = fit(row[index], widths[index])
            if index != shown[-1] or column.right:
                text = pad(text, widths[index], right=column.right)
            pieces.append(self.paint(text, style or column.style))
        return COLUMN_GAP.join(pieces)


@contextlib.contextmanager
def _output_errors() -> Iterator[None]:
    """Turn write errors into OutputError, except a broken pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"Cannot write the output: {error.strerror or error}.") from error


def _print(text: str, end: str = "\n", *, flush: bool = False) -> None:
    with _output_errors():
        print(text, end=end, flush=flush)


def _layout(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], available: int | None
) -> tuple[list[int], list[int]]:
    """The visible columns and the width of each."""
    widths = [
        max([width(column.title), *(width(row[index]) for row in rows)])
        for index, column in enumerate(columns)
    ]
    shown = list(range(len(columns)))
    if available is None:
        return shown, widths
    for index in [index for index in reversed(shown) if columns[index].optional]:
        if _min_total_width(columns, widths, shown) <= available:
            break
        shown.remove(index)
    for index in shown:
        if columns[index].flexible:
            excess = (
                sum(widths[each] for each in shown) + len(COLUMN_GAP) * (len(shown) - 1) - available
            )
            widths[index] = max(
                widths[index] - max(excess, 0), min(columns[index].least, widths[index])
            )
    return shown, widths


def _min_total_width(
    columns: Sequence[TableColumn], widths: Sequence[int], shown: Sequence[int]
) -> int:
    """The minimum total width of columns."""
    least = (
        min(widths[index], columns[index].least) if columns[index].flexible else widths[index]
        for index in shown
    )
    return sum(least) + len(COLUMN_GAP) * (len(shown) - 1)


def _color_code(color: str) -> str:
    """The escape code of a colour like #d8a24f, as exact as the terminal supports."""
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    if os.environ.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return f"38;2;{red};{green};{blue}"
    if "256color" not in os.environ.get("TERM", ""):
        return ""
    # Colours from 16 on form a cube: six steps each of red, green and blue.
    steps = (max(0, round((part - 55) / 40)) for part in (red, green, blue))
    weights = (36, 6, 1)
    return f"38;5;{16 + sum(w * s for w, s in zip(weights, steps, strict=True))}"


def terminal_columns() -> int:
    """The width of the terminal: COLUMNS, the terminal size, or 80."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    for stream in (sys.stdout, sys.stderr):
        try:
            return os.get_terminal_size(stream.fileno()).columns or 80
        except (OSError, ValueError):  # not a terminal, or a stream without a file descriptor
            continue
    return 80


def to_json(value: object, indent: int | None = None) -> str:
    """ASCII JSON: safe on every terminal, and it preserves lone surrogates."""
    import json  # noqa: PLC0415 - most commands print text

    text = json.dumps(value, indent=indent, default=_encodable)
    return text.replace("\x7f", "\\u007f")


def _encodable(value: object) -> object:
    """Convert a value that JSON cannot encode."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def confirm(question: str, out: CommandOutput, *, is_confirmed: bool) -> bool:
    """Ask for confirmation; without a terminal, --yes is required."""
    if is_confirmed:
        return True
    if not (sys.stdin.isatty() and out.is_terminal):
        raise UsageError(f"{question} Not running interactively; pass --yes to confirm.")
    return ask(f"{question} [y/N] ", out).lower() in YES_ANSWERS


def ask(question: str, out: CommandOutput, at_end: str = "") -> str:
    """The answer to a question on the terminal; *at_end* after Ctrl+D."""
    out.flush()
    try:
        return input(question).strip()
    except EOFError:
        out.note("")  # ends the line of the question
        return at_end
