"""The models of all providers as text, for `/model list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    from hermes_agent.providers.catalog import CatalogModel

MAX_LISTED: Final = 40


def list_models(words: str) -> str:
    """The models that contain all *words*, with context window and price."""
    from hermes_agent.providers import catalog  # noqa: PLC0415 - needs HTTP, for this only

    lists = catalog.ModelCatalog().load(catalog.known_endpoints(ConfigFile.of_home().settings()))
    found = catalog.search(catalog.all_models(lists), words)
    lines = [_line(model) for model in found[:MAX_LISTED]]
    if len(found) > MAX_LISTED:
        lines.append(f"… and {len(found) - MAX_LISTED} more; /model list WORDS searches")
    lines += [each.problem for each in lists if each.problem]
    return "\n".join(lines) or "No matching models."


def _line(model: CatalogModel) -> str:
    facts = []
    if model.window:
        facts.append(f"{round(model.window / 1000):,}k tokens")
    if model.input_price is not None and model.output_price is not None:
        facts.append(f"${model.input_price:g} / ${model.output_price:g} per million")
    return f"{model.name}  {', '.join(facts)}".strip()
