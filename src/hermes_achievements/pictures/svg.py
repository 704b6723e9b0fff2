"""The pieces every picture is made of. Text becomes markup here and nowhere else."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Final

from hermes_achievements import catalogue

FONT: Final = "Roboto, 'Segoe UI', 'Helvetica Neue', Arial, 'Noto Sans', sans-serif"
GROUND: Final = "#12141c"
PANEL: Final = "#1b1e29"
EDGE: Final = "#2b3040"
INK: Final = "#eef0f6"
SOFT: Final = "#a3aabd"
FAINT: Final = "#838ba1"
FALLBACK_ICON: Final = "award"
# What XML has no place for, not even escaped.
UNSAYABLE: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """*text* as markup: shown, never obeyed."""
    return escape(UNSAYABLE.sub("\ufffd", text), quote=True)


def document(width: float, height: float, title: str, body: list[str]) -> str:
    """A whole picture that needs nothing else."""
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" font-family="{FONT}">\n'
        f"<title>{escaped(title)}</title>\n{lines}\n</svg>\n"
    )


def box(
    x: float, y: float, width: float, height: float, fill: str, *, radius: float = 0, more: str = ""
) -> str:
    """A rectangle, with round corners if wanted."""
    round_corners = f' rx="{radius:g}"' if radius else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{round_corners} '
        f'fill="{fill}"{more}/>'
    )


def text(
    x: float,
    y: float,
    words: str,
    size: float,
    fill: str = INK,
    *,
    weight: int = 400,
    anchor: str = "start",
    more: str = "",
) -> str:
    """One line of text; *y* is the line it stands on."""
    heavy = f' font-weight="{weight}"' if weight != 400 else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{heavy}{placed}{more}>'
        f"{escaped(words)}</text>"
    )


def icon(name: str, x: float, y: float, size: float, stroke: str) -> str:
    """An icon of the catalogue with its corner at *x* and *y*."""
    drawn = drawings()
    shape = drawn.get(name) or drawn[FALLBACK_ICON]
    return (
        f'<g transform="translate({x:g} {y:g}) scale({size / 24:g})" fill="none" '
        f'stroke="{stroke}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">'
        f"{shape}</g>"
    )


@cache
def drawings() -> dict[str, str]:
    """The icons, read once."""
    return catalogue.icons()
