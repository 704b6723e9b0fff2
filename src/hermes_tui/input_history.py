"""The input history, in the file that `hermes chat` uses too.

An entry is a comment with its time, then its lines with a `+` prefix.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

MAX_ENTRIES: Final = 1000


class InputHistory:
    """Sent texts, the latest last."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.texts = _read(path)[-MAX_ENTRIES:] if path is not None else []
        self._offset = 0

    def add(self, text: str) -> None:
        """Add a sent text."""
        self._offset = 0
        if self.texts and self.texts[-1] == text:
            return
        self.texts.append(text)
        if self._path is None:
            return
        lines = "".join(f"+{line}\n" for line in text.split("\n"))
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as file:
                file.write(f"\n# {time.strftime('%Y-%m-%d %H:%M:%S')}\n{lines}")
        except OSError as error:
            log.warning("input history cannot be written: %s", error)

    def move(self, steps: int) -> str:
        """Move back (positive) or forward; empty after the latest entry."""
        self._offset = max(0, min(self._offset + steps, len(self.texts)))
        return self.current

    @property
    def current(self) -> str:
        """The recalled entry, or an empty text."""
        return self.texts[-self._offset] if self._offset else ""

    def reset(self) -> None:
        """Start again at the latest entry."""
        self._offset = 0


def _read(path: Path) -> list[str]:
    try:
        content = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("input history cannot be read: %s", error)
        return []
    texts: list[list[str]] = []
    for line in content.splitlines():
        if line.startswith("#"):
            texts.append([])
        elif line.startswith("+") and texts:
            texts[-1].append(line[1:])
    return ["\n".join(lines) for lines in texts if lines]
