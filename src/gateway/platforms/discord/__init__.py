"""Discord, as a bot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.config.platform_spec import COMMON_OPTIONS, AccountRequest, PlatformSpec
from hermes_core.config.schema import Setting
from hermes_core.json_values import text_in
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    from hermes_core.config.platform_spec import FindSecret
    from hermes_core.json_values import JsonObject

API_URL: Final = "https://discord.com/api/v10"


def _check(options: JsonObject, secret: FindSecret) -> AccountRequest:
    base_url = (text_in(options, "base_url") or API_URL).rstrip("/")
    headers = {"Authorization": f"Bot {secret('DISCORD_BOT_TOKEN')}"}
    return AccountRequest(f"{base_url}/users/@me", headers)


PLATFORM: Final = PlatformSpec(
    "discord",
    "Discord",
    "gateway.platforms.discord.adapter",
    help="Create an application with a bot in the Discord developer portal, enable its message "
    "content intent, invite the bot, and enter its token.",
    secrets=("DISCORD_BOT_TOKEN",),
    credentials=("keys.discord",),
    library=Library(
        "discord", "Discord", "discord", Path(__file__).with_name("requirements.lock"), 6, 23
    ),
    next_steps=(
        "Create an application with a bot in the Discord developer portal, enable its message",
        "content intent, invite the bot, and save its token:",
        "  hermes config set keys.discord",
    ),
    loggers=("aiohttp", "discord"),
    check=_check,
    options=(
        *COMMON_OPTIONS,
        Setting(
            "base_url", "str", "", "Another URL of Discord's API, for tests.",
            only_by_hand=True, format="url",
        ),
    ),
)  # fmt: skip
