"""Settings of achievements, the dashboard, plugins and the log."""

from __future__ import annotations

from typing import Final

from hermes_core.config.schema import Setting

INTERFACES_SETTINGS: Final = (
    Setting("achievements.enabled", "bool", True, "Measure your history and award achievements."),
    Setting("achievements.hidden", "list", (), "IDs of achievements to hide."),
    Setting(
        "achievements.notify",
        "bool",
        True,
        "Print a line in the terminal when an achievement is unlocked.",
    ),
    Setting(
        "dashboard.port",
        "int",
        9229,
        "Port of the dashboard; 0 picks a free one.",
        minimum=0,
        maximum=65535,
    ),
    Setting(
        "dashboard.host",
        "str",
        "127.0.0.1",
        "Address the dashboard listens on; anything but loopback requires a password.",
        only_by_hand=True,
    ),
    Setting(
        "dashboard.hosts",
        "list",
        (),
        "Additional host names of the dashboard: NAME, NAME:PORT, or https://NAME behind a proxy.",
        only_by_hand=True,
    ),
    Setting(
        "dashboard.trusted_proxies",
        "list",
        (),
        "Addresses or networks of reverse proxies whose X-Forwarded-For names the client, e.g. "
        "127.0.0.1.",
        only_by_hand=True,
    ),
    Setting(
        "dashboard.tls_cert",
        "str",
        "",
        "Certificate file for HTTPS; empty means HTTP.",
        only_by_hand=True,
    ),
    Setting(
        "dashboard.tls_key", "str", "", "Private key file of that certificate.", only_by_hand=True
    ),
    Setting(
        "dashboard.hidden_plugins", "list", (), "Plugins whose tabs are hidden in the dashboard."
    ),
    Setting("plugins.enabled", "list", (), "Plugins to load.", only_by_hand=True),
    Setting(
        "plugins.decision_seconds",
        "int",
        30,
        "Time limit for a plugin that decides on a tool call or a chat message, in seconds. "
        "A plugin that exceeds it denies.",
        minimum=1,
        maximum=3600,
        only_by_hand=True,
    ),
    Setting(
        "plugins.disabled",
        "list",
        (),
        "Plugins that are never loaded, even if they are enabled elsewhere.",
        only_by_hand=True,
    ),
    Setting(
        "log.level",
        "choice",
        "info",
        "Minimum level of log entries.",
        choices=("debug", "info", "warning", "error"),
    ),
)
