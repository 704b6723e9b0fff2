"""Slack, as an app in Socket Mode."""

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

API_URL: Final = "https://slack.com/api"


def _check(options: JsonObject, secret: FindSecret) -> AccountRequest:
    base_url = (text_in(options, "base_url") or API_URL).rstrip("/")
    headers = {"Authorization": f"Bearer {secret('SLACK_BOT_TOKEN')}"}
    return AccountRequest(f"{base_url}/auth.test", headers)


PLATFORM: Final = PlatformSpec(
    "slack",
    "Slack",
    "gateway.platforms.slack.adapter",
    help="Create a Slack app with socket mode and the events message.* and app_mention, and enter "
    "its two tokens.",
    secrets=("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"),
    credentials=("keys.slack_bot", "keys.slack_app"),
    library=Library(
        "slack", "Slack", "slack_sdk", Path(__file__).with_name("requirements.lock"), 5, 19
    ),
    next_steps=(
        "Create a Slack app with socket mode and the events message.* and app_mention, and save",
        "its two tokens:",
        "  hermes config set keys.slack_bot",
        "  hermes config set keys.slack_app",
    ),
    loggers=("aiohttp", "slack_sdk"),
    check=_check,
    options=(
        *COMMON_OPTIONS,
        Setting(
            "reply_in_thread", "bool", False,
            "Start a thread with each reply in a channel.",
        ),
        Setting(
            "base_url", "str", "", "Another URL of Slack's API, for tests.", only_by_hand=True,
            format="url",
        ),
    ),
)  # fmt: skip
