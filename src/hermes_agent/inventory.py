"""What an agent can do, as a list for people: names, a line each, and who brings them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes_agent.mcp.server_pool import Survey
    from hermes_agent.tools.base import Tool

STANDARD: Final = "standard"
LINE_CHARACTERS: Final = 100


class Item(NamedTuple):
    """One tool; one with a problem stands for a server that cannot be used."""

    name: str
    description: str
    origin: str  # `standard`, `plugin NAME` or `mcp SERVER`
    problem: str = ""


def of_tools(tools: Iterable[Tool], plugins: Mapping[str, str]) -> list[Item]:
    """The tools that are there; *plugins* says which plugin brings which."""
    return [Item(tool.name, _line(tool.description), _origin(tool.name, plugins)) for tool in tools]


def of_servers(survey: Survey) -> list[Item]:
    """The tools of MCP servers."""
    found = [
        Item(offer.name, _line(offer.description), f"mcp {offer.name.partition('/')[0]}")
        for offer in survey.offers
    ]
    return found + [Item("", "", f"mcp {name}", text) for name, text in survey.problems.items()]


def _origin(name: str, plugins: Mapping[str, str]) -> str:
    return f"plugin {plugins[name]}" if name in plugins else STANDARD


def _line(description: str) -> str:
    """The first sentence, or the beginning of it."""
    line = description.strip().partition("\n")[0].partition(". ")[0].rstrip(".")
    return line if len(line) <= LINE_CHARACTERS else f"{line[: LINE_CHARACTERS - 1]}…"
