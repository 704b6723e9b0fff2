"""What is known about a chat platform: one object in its own folder, or in a plugin.

The registry, `hermes gateway add`, the connection test and the dashboard's form read it. Options
are keys under `platforms.NAME` in config.yaml; one with a variable is in `.env` instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.config.schema import Setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.config.schema import Value
    from hermes_core.json_values import JsonObject
    from hermes_core.package_installer import Library

    FindSecret = Callable[[str], str]  # the value of a variable; empty if it is not set

MAX_SECONDS: Final = 86_400
# Values that grant nothing, whatever the value before was.
RESTRICTIVE_VALUES: Final[dict[str, Value]] = {
    "enabled": False,
    "require_mention": True,
    "auto_join": False,
    "only_verified": True,
    "verify_sender": True,
    "unauthorized_dm_behavior": "ignore",
}


class AccountRequest(NamedTuple):
    """A request for the own account, which tests the credentials."""

    url: str
    headers: dict[str, str]
    hidden: str = ""  # part of the URL that must not be shown


class ConnectionCheck(NamedTuple):
    """The account, or why the sign-in failed."""

    is_ok: bool
    detail: str


@dataclass(frozen=True)
class PlatformSpec:
    """A platform; *make* gets an `AdapterContext`, or names a module with a function `make`."""

    name: str
    title: str
    make: Callable[[Any], Any] | str
    help: str = ""  # where its credentials come from
    secrets: tuple[str, ...] = ()  # the variables that must be set
    optional_secrets: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()  # the names of settings in its form
    options: tuple[Setting, ...] = ()  # named by their keys
    library: Library | None = None
    next_steps: tuple[str, ...] = ()  # what `hermes gateway add` prints
    loggers: tuple[str, ...] = ()  # of its library; their debug entries have access tokens
    check: Callable[[JsonObject, FindSecret], AccountRequest | ConnectionCheck] | None = None

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The options with their full names."""
        prefix = f"platforms.{self.name}."
        return tuple(item._replace(name=prefix + item.name) for item in self.options)

    @property
    def is_usable(self) -> bool:
        """Whether its library can be imported."""
        return self.library is None or self.library.is_usable()

    def missing(self, secret: FindSecret) -> str:
        """What it needs and does not have; empty if its adapter can be created."""
        missing = [name for name in self.secrets if not secret(name)]
        if missing:
            return f"{self.title}: set {' and '.join(missing)} in the environment or in .env."
        if not self.is_usable:
            return f"{self.title}: library not installed. Run `hermes gateway add {self.name}`."
        return ""


def seconds(key: str, default: int, text: str) -> Setting:
    """An option that is a time in seconds."""
    return Setting(key, "int", default, text, minimum=1, maximum=MAX_SECONDS)


def access(*, pairs: bool = True) -> tuple[Setting, ...]:
    """Who may write; the options of every platform for people."""
    return (
        Setting(
            "allowed_users", "list", (),
            "User IDs with access as members, one per line. If there are any, unknown users get no "
            "pairing code.", only_by_hand=True,
        ),
        Setting(
            "allow_admin_from", "list", (),
            "User IDs with the role owner: they have your rights.", only_by_hand=True,
        ),
        Setting(
            "unauthorized_dm_behavior", "choice", "pair" if pairs else "ignore",
            "Reply to direct messages from unknown users: a pairing code, or nothing.",
            choices=("pair", "ignore"), only_by_hand=True,
        ),
    )  # fmt: skip


ENABLED: Final = Setting(
    "enabled",
    "bool",
    True,
    "Connect this platform. Without a value it is connected if its credentials are set.",
    only_by_hand=True,
)
GROUPS: Final = (
    Setting(
        "allowed_chats", "list", (),
        "IDs of groups whose members may all write, as guests, one per line.", only_by_hand=True,
    ),
    Setting(
        "require_mention", "bool", True,
        "Answer in groups only if the agent is addressed: a mention, a reply, a command.",
        only_by_hand=True,
    ),
    Setting(
        "home_channel", "str", "",
        "ID of the chat for messages that are not replies, such as reports of jobs.",
        only_by_hand=True,
    ),
)  # fmt: skip
# What a platform for chats of people has in common with the others.
COMMON_OPTIONS: Final = (ENABLED, *access(), *GROUPS)
