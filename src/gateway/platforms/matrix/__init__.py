"""Matrix, as an ordinary account of any homeserver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.config.platform_spec import COMMON_OPTIONS, AccountRequest, PlatformSpec, seconds
from hermes_core.config.schema import Setting
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    from hermes_core.config.platform_spec import FindSecret
    from hermes_core.json_values import JsonObject


def _check(_options: JsonObject, secret: FindSecret) -> AccountRequest:
    configured = secret("MATRIX_HOMESERVER").rstrip("/")
    base_url = configured if "://" in configured else f"https://{configured}"
    headers = {"Authorization": f"Bearer {secret('MATRIX_ACCESS_TOKEN')}"}
    return AccountRequest(f"{base_url}/_matrix/client/v3/account/whoami", headers)


PLATFORM: Final = PlatformSpec(
    "matrix",
    "Matrix",
    "gateway.platforms.matrix.adapter",
    help="Create an account for the agent, log in as it once, for Hermes only, and enter the "
    "access token of that login.",
    secrets=("MATRIX_HOMESERVER", "MATRIX_ACCESS_TOKEN"),
    credentials=("keys.matrix",),
    # An older installation has nio only.
    library=Library(
        "matrix", "Matrix", "vodozemac", Path(__file__).with_name("requirements.lock"), 11, 44
    ),
    next_steps=(
        "Create an account for the agent on a homeserver and add to .env:",
        "  MATRIX_HOMESERVER=https://matrix.example.org",
        "Log in as the account once, for Hermes only, and save the access token of that login:",
        "  hermes config set keys.matrix",
        "After the first start, `hermes gateway matrix status` shows its encryption keys.",
    ),
    loggers=("aiohttp", "nio"),
    check=_check,
    options=(
        Setting(
            "homeserver", "str", "",
            "The homeserver of the account, e.g. https://matrix.example.org.",
            secret_variable="MATRIX_HOMESERVER", only_by_hand=True, format="url",
        ),
        *COMMON_OPTIONS,
        Setting("auto_join", "bool", True, "Accept invitations to rooms.", only_by_hand=True),
        Setting(
            "only_verified", "bool", False,
            "Send messages in encrypted rooms to verified devices only.", only_by_hand=True,
        ),
        seconds(
            "key_wait_seconds", 600,
            "Seconds that a message waits for its key before the chat is notified.",
        ),
        Setting(
            "timeline_limit", "int", 50, "Messages per room in one sync.",
            minimum=1, maximum=1000,
        ),
        seconds("sync_seconds", 30, "Long-polling timeout in seconds."),
    ),
)  # fmt: skip
