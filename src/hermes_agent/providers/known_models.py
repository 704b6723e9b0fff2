"""What is known about models before anybody is asked: how much they read, what they cost.

The table is data with a date in it; `tools/make_known_models.py` makes it anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

TABLE: Final = Path(__file__).with_name("known_models.json")
DATE_SUFFIX: Final = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")
PRICES: Final = ("input", "cache_read", "cache_write", "output")
LOOPBACK: Final = ("localhost", "::1")


class KnownModel(NamedTuple):
    """A model; prices are dollars for a million tokens, None where there is none."""

    window: int
    input: float | None
    cache_read: float | None
    cache_write: float | None
    output: float | None
    version: str  # of the table


def find_known_model(base_url: str, model: str) -> KnownModel | None:
    """What the table says about *model* at an address; None when it is not in it."""
    table = json.loads(TABLE.read_bytes())
    rows = table["hosts"].get(host_of(base_url), [])
    row = _find_row(rows, model) or _find_row(rows, DATE_SUFFIX.sub("", model))
    if row is None:
        return None
    prices = dict(zip(PRICES, row[3], strict=True))
    return KnownModel(window=row[2], version=f"{table['source']}, {table['date']}", **prices)


def _find_row(rows: list[list[Any]], model: str) -> list[Any] | None:
    """The row that has the name, else the one with the longest beginning of it."""
    for row in rows:
        if model in row[0]:
            return row
    fitting = [
        (len(beginning), row) for row in rows for beginning in row[1] if model.startswith(beginning)
    ]
    return max(fitting, key=lambda item: item[0])[1] if fitting else None


def host_of(base_url: str) -> str:
    """The host of an address."""
    return urlsplit(base_url).hostname or ""


def is_on_this_machine(base_url: str) -> bool:
    """Whether an address is one of this machine."""
    host = host_of(base_url)
    return host in LOOPBACK or host.startswith("127.")
