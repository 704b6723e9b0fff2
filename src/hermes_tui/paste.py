"""What is pasted: long texts are shown as one word, pictures go along with what is said."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

SHORT_LINES: Final = 8
SHORT_CHARACTERS: Final = 1500
PICTURES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
WORD: Final = re.compile(r"\[pasted #(\d+): [\d,]+ (?:lines|characters)\]")


class Pasted:
    """Long texts behind the words that stand for them."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def collapse(self, text: str) -> str:
        """What is put into the input for a pasted text: itself, or a word for it."""
        lines = text.count("\n") + 1
        if lines <= SHORT_LINES and len(text) <= SHORT_CHARACTERS:
            return text
        self._texts.append(text)
        size = f"{lines:,} lines" if lines > SHORT_LINES else f"{len(text):,} characters"
        return f"[pasted #{len(self._texts)}: {size}]"

    def expand(self, text: str) -> str:
        """What was meant: every word replaced by its text."""

        def whole(found: re.Match[str]) -> str:
            number = int(found[1])
            return self._texts[number - 1] if 0 < number <= len(self._texts) else found[0]

        return WORD.sub(whole, text)


def picture_in(text: str) -> Path | None:
    """The picture whose path was pasted or dropped, if that is what it is."""
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
        is_picture = path.suffix.lower() in PICTURES and path.is_file()
    except OSError:
        return None
    return path if is_picture else None
