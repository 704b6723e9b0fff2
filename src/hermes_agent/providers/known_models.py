"""Context windows and prices of known models, from a dated table.

`tools/make_known_models.py` rebuilds the table.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, NamedTuple, TypedDict
from urllib.parse import urlsplit

TABLE_PATH: Final = Path(__file__).with_name("known_models.json")
DATE_SUFFIX: Final = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")
PRICE_FIELDS: Final = ("input", "cache_read", "cache_write", "output")
LOOPBACK_HOSTS: Final = ("localhost", "::1")


class ModelTable(TypedDict):
    """The file: for each host, rows of names, prefixes, window and prices."""

    source: str
    date: str
    hosts: dict[str, list[list[Any]]]


class KnownModel(NamedTuple):
    """A model; prices are dollars per million tokens, None where unknown."""

    window: int
    input: float | None
    cache_read: float | None
    cache_write: float | None
    output: float | None
    version: str  # of the table


def find_known_model(base_url: str, model: str) -> KnownModel | None:
    """Look up *model* of an endpoint in the table; None when it is not listed."""
    table: ModelTable = json.loads(TABLE_PATH.read_bytes())
    rows = table["hosts"].get(host_of(base_url), [])
    row = _find_row(rows, model) or _find_row(rows, DATE_SUFFIX.sub("", model))
    if row is None:
        return None
    prices = dict(zip(PRICE_FIELDS, row[3], strict=True))
    return KnownModel(window=row[2], version=f"{table['source']}, {table['date']}", **prices)


def _find_row(rows: list[list[Any]], model: str) -> list[Any] | None:
    """Return the row with the exact name, else the one with the longest matching prefix."""
    for row in rows:
        if model in row[0]:
            return row
    candidates = [
        (len(prefix), row) for row in rows for prefix in row[1] if model.startswith(prefix)
    ]
    return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def host_of(base_url: str) -> str:
    """The host name of a URL."""
    return urlsplit(base_url).hostname or ""


def is_loopback(base_url: str) -> bool:
    """Whether a URL refers to this machine."""
    host = host_of(base_url)
    return host in LOOPBACK_HOSTS or host.startswith("127.")
