"""API keys and tokens of hermes-agent: those that have a meaning here. Values are never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_compat.original_home.items import ItemState, MoveItem
from hermes_core import paths
from hermes_core.config.env_file import EnvFile
from hermes_core.config.settings import SETTINGS
from hermes_core.json_values import object_in, text_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_compat.original_home.items import MoveContext

KIND: Final = "key"
OTHER_VARIABLES: Final = ("MATRIX_HOMESERVER",)  # read by the gateway, without a setting
TOKENS: Final = {
    "telegram": "TELEGRAM_BOT_TOKEN",
    "discord": "DISCORD_BOT_TOKEN",
    "slack": "SLACK_BOT_TOKEN",
    "matrix": "MATRIX_ACCESS_TOKEN",
}
OWN_SECRETS: Final = frozenset({"store.password"})
ACCESS_SUFFIXES: Final = ("_ALLOWED_USERS", "_ALLOWED_CHATS", "_ALLOW_ALL_USERS", "_ALLOW_BOTS")


def known_variables() -> tuple[str, ...]:
    """The variables with a secret that have a meaning here."""
    secrets = (item for item in SETTINGS if item.secret and item.name not in OWN_SECRETS)
    return (*(item.variable for item in secrets), *OTHER_VARIABLES)


def plan_secrets(context: MoveContext) -> Iterator[MoveItem]:
    """The keys of `.env`, and tokens that config.yaml contains."""
    yield from _of_env(context)
    for platform, variable in TOKENS.items():
        block = object_in(context.home.section("platforms"), platform)
        token = text_in(block, "token").strip()
        if token and not context.home.env.get(variable):
            yield _item(context, variable, token)


def _of_env(context: MoveContext) -> Iterator[MoveItem]:
    env, known = context.home.env, known_variables()
    found = [name for name in known if env.get(name)]
    if context.home.is_in_place and found:
        yield MoveItem(KIND, ", ".join(found), ItemState.HERE, "read from .env as it is")
    elif not context.home.is_in_place:
        for name in found:
            yield _item(context, name, env[name])
    others = [
        name
        for name, value in env.items()
        if value and name not in known and not name.endswith(ACCESS_SUFFIXES)
    ]
    if others:
        yield MoveItem(KIND, ", ".join(others), ItemState.SKIP, "not used here")


def _item(context: MoveContext, variable: str, value: str) -> MoveItem:
    current = context.config.variables().get(variable)
    if current == value:
        return MoveItem(KIND, variable, ItemState.HERE, "set here")
    if current:
        reason = "another value is set here"
        return MoveItem(KIND, variable, ItemState.SKIP, reason)

    def save() -> None:
        paths.private_folder(paths.hermes_home())
        EnvFile(paths.env_path()).set(variable, value)

    return MoveItem(KIND, variable, ItemState.TAKE, "to .env", save)
