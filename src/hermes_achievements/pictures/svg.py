"""SVG elements, medals, text layout and PNG conversion; the only place that escapes text."""

from __future__ import annotations

import math
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_achievements import catalogue
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_achievements.catalogue import Catalogue, Tier


ELLIPSIS: Final = "…"
# Widths of the characters from space to tilde, in thousandths of the font size.
CHARACTER_WIDTHS: Final = (
    248, 258, 320, 616, 562, 732, 622, 175, 342, 348, 431, 567, 197, 276, 264, 413, 562, 562, 562,
    562, 562, 562, 562, 562, 562, 562, 242, 211, 508, 549, 523, 473, 898, 652, 623, 651, 656, 568,
    553, 681, 713, 272, 552, 627, 539, 873, 713, 688, 631, 688, 616, 594, 597, 648, 637, 887, 627,
    601, 599, 265, 411, 265, 418, 451, 309, 544, 562, 523, 564, 530, 348, 562, 551, 243, 239, 507,
    243, 877, 552, 570, 562, 568, 339, 516, 327, 551, 484, 751, 496, 473, 496, 338, 244, 338, 680,
)  # fmt: skip
BOLD_WIDTH_FACTOR: Final = 1.03
DEFAULT_CHARACTER_WIDTH: Final = 600  # characters outside the table
WIDE_CHARACTER_WIDTH: Final = 1000  # Chinese, Japanese, Korean, emoji
FIRST_WIDE_CHARACTER: Final = "\u1100"


def text_width(text: str, size: float, *, is_bold: bool = False) -> float:
    """The width of *text* in pixels at a font size."""
    units = sum(map(_character_width, text))
    return units * size / 1000 * (BOLD_WIDTH_FACTOR if is_bold else 1)


def _character_width(character: str) -> int:
    if " " <= character <= "~":
        return CHARACTER_WIDTHS[ord(character) - 32]
    return WIDE_CHARACTER_WIDTH if character >= FIRST_WIDE_CHARACTER else DEFAULT_CHARACTER_WIDTH


def truncate_text(text: str, size: float, pixels: float, *, is_bold: bool = False) -> str:
    """*text* on one line of *pixels*, with an ellipsis if it is truncated."""
    text = " ".join(text.split())
    if text_width(text, size, is_bold=is_bold) <= pixels:
        return text
    while text and text_width(text + ELLIPSIS, size, is_bold=is_bold) > pixels:
        text = text[:-1]
    return text.rstrip() + ELLIPSIS


def wrap_text(
    text: str, size: float, pixels: float, max_lines: int, *, is_bold: bool = False
) -> list[str]:
    """*text* in at most *max_lines* lines; the last line is truncated."""
    lines: list[str] = []
    words = text.split()
    while words and len(lines) < max_lines - 1:
        line = words.pop(0)
        while words and text_width(f"{line} {words[0]}", size, is_bold=is_bold) <= pixels:
            line = f"{line} {words.pop(0)}"
        lines.append(truncate_text(line, size, pixels, is_bold=is_bold))
    if words:
        lines.append(truncate_text(" ".join(words), size, pixels, is_bold=is_bold))
    return lines


FONT_FOLDER: Final = Path(__file__).with_name("fonts")
FONT_FAMILY: Final = "Roboto, 'Segoe UI', 'Helvetica Neue', Arial, 'Noto Sans', sans-serif"
BACKGROUND_COLOUR: Final = "#12141c"
PANEL_COLOUR: Final = "#1b1e29"
EDGE_COLOUR: Final = "#2b3040"
TEXT_COLOUR: Final = "#eef0f6"
SOFT_COLOUR: Final = "#a3aabd"
FAINT_COLOUR: Final = "#838ba1"
FALLBACK_ICON: Final = "award"
# Characters that XML does not allow, not even escaped.
INVALID_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape_markup(text: str) -> str:
    """Escape *text* for XML and HTML."""
    return escape(INVALID_XML.sub("\ufffd", text), quote=True)


