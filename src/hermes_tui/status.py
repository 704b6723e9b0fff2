"""The bottom line: who answers, where, how full the window is, what it has cost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textual.content import Content
from textual.widgets import Static

from hermes_core.terminal_text import fit, one_line

if TYPE_CHECKING:
    from textual.timer import Timer

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TITLE_COLUMNS: Final = 30
MODEL_COLUMNS: Final = 30
CELLS: Final = 8
NEARLY_FULL: Final = 0.6


class StatusBar(Static):
    """One line about the conversation."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._info: dict[str, Any] = {}
        self._since: float | None = None
        self._remark = ""
        self._pictures = 0
        self._clock: Timer | None = None

    def tell(self, info: dict[str, Any]) -> None:
        """What is known about the conversation."""
        self._info = info
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

    def attach(self, count: int) -> None:
        """So many pictures go along with what is said next."""
        self._pictures = count
        self._draw()

    def _draw(self) -> None:
        pieces: list[str | tuple[str, str]] = []
        if self._since is not None:
            seconds = time.monotonic() - self._since
            frame = FRAMES[int(seconds * 10) % len(FRAMES)]
            pieces.append((f"{frame} {self._remark or 'working'} {seconds:.0f} s · ", "$warning"))
        if self._pictures:
            word = "picture" if self._pictures == 1 else "pictures"
            pieces.append((f"{self._pictures} {word} attached · ", "$accent"))
        if self._info:
            pieces += self._facts()
        pieces.append("F1 keys")
        self.update(Content.assemble(*pieces))

    def _facts(self) -> list[str | tuple[str, str]]:
        info = self._info
        name = one_line(str(info["title"] or info["stored_session_id"]))
        usage = info["usage"]
        cost = f" · ${usage['cost_usd']:.2f}" if usage["cost_usd"] else ""
        words = (
            fit(one_line(str(info["model"])), MODEL_COLUMNS),
            _short(str(info["cwd"])),
            fit(name, TITLE_COLUMNS),
        )
        return [
            " · ".join(words) + " · ",
            *_filled(info["context_tokens"], info["window"]),
            f"{_tokens(usage['input'] + usage['output'])} tokens{cost} · ",
        ]


def _filled(tokens: int, window: int) -> list[str | tuple[str, str]]:
    """How full the window is, as a bar."""
    if not tokens or not window:
        return []
    share = min(tokens / window, 1.0)
    cells = round(share * CELLS)
    style = "$warning" if share >= NEARLY_FULL else "$success"
    return [
        ("█" * cells, style),
        ("░" * (CELLS - cells), "dim"),
        f" {share:.0%} of {_tokens(window)} · ",
    ]


def _tokens(count: int) -> str:
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:.0f}k" if count >= 100_000 else f"{count / 1000:.1f}k"


def _short(folder: str) -> str:
    """A folder as one speaks of it: the home folder is `~`."""
    home = str(Path.home())
    if folder == home or folder.startswith(f"{home}/"):
        return f"~{folder.removeprefix(home)}"
    return folder
