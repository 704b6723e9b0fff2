"""Rebuild the table of known models: windows and prices, from the package `genai-prices`.

    uv run --no-project --with genai-prices python tools/make_known_models.py

The package itself is too heavy for an agent (70 MB of memory, 0.4 s); the table is 100 KB,
and its date is in it.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data_snapshot import get_snapshot  # type: ignore[import-not-found,unused-ignore]

TARGET = Path(__file__).parent.parent / "src/hermes_core/known_models.json"
# The providers that are in the table, by the host that is asked.
HOSTS = {
    "anthropic": "api.anthropic.com",
    "cerebras": "api.cerebras.ai",
    "deepseek": "api.deepseek.com",
    "google": "generativelanguage.googleapis.com",
    "groq": "api.groq.com",
    "mistral": "api.mistral.ai",
    "moonshotai": "api.moonshot.ai",
    "openai": "api.openai.com",
    "openrouter": "openrouter.ai",
    "x-ai": "api.x.ai",
    "zai": "api.z.ai",
}
KINDS = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")


def main() -> int:
    """Write the table."""
    now = datetime.now(UTC)
    hosts = {
        HOSTS[provider.id]: [row for model in provider.models if (row := _row(model, now))]
        for provider in get_snapshot().providers
        if provider.id in HOSTS
    }
    source = {"source": f"genai-prices {version('genai-prices')}", "date": now.date().isoformat()}
    TARGET.write_text(_text(source, hosts), encoding="utf-8")
    return 0


def _text(source: dict[str, str], hosts: dict[str, list[Any]]) -> str:
    """JSON with a model on each line, so that changes can be read."""
    places = [
        f"{json.dumps(host)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
        for host, rows in hosts.items()
    ]
    return json.dumps(source)[:-1] + ', "hosts": {\n' + ",\n".join(places) + "\n}}\n"


def _row(model: Any, now: datetime) -> list[Any] | None:
    """Names, beginnings of names, window, and dollars per million tokens of each kind."""
    names: set[str] = {model.id}
    beginnings: set[str] = set()
    _clauses(model.match, names, beginnings)
    prices = model.get_prices(now)
    amounts = [_dollars(getattr(prices, kind, None)) for kind in KINDS]
    if amounts[0] is None and not model.context_window:
        return None
    return [sorted(names), sorted(beginnings), model.context_window or 0, amounts]


def _clauses(clause: Any, names: set[str], beginnings: set[str]) -> None:
    for item in getattr(clause, "or_", [clause]):
        if hasattr(item, "equals"):
            names.add(item.equals)
        elif hasattr(item, "starts_with"):
            beginnings.add(item.starts_with)


def _dollars(price: Any) -> float | None:
    """The price; of prices that rise with the length of a request, the first."""
    base = getattr(price, "base", price)
    return None if base is None else float(base)


if __name__ == "__main__":
    sys.exit(main())
