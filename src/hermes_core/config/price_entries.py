"""Entries of the section `prices` of config.yaml: their values, and what is wrong with them."""

from __future__ import annotations

from typing import Final, NamedTuple

SECTION: Final = "prices"
MAX_PRICE: Final = 1_000_000.0  # dollars per million tokens
ALLOWED_PRICE: Final = f"must be a number from 0 to {MAX_PRICE:.0f}"
REQUIRED: Final = ("input", "output")


class OwnPrice(NamedTuple):
    """Dollars per million tokens; cached tokens default to the input price."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


def is_price(value: object) -> bool:
    """Whether a value can be used as a price."""
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MAX_PRICE
    )


def parse_price(fields: object) -> OwnPrice | None:
    """The price of an entry; None if it is invalid."""
    if not isinstance(fields, dict) or problem_of(fields):
        return None
    known = {name: fields.get(name) for name in OwnPrice._fields}
    return OwnPrice(**{name: float(value) for name, value in known.items() if value is not None})


def problem_of(fields: object) -> str:
    """Why an entry cannot be used; empty if it can."""
    if not isinstance(fields, dict):
        return "it must have the keys input and output"
    for name in OwnPrice._fields:
        if fields.get(name) is not None and not is_price(fields[name]):
            return f"{name} {ALLOWED_PRICE}"
    missing = [name for name in REQUIRED if fields.get(name) is None]
    return f"{missing[0]} is missing" if missing else ""


def unknown_keys(fields: object) -> list[str]:
    """The keys of an entry that set nothing."""
    return (
        [name for name in fields if name not in OwnPrice._fields]
        if isinstance(fields, dict)
        else []
    )
