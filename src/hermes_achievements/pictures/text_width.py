"""How wide words are in Roboto, to cut and fold them; other fonts come close."""

from __future__ import annotations

from typing import Final

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
