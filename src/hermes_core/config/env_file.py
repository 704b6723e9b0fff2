"""The file of secrets: `KEY=value` lines that shells and other programs can read too.

Lines of other keys are not changed. Values are quoted if they contain more than letters,
digits and a few safe characters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.errors import ConfigError
from hermes_core.messages import has_lone_surrogate

if TYPE_CHECKING:
    from pathlib import Path

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*", re.DOTALL)
_UNQUOTED = re.compile(r"[A-Za-z0-9_./:@%+,=-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r'\\([\\"nr])')
_UNESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r"}


class EnvFile:
    """A file of secrets, which may be missing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def values(self) -> dict[str, str]:
        """All keys with their values; the last line of a repeated key is used."""
        pairs = (_parse_line(line) for line in self._lines())
        return dict(pair for pair in pairs if pair is not None)

    def set(self, key: str, value: str) -> None:
        """Set *key* in its existing line or in a new one."""
        with folder_locked(self.path.parent):
            lines = self._lines()
            new = f"{key}={_quote(value)}"
            positions = [index for index, line in enumerate(lines) if _key(line) == key]
            if positions:
                lines[positions[-1]] = new
            else:
                lines.append(new)
            self._write(lines)

    def unset(self, key: str) -> bool:
        """Remove all lines of *key*; whether there were any."""
        with folder_locked(self.path.parent):
            lines = self._lines()
            remaining = [line for line in lines if _key(line) != key]
            if len(remaining) == len(lines):
                return False
            self._write(remaining)
            return True

    def _lines(self) -> list[str]:
        try:
            text = self.path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.path} is not UTF-8 text; save it as UTF-8.") from error
        return text.removesuffix("\n").split("\n") if text else []

    def _write(self, lines: list[str]) -> None:
        write_atomically(self.path, "".join(f"{line}\n" for line in lines))


def _key(line: str) -> str | None:
    pair = _parse_line(line)
    return pair[0] if pair else None


def _parse_line(line: str) -> tuple[str, str] | None:
    match = _LINE.fullmatch(line)
    return (match[1], _unquote(match[2])) if match else None


def _quote(value: str) -> str:
    if "\0" in value or has_lone_surrogate(value):
        raise ConfigError("A secret must be text; this one has bytes that are not.")
    if _UNQUOTED.fullmatch(value):
        return value
    if not set(value) & set("'\\\n\r"):
        return f"'{value}'"
    return '"' + "".join(_ESCAPES.get(character, character) for character in value) + '"'


def _unquote(text: str) -> str:
    quote = text[:1]
    end = _closing_quote(text, quote) if quote in {"'", '"'} else -1
    if end < 0:
        return re.split(r"\s#", text, maxsplit=1)[0].rstrip()
    inner = text[1:end]
    return _ESCAPED.sub(lambda m: _UNESCAPES[m[1]], inner) if quote == '"' else inner


def _closing_quote(text: str, quote: str) -> int:
    """Index of the closing quote, or -1; in double quotes a backslash escapes a quote."""
    index = 1
    while index < len(text):
        if text[index] == quote:
            return index
        index += 2 if quote == '"' and text[index] == "\\" else 1
    return -1
