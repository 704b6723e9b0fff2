"""Reading what people wrote into files: what cannot be used is replaced by the default."""

from __future__ import annotations

from typing import Any

YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off", ""})


def number(value: Any, default: int, *, least: int | None = None) -> int:
    """A whole number; garbage is the default, too little is the least."""
    if isinstance(value, bool) or value is None:
        return default
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return found if least is None else max(found, least)


def fraction(value: Any, default: float) -> float:
    """A number that may have a fraction."""
    try:
        return default if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return default


def flag(value: Any, *, default: bool) -> bool:
    """Yes or no, also as a word."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if value is None or word not in YES | NO:
        return default
    return word in YES


def text(value: Any, default: str = "") -> str:
    """A text; a number counts as one."""
    return default if value is None or isinstance(value, dict | list) else str(value)


def choice(value: Any, choices: tuple[str, ...], default: str) -> str:
    """One of some words."""
    return value if isinstance(value, str) and value in choices else default


def mapping(value: Any) -> dict[str, Any]:
    """An object; anything else is an empty one."""
    return dict(value) if isinstance(value, dict) else {}
