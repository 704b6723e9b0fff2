"""What the demo's conversations are about: read from a file, filled in with names."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import random

NAMES: Final = {
    "project": ("lighthouse", "orchard", "ferry", "atlas", "tidepool", "heron", "lantern"),
    "module": (
        "orders", "billing", "search", "calendar", "import", "mail", "login", "export", "upload",
        "invoice", "stock", "map",
    ),
    "person": ("the team", "support", "the customer"),
    "guests": ("four", "five", "six", "eight", "ten"),
    "weekday": ("Friday", "Saturday", "Sunday"),
}  # fmt: skip


class Turn(NamedTuple):
    """What somebody says, the tools that are used, and the answer."""

    user: str
    tools: list[dict[str, Any]]
    answer: str


class Topic(NamedTuple):
    """A conversation that somebody could have had."""

    title: str
    kinds: list[str]
    turns: list[Turn]


def topics() -> list[Topic]:
    """Everything the demo can talk about."""
    text = (
        resources.files("hermes_cli.commands.dashboard.demo_data")
        .joinpath("topics.toml")
        .read_text("utf-8")
    )
    found = tomllib.loads(text)["topic"]
    return [
        Topic(
            one["title"],
            one["kinds"],
            [Turn(t["user"], t.get("tools", []), t["answer"]) for t in one["turn"]],
        )
        for one in found
    ]


class Filling(NamedTuple):
    """The names of one conversation."""

    values: dict[str, str]

    @classmethod
    def chosen(cls, dice: random.Random) -> Filling:
        """Names that belong together."""
        minor = dice.randint(1, 60)
        chosen = {name: dice.choice(values) for name, values in NAMES.items()}
        return cls({**chosen, "minor": str(minor), "previous": str(minor - 1)})

    def text(self, template: str) -> str:
        """The names put into a text."""
        for name, value in self.values.items():
            template = template.replace("{" + name + "}", value)
        return template.strip()

    def json(self, value: Any) -> str:
        """The names put into everything a tool was given or gave; a plain text stays one."""
        return self.text(value if isinstance(value, str) else json.dumps(value))
