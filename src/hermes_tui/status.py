"""The status bar: model, folder, title, context usage, tokens and cost."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.widgets import Static

from hermes_core.human_format import duration
from hermes_core.terminal_text import fit, one_line

if TYPE_CHECKING:
    from textual.timer import Timer

    from tui_gateway.protocol import SessionInfo

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TITLE_COLUMNS: Final = 30
MODEL_COLUMNS: Final = 30
BAR_CELLS: Final = 8
WARNING_SHARE: Final = 0.6
MODE_STYLES: Final = {"plan": "$accent", "full": "bold $error"}


class StatusDetail(Enum):
    """How much is shown: the first that fits into the line."""

    ALL = "all"
    WITHOUT_TOKENS = "without tokens"
    WITHOUT_TITLE = "without the title"
    LEAST = "model and context"


class StatusBar(Static):
    """The status of the conversation in one line."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._info: SessionInfo | None = None
        self._started_at: float | None = None
        self._note = ""
        self._note_until: float | None = None
        self._images = 0
        self._input_mode = ""
        self._clock: Timer | None = None

    def set_info(self, info: SessionInfo) -> None:
        """Set the metadata of the conversation."""
        self._info = info
        self._draw()

    def start(self) -> None:
        """Start the spinner."""
        self._started_at, self._note, self._note_until = time.monotonic(), "", None
        if self._clock is None:
            self._clock = self.set_interval(0.1, self._draw)
        self._clock.resume()
        self._draw()

    def stop(self) -> None:
        """Stop the spinner."""
        self._started_at = None
        if self._clock is not None:
            self._clock.pause()
        self._draw()

    def set_note(self, text: str, seconds: float = 0.0) -> None:
        """Show a note next to the spinner, such as a retry in some seconds."""
        self._note = one_line(text)
        self._note_until = time.monotonic() + seconds if seconds else None
        self._draw()

    def clear_note(self) -> None:
        """Remove the note: the model answers."""
        if self._note:
            self._note, self._note_until = "", None
            self._draw()

    def _activity(self, seconds: float) -> str:
        """What runs: for how long, or how many seconds are left until the next attempt."""
        if self._note_until is None:
            return f"{self._note or 'working'} {seconds:.0f} s"
        left = self._note_until - time.monotonic()
        return f"{self._note} {f'In {duration(left)}.' if left > 0 else 'Trying again.'}"

    def attach(self, count: int) -> None:
        """Set the number of images attached to the next message."""
        self._images = count
        self._draw()

    def set_input_mode(self, name: str) -> None:
        """Set the mode of vim keys."""
        self._input_mode = name
        self._draw()

    def _draw(self) -> None:
        columns = self.content_size.width or self.app.size.width
        contents = (Content.assemble(*self._parts(detail)) for detail in StatusDetail)
        fitting = next((item for item in contents if item.cell_length <= columns), None)
        content = fitting or Content.assemble(*self._parts(StatusDetail.LEAST))
        # The bar is always one line high; laying out the screen again would be wasted.
        self.update(content, layout=False)

    def on_resize(self) -> None:
        """Leave out what does not fit."""
        self._draw()

    def _parts(self, detail: StatusDetail) -> list[str | tuple[str, str]]:
        parts: list[str | tuple[str, str]] = []
        if self._input_mode:
            parts.append((f"{self._input_mode} · ", "bold"))
        if self._started_at is not None:
            seconds = time.monotonic() - self._started_at
            frame = FRAMES[int(seconds * 10) % len(FRAMES)]
            parts.append((f"{frame} {self._activity(seconds)} · ", "$warning"))
        if self._images:
            word = "image" if self._images == 1 else "images"
            parts.append((f"{self._images} {word} attached · ", "$accent"))
        if self._info is not None:
            parts += _info_parts(self._info, detail)
        parts.append("F1 keys")
        return parts


def _info_parts(info: SessionInfo, detail: StatusDetail) -> list[str | tuple[str, str]]:
    usage = info.usage
    cost = f" · ${usage.cost_usd:.2f}" if usage.cost_usd else ""
    mode = f"{info.mode} (no sandbox)" if info.sandbox == "none" else info.mode
    labels = [fit(one_line(info.model), MODEL_COLUMNS)]
    if detail is not StatusDetail.LEAST:
        labels.append(short_folder(info.cwd))
    if detail in {StatusDetail.ALL, StatusDetail.WITHOUT_TOKENS}:
        labels.append(fit(one_line(info.title or info.stored_session_id), TITLE_COLUMNS))
    tokens = f"{_tokens(usage.input + usage.output)} tokens{cost} · "
    return [
        (mode, MODE_STYLES.get(info.mode, "")),
        " · ",
        " · ".join(labels) + " · ",
        *_filled(info.context_tokens, info.window),
        tokens if detail is StatusDetail.ALL else "",
    ]


def _filled(tokens: int, window: int) -> list[str | tuple[str, str]]:
    """The usage of the context window as a bar."""
    if not tokens or not window:
        return []
    share = min(tokens / window, 1.0)
    cells = round(share * BAR_CELLS)
    style = "$warning" if share >= WARNING_SHARE else "$success"
    return [
        ("█" * cells, style),
        ("░" * (BAR_CELLS - cells), "dim"),
        f" {share:.0%} of {_tokens(window)} · ",
    ]


def _tokens(count: int) -> str:
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:.0f}k" if count >= 100_000 else f"{count / 1000:.1f}k"


def short_folder(folder: str) -> str:
    """A folder with `~` for the home folder."""
    home = str(Path.home())
    if folder == home or folder.startswith(f"{home}/"):
        return f"~{folder.removeprefix(home)}"
    return folder
