"""NO_COLOR: no colors at all; the toolkit itself would still write shades of gray."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from rich.style import Style
from textual.filter import LineFilter, Monochrome

if TYPE_CHECKING:
    from textual.app import App
    from textual.color import Color


class WithoutColors(LineFilter):
    """Keeps bold, dim, italic, underline and reverse."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without colors."""
        del background
        return [Segment(text, style and _plain(style), None) for text, style, _ in segments]


@lru_cache(1024)
def _plain(style: Style) -> Style:
    return style.without_color + Style.from_meta(style.meta)


def remove_colors(app: App[Any]) -> None:
    """Replace the filter of the toolkit."""
    filters = [item for item in app._filters if not isinstance(item, Monochrome)]  # noqa: SLF001 - no public API
    app._filters[:] = [*filters, WithoutColors()]  # noqa: SLF001 - as above
