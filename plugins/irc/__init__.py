"""IRC as a chat platform, and the worked example of a platform in a plugin.

docs/how-to/write-a-platform.md walks through these files; README.md describes the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .adapter import IrcAdapter

if TYPE_CHECKING:
    from hermes_plugin_host.context import PluginContext

SETUP_STEPS: Final = """\
Describe the network in config.yaml:
  platforms:
    irc: {enabled: true, server: irc.example.org, nick: hermes, channels: ["#example"]}
Save the password of the agent's services account in .env, if it has one:
  IRC_PASSWORD=…"""


def register(ctx: PluginContext) -> None:
    """Register the platform; called once, when the plugin is loaded."""
    ctx.register_platform(
        "irc",
        IrcAdapter,
        label="IRC",
        optional_env=("IRC_PASSWORD", "IRC_SERVER_PASSWORD"),
        setup=SETUP_STEPS,
    )