def document(width: float, height: float, title: str, body: list[str]) -> str:
    """A self-contained SVG document."""
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" font-family="{FONT_FAMILY}">\n'
        f"<title>{escape_markup(title)}</title>\n{lines}\n</svg>\n"
    )


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    *,
    radius: float = 0,
    attributes: str = "",
) -> str:
    """A rectangle, with optional round corners."""
    round_corners = f' rx="{radius:g}"' if radius else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{round_corners} '
        f'fill="{fill}"{attributes}/>'
    )


def text(
    x: float,
    y: float,
    words: str,
    size: float,
    fill: str = TEXT_COLOUR,
    *,
    weight: int = 400,
    anchor: str = "start",
    attributes: str = "",
) -> str:
    """A line of text; *y* is its baseline."""
    heavy = f' font-weight="{weight}"' if weight != 400 else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{heavy}{placed}{attributes}>'
        f"{escape_markup(words)}</text>"
    )


def icon(name: str, x: float, y: float, size: float, stroke: str) -> str:
    """An icon of the catalogue with its corner at *x* and *y*."""
    shapes = drawings()
    shape = shapes.get(name) or shapes[FALLBACK_ICON]
    return (
        f'<g transform="translate({x:g} {y:g}) scale({size / 24:g})" fill="none" '
        f'stroke="{stroke}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">'
        f"{shape}</g>"
    )


@cache
def drawings() -> dict[str, str]:
    """The icons of the catalogue, cached."""
    return catalogue.icons()


def png(svg: str, *, width: int | None = None) -> bytes:
    """*svg* as the bytes of a PNG; system fonts supply characters missing in Roboto."""
    import resvg_py  # noqa: PLC0415 - large, and pictures are rarely wanted

    try:
        result = resvg_py.svg_to_bytes(
            svg_string=svg,
            width=width,
            font_files=_fonts(),
            font_family="Roboto",
            sans_serif_family="Roboto",
        )
    except ValueError as error:
        raise HermesError(f"the image could not be rendered: {error}") from error
    return bytes(result)


def _fonts() -> list[str]:
    return [str(FONT_FOLDER / f"Roboto-{weight}.ttf") for weight in ("Regular", "Medium", "Bold")]


def definitions(catalogue: Catalogue) -> str:
    """The gradients of the tiers; needed once per picture."""
    return "<defs>" + "".join(map(_gradient, catalogue.tiers)) + "</defs>"


def _gradient(tier: Tier) -> str:
    return (
        f'<linearGradient id="medal-{tier.id}" x1="0" y1="0" x2="0" y2="1">'
        f'<stop offset="0" stop-color="{tier.glow}" stop-opacity="0.34"/>'
        f'<stop offset="1" stop-color="{tier.glow}" stop-opacity="0.10"/></linearGradient>'
    )


def medal(name: str, tier: Tier | None, x: float, y: float, radius: float) -> str:
    """A medal centred at *x*, *y*; grey without a tier."""
    outer, inner = _hexagon(x, y, radius), _hexagon(x, y, radius * 0.86)
    edge = tier.glow if tier else EDGE_COLOUR
    fill = f"url(#medal-{tier.id})" if tier else BACKGROUND_COLOUR
    size = radius * 0.92
    ring = (
        f'<polygon points="{outer}" fill="{BACKGROUND_COLOUR}" stroke="{edge}" '
        f'stroke-width="{radius / 16:g}" stroke-linejoin="round"/>'
    )
    face = f'<polygon points="{inner}" fill="{fill}"/>'
    shapes = icon(name, x - size / 2, y - size / 2, size, tier.glow if tier else FAINT_COLOUR)
    return ring + face + shapes


def _hexagon(x: float, y: float, radius: float) -> str:
    corners: Iterable[tuple[float, float]] = (
        (x + radius * math.sin(math.pi / 3 * number), y - radius * math.cos(math.pi / 3 * number))
        for number in range(6)
    )
    return " ".join(f"{left:.1f},{top:.1f}" for left, top in corners)
