"""A chat platform with the signature of hermes-agent."""

import os

from .adapter import SampleAdapter


def has_requirements():
    return bool(os.environ.get("SAMPLE_CHAT_TOKEN"))


def register(ctx):
    ctx.register_platform(
        name="samplechat",
        label="Sample chat",
        adapter_factory=SampleAdapter,
        check_fn=has_requirements,
        validate_config=lambda config: bool(config.extra.get("folder")),
        required_env=["SAMPLE_CHAT_TOKEN"],
        install_hint="Set SAMPLE_CHAT_TOKEN and platforms.samplechat.folder.",
        allowed_users_env="SAMPLE_CHAT_USERS",
        max_message_length=20,
        emoji="*",
    )
