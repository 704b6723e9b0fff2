"""What was sent before, also on other days: the file that `hermes chat` keeps it in, too.

Each text is a comment with its time and then its lines, every one with a `+` before it.
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
    """Texts, the latest last."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._texts = _read(path)[-MAX_ENTRIES:] if path is not None else []
        self._back = 0

    def add(self, text: str) -> None:
        """Something was sent."""
        self._back = 0
        if self._texts and self._texts[-1] == text:
            return
        self._texts.append(text)
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
        """Further back, or nearer; empty at the near end."""
        self._back = max(0, min(self._back + steps, len(self._texts)))
        return self.current

    @property
    def current(self) -> str:
        """What stands there when it was recalled and not changed."""
        return self._texts[-self._back] if self._back else ""

    def forget_place(self) -> None:
        """The next look back begins at the end."""
        self._back = 0


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
