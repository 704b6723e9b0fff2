"""IRC as a chat platform, and the worked example of a platform in a plugin.

docs/how-to/write-a-platform.md walks through these files; README.md describes the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.config.platform_spec import COMMON_OPTIONS, PlatformSpec
from hermes_core.config.schema import Setting

from .adapter import IrcAdapter

if TYPE_CHECKING:
    from hermes_plugin_host.context import PluginContext

PLATFORM: Final = PlatformSpec(
    "irc",
    "IRC",
    IrcAdapter,
    help="Register a services account for the agent on the network, and enter its password.",
    optional_secrets=("IRC_PASSWORD", "IRC_SERVER_PASSWORD"),
    next_steps=(
        "Describe the network in config.yaml:",
        "  platforms:",
        '    irc: {enabled: true, server: irc.example.org, nick: hermes, channels: ["#example"]}',
        "Save the password of the agent's services account in .env, if it has one:",
        "  IRC_PASSWORD=…",
    ),
    options=(
        Setting("server", "str", "", "The server, e.g. irc.example.org.", only_by_hand=True),
        Setting(
            "port", "int", 6697, "Port of the server; 6667 without TLS.",
            minimum=1, maximum=65_535, only_by_hand=True,
        ),
        Setting("nick", "str", "hermes", "Nick of the agent."),
        Setting("channels", "list", (), "Channels to join, one per line.", only_by_hand=True),
        Setting(
            "password", "str", "", "Password of the services account, for SASL.",
            secret_variable="IRC_PASSWORD", secret=True, only_by_hand=True,
        ),
        Setting(
            "server_password", "str", "", "Password of the server.",
            secret_variable="IRC_SERVER_PASSWORD", secret=True, only_by_hand=True,
        ),
        *COMMON_OPTIONS,
    ),
)  # fmt: skip


def register(ctx: PluginContext) -> None:
    """Register the platform; called once, when the plugin is loaded."""
    ctx.register_platform(PLATFORM)
