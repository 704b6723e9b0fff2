"""Signed HTTP requests from other programs."""

from __future__ import annotations

from typing import Final

from hermes_core.config.platform_spec import ENABLED, PlatformSpec

PLATFORM: Final = PlatformSpec(
    "webhook",
    "Webhooks",
    "gateway.platforms.webhook.adapter",
    help="Choose a secret that signs requests, and add routes under Webhook routes.",
    secrets=("WEBHOOK_SECRET",),
    credentials=("keys.webhook",),
    next_steps=(
        "Choose a secret, and define routes in config.yaml under platforms.webhook.routes:",
        "  hermes config set keys.webhook",
    ),
    options=(ENABLED,),
)
