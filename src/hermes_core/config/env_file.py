"""The file of secrets: `KEY=value` lines that a shell and other programs can read too.

Lines that are not about the key being changed stay as they are. Values are quoted
when they contain more than letters, digits and a few harmless signs.
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
_HARMLESS = re.compile(r"[A-Za-z0-9_./:@%+,=-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r'\\([\\"nr])')
_MEANINGS = {"\\": "\\", '"': '"', "n": "\n", "r": "\r"}


class EnvFile:
    """One such file; it need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def values(self) -> dict[str, str]:
        """All keys with their values; of a repeated key the last line counts."""
        pairs = (_pair(line) for line in self._lines())
        return dict(pair for pair in pairs if pair is not None)

    def set(self, key: str, value: str) -> None:
        """Give *key* a value, in the line where it stands or in a new one."""
        with folder_locked(self.path.parent):
            lines = self._lines()
            new = f"{key}={_quoted(value)}"
            places = [index for index, line in enumerate(lines) if _key(line) == key]
            if places:
                lines[places[-1]] = new
            else:
                lines.append(new)
            self._write(lines)

    def unset(self, key: str) -> bool:
        """Remove every line about *key*; whether there was one."""
        with folder_locked(self.path.parent):
            lines = self._lines()
            kept = [line for line in lines if _key(line) != key]
            if len(kept) == len(lines):
                return False
            self._write(kept)
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
    pair = _pair(line)
    return pair[0] if pair else None


def _pair(line: str) -> tuple[str, str] | None:
    match = _LINE.fullmatch(line)
    return (match[1], _unquoted(match[2])) if match else None


def _quoted(value: str) -> str:
    if "\0" in value or has_lone_surrogate(value):
        raise ConfigError("A secret must be text; this one has bytes that are not.")
    if _HARMLESS.fullmatch(value):
        return value
    if not set(value) & set("'\\\n\r"):
        return f"'{value}'"
    return '"' + "".join(_ESCAPES.get(character, character) for character in value) + '"'


def _unquoted(text: str) -> str:
    quote = text[:1]
    end = _closing(text, quote) if quote in {"'", '"'} else -1
    if end < 0:
        return re.split(r"\s#", text, maxsplit=1)[0].rstrip()
    inner = text[1:end]
    return _ESCAPED.sub(lambda m: _MEANINGS[m[1]], inner) if quote == '"' else inner


def _closing(text: str, quote: str) -> int:
    """Where the opening quote is closed, or -1; in double quotes a backslash hides a quote."""
    index = 1
    while index < len(text):
        if text[index] == quote:
            return index
        index += 2 if quote == '"' and text[index] == "\\" else 1
    return -1
