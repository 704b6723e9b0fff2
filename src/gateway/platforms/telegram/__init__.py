"""Telegram, as a bot of its Bot API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.config.platform_spec import COMMON_OPTIONS, AccountRequest, PlatformSpec, seconds
from hermes_core.config.schema import Setting
from hermes_core.json_values import text_in
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    from hermes_core.config.platform_spec import FindSecret
    from hermes_core.json_values import JsonObject

API_URL: Final = "https://api.telegram.org"


def _check(options: JsonObject, secret: FindSecret) -> AccountRequest:
    token = secret("TELEGRAM_BOT_TOKEN")
    base_url = (text_in(options, "base_url") or API_URL).rstrip("/")
    return AccountRequest(f"{base_url}/bot{token}/getMe", {}, token)


PLATFORM: Final = PlatformSpec(
    "telegram",
    "Telegram",
    "gateway.platforms.telegram.adapter",
    help="Create a bot with @BotFather on Telegram (/newbot) and enter its token.",
    secrets=("TELEGRAM_BOT_TOKEN",),
    credentials=("keys.telegram", "keys.telegram_webhook"),
    library=Library(
        "telegram", "Telegram", "aiogram", Path(__file__).with_name("requirements.lock"), 9, 36
    ),
    next_steps=(
        "Create a bot with @BotFather on Telegram (/newbot) and save its token:",
        "  hermes config set keys.telegram",
    ),
    loggers=("aiohttp",),
    check=_check,
    options=(
        *COMMON_OPTIONS,
        seconds("poll_seconds", 30, "Long-polling timeout in seconds."),
        Setting(
            "webhook_url", "str", "",
            "Receive updates by webhook: an https URL that reaches the gateway's HTTP server. "
            "Needs the webhook secret.", only_by_hand=True, format="url",
        ),
        Setting(
            "base_url", "str", "", "URL of your own Bot API server.", only_by_hand=True,
            format="url",
        ),
    ),
)  # fmt: skip
