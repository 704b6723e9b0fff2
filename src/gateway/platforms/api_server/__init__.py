"""An OpenAI-compatible HTTP API."""

from __future__ import annotations

from typing import Final

from hermes_core.config.platform_spec import ENABLED, MAX_SECONDS, PlatformSpec
from hermes_core.config.schema import Setting

PLATFORM: Final = PlatformSpec(
    "api_server",
    "OpenAI-compatible API",
    "gateway.platforms.api_server.adapter",
    help="Choose an access token of at least 16 characters; clients send it as a bearer token.",
    secrets=("API_SERVER_KEY",),
    credentials=("keys.api_server",),
    next_steps=(
        "Choose an access token of at least 16 characters; clients send it as a bearer token:",
        "  hermes config set keys.api_server",
    ),
    options=(
        ENABLED,
        Setting(
            "largest_body", "int", 1_048_576,
            "Maximum size of a request in bytes, without its files.",
            minimum=1024, maximum=1_000_000_000,
        ),
        Setting(
            "answer_seconds", "float", 1800.0,
            "Seconds that a request waits for its answer.", minimum=1, maximum=MAX_SECONDS,
        ),
    ),
)  # fmt: skip
