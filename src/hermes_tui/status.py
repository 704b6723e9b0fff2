"""The bottom line: who answers, where, which conversation, what it has cost, whether it works."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textual.content import Content
from textual.widgets import Static

from hermes_cli.display import fit, one_line

if TYPE_CHECKING:
    from textual.timer import Timer

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TITLE_COLUMNS: Final = 40


class Status(Static):
    """One line about the conversation."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._facts: tuple[str, ...] = ()
        self._since: float | None = None
        self._remark = ""
        self._clock: Timer | None = None

    def tell(self, info: dict[str, Any], row: dict[str, Any]) -> None:
        """What is known about the conversation."""
        tokens = (row.get("input_tokens") or 0) + (row.get("output_tokens") or 0)
        name = one_line(str(info.get("title") or info["stored_session_id"]))
        self._facts = (
            str(info["model"]),
            _short(str(info["cwd"])),
            fit(name, TITLE_COLUMNS),
            f"{tokens:,} tokens",
        )
        self._draw()

    def start(self) -> None:
        """A turn runs."""
        self._since, self._remark = time.monotonic(), ""
        if self._clock is None:
            self._clock = self.set_interval(0.1, self._draw)
        self._clock.resume()
        self._draw()

    def stop(self) -> None:
        """It has ended."""
        self._since = None
        if self._clock is not None:
            self._clock.pause()
        self._draw()

    def remark(self, text: str) -> None:
        """What goes on beside the answer, such as another try."""
        self._remark = one_line(text)
        self._draw()

    def _draw(self) -> None:
        pieces: list[str | tuple[str, str]] = []
        if self._since is not None:
            seconds = time.monotonic() - self._since
            frame = FRAMES[int(seconds * 10) % len(FRAMES)]
            pieces.append((f"{frame} {self._remark or 'working'} {seconds:.0f} s · ", "$warning"))
        pieces.append(" · ".join((*self._facts, "F1 keys")))
        self.update(Content.assemble(*pieces))


def _short(folder: str) -> str:
    """A folder as one speaks of it: the home folder is `~`."""
    home = str(Path.home())
    if folder == home or folder.startswith(f"{home}/"):
        return f"~{folder.removeprefix(home)}"
    return folder
