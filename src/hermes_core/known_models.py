"""Context windows and prices of known models, from a dated table.

`tools/make_known_models.py` rebuilds the table.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypedDict
from urllib.parse import urlsplit

TABLE_PATH: Final = Path(__file__).with_name("known_models.json")
DATE_SUFFIX: Final = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")
PRICE_FIELDS: Final = ("input", "cache_read", "cache_write", "output")
LOOPBACK_HOSTS: Final = ("localhost", "::1")
ROUTER_HOST: Final = "openrouter.ai"  # names models `vendor/model`
MILLION: Final = 1_000_000
# Hosts of vendors, for the name of a model without its host.
VENDOR_HOSTS: Final = (
    "api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com",
    "api.deepseek.com", "api.x.ai", "api.mistral.ai", "api.moonshot.ai", "api.z.ai",
)  # fmt: skip


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


class CountsTokens(Protocol):
    """Tokens of requests: input without what a cache served, output with reasoning."""

    @property
    def input(self) -> int: ...
    @property
    def cache_read(self) -> int: ...
    @property
    def cache_write(self) -> int: ...
    @property
    def output(self) -> int: ...


class PricedTokens(NamedTuple):
    """Tokens that have a price."""

    input: int
    cache_read: int
    cache_write: int
    output: int


def price(tokens: CountsTokens, model: KnownModel) -> float | None:
    """The price in dollars; cached tokens default to the input price."""
    if model.input is None or model.output is None:
        return None
    read = model.input if model.cache_read is None else model.cache_read
    write = model.input if model.cache_write is None else model.cache_write
    total = (
        tokens.input * model.input
        + tokens.cache_read * read
        + tokens.cache_write * write
        + tokens.output * model.output
    )
    return total / MILLION


def find_known_model(base_url: str, model: str) -> KnownModel | None:
    """Look up *model* of an endpoint in the table; None when it is not listed."""
    return _find(json.loads(TABLE_PATH.read_bytes()), host_of(base_url), model)


@functools.cache
def find_vendor_model(model: str) -> KnownModel | None:
    """Look up a model by its name alone, as histories of other agents have it."""
    table: ModelTable = json.loads(TABLE_PATH.read_bytes())
    hosts = [ROUTER_HOST, *VENDOR_HOSTS] if "/" in model else VENDOR_HOSTS
    names = [model, model.rpartition("/")[2]]
    found = (_find(table, host, name) for name in names for host in hosts)
    return next((each for each in found if each is not None), None)


def _find(table: ModelTable, host: str, model: str) -> KnownModel | None:
    rows = table["hosts"].get(host, [])
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
