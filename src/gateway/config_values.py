"""Tolerant parsing of configuration values: an invalid value is replaced by the default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


def number(value: Any, default: int, *, minimum: int | None = None) -> int:
    """An integer, at least *minimum*."""
    if isinstance(value, bool) or value is None:
        return default
    try:
        parsed = int(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return parsed if minimum is None else max(parsed, minimum)


def fraction(value: Any, default: float) -> float:
    """A float."""
    try:
        return default if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return default


def flag(value: Any, *, default: bool) -> bool:
    """A boolean, also as a word such as `yes` or `off`."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if value is None or word not in TRUE_WORDS | FALSE_WORDS:
        return default
    return word in TRUE_WORDS


def text(value: Any, default: str = "") -> str:
    """A string; numbers are converted."""
    return default if value is None or isinstance(value, dict | list) else str(value)


def choice(value: Any, choices: tuple[str, ...], default: str) -> str:
    """One of *choices*."""
    return value if isinstance(value, str) and value in choices else default


def mapping(value: Any) -> JsonObject:
    """A dictionary; empty for any other value."""
    return dict(value) if isinstance(value, dict) else {}
