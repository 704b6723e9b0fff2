"""The pieces every picture is made of. Text becomes markup here and nowhere else."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from hermes_achievements import catalogue
from hermes_core.errors import HermesError

ELLIPSIS: Final = "…"
# Thousandths of the font's size, for the characters from space to tilde.
REGULAR: Final = (
    248, 258, 320, 616, 562, 732, 622, 175, 342, 348, 431, 567, 197, 276, 264, 413, 562, 562, 562,
    562, 562, 562, 562, 562, 562, 562, 242, 211, 508, 549, 523, 473, 898, 652, 623, 651, 656, 568,
    553, 681, 713, 272, 552, 627, 539, 873, 713, 688, 631, 688, 616, 594, 597, 648, 637, 887, 627,
    601, 599, 265, 411, 265, 418, 451, 309, 544, 562, 523, 564, 530, 348, 562, 551, 243, 239, 507,
    243, 877, 552, 570, 562, 568, 339, 516, 327, 551, 484, 751, 496, 473, 496, 338, 244, 338, 680,
)  # fmt: skip
BOLDER: Final = 1.03  # bold letters are a little wider
NARROW: Final = 600  # letters that are not in the table
WIDE: Final = 1000  # Chinese, Japanese, Korean, emoji
FIRST_WIDE: Final = "\u1100"


def width(text: str, size: float, *, is_bold: bool = False) -> float:
    """How many pixels *text* takes in letters of *size*."""
    units = sum(map(_units, text))
    return units * size / 1000 * (BOLDER if is_bold else 1)


def _units(character: str) -> int:
    if " " <= character <= "~":
        return REGULAR[ord(character) - 32]
    return WIDE if character >= FIRST_WIDE else NARROW


def cut(text: str, size: float, pixels: float, *, is_bold: bool = False) -> str:
    """*text* on one line of *pixels*, ending in … when something was cut off."""
    text = " ".join(text.split())
    if width(text, size, is_bold=is_bold) <= pixels:
        return text
    while text and width(text + ELLIPSIS, size, is_bold=is_bold) > pixels:
        text = text[:-1]
    return text.rstrip() + ELLIPSIS


def folded(text: str, size: float, pixels: float, most: int, *, is_bold: bool = False) -> list[str]:
    """*text* in at most *most* lines; what does not fit is cut off at the end."""
    lines: list[str] = []
    left = text.split()
    while left and len(lines) < most - 1:
        line = left.pop(0)
        while left and width(f"{line} {left[0]}", size, is_bold=is_bold) <= pixels:
            line = f"{line} {left.pop(0)}"
        lines.append(cut(line, size, pixels, is_bold=is_bold))
    if left:
        lines.append(cut(" ".join(left), size, pixels, is_bold=is_bold))
    return lines


FONT_FOLDER: Final = Path(__file__).with_name("fonts")
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


def png(svg: str, *, width: int | None = None) -> bytes:
    """*svg* as the bytes of a PNG; letters that Roboto lacks come from the system's fonts."""
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
        raise HermesError(f"the picture could not be drawn: {error}") from error
    return bytes(result)


def _fonts() -> list[str]:
    return [str(FONT_FOLDER / f"Roboto-{weight}.ttf") for weight in ("Regular", "Medium", "Bold")]
