"""Definition of a setting."""

from __future__ import annotations

from typing import Literal, NamedTuple

Value = bool | int | float | str | tuple[str, ...]
Kind = Literal["bool", "int", "float", "str", "list", "choice"]
# A database URL has no password, because settings are shown.
TextFormat = Literal["", "time_zone", "url", "database_url"]


class Setting(NamedTuple):
    """A setting: its name, type, default and limits."""

    name: str
    kind: Kind
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    old_choices: tuple[tuple[str, str], ...] = ()  # earlier names of choices, still accepted
    minimum: float | None = None
    maximum: float | None = None
    secret: bool = False
    secret_variable: str = ""
    format: TextFormat = ""  # of a text
    only_by_hand: bool = (
        False  # grants something: a page's change needs a confirmation in a terminal
    )

    is_shared_by_nodes: bool = False  # the gateways of one history must agree on it

    @property
    def section(self) -> str:
        """The top-level key in config.yaml."""
        return self.name.partition(".")[0]

    @property
    def key(self) -> str:
        """The key below the section."""
        return self.name.partition(".")[2]

    @property
    def variable(self) -> str:
        """The environment variable that overrides the file."""
        return self.secret_variable or f"HERMES_{self.name.replace('.', '_').upper()}"
