"""`hermes gateway add`, `install` and `uninstall`."""

from __future__ import annotations

import plistlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.platforms.registry import PlatformRegistry, install_library, library_of
from hermes_core import paths
from hermes_core.atomic_files import write_atomically
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import Output

LABEL: Final = "hermes-gateway"
GRACE_SECONDS: Final = 30
# KillMode=mixed: the gateway is told to end and sees to what it has started; 78 means that a
# start cannot succeed before somebody changes something.
UNIT: Final = """\
[Unit]
Description=Hermes: answers chats
After=network-online.target
Wants=network-online.target

[Service]
Type=simple
ExecStart={command}
Environment=HERMES_HOME={home}
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=78
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec={stop_seconds}
ExecReload=/bin/kill -USR1 $MAINPID

[Install]
WantedBy=default.target
"""
STEPS: Final = {
    "telegram": (
        "Talk to @BotFather on Telegram, /newbot, and give Hermes the token:",
        "  hermes config set keys.telegram TOKEN",
    ),
    "matrix": (
        "Make an account for the agent on a homeserver, and write into .env:",
        "  MATRIX_HOMESERVER=https://matrix.example.org",
        "and the account's access token:",
        "  hermes config set keys.matrix TOKEN",
        "Rooms must not be encrypted.",
    ),
    "discord": (
        "Make an application with a bot in Discord's developer portal, switch on its message",
        "content intent, invite it, and give Hermes the token:",
        "  hermes config set keys.discord TOKEN",
    ),
    "slack": (
        "Make a Slack app with socket mode and the events message.* and app_mention, and give",
        "Hermes its two tokens:",
        "  hermes config set keys.slack_bot xoxb-…",
        "  hermes config set keys.slack_app xapp-…",
    ),
    "webhook": (
        "Choose a secret, and describe routes in config.yaml under platforms.webhook.routes:",
        "  hermes config set keys.webhook SECRET",
    ),
    "api_server": (
        "Choose a key of at least 16 characters; clients send it as a bearer token:",
        "  hermes config set keys.api_server KEY",
    ),
    "local": ("There is nothing to do: the socket is always there.",),
}


def add(arguments: argparse.Namespace, out: Output) -> int:
    """Fetch a platform's library, and say what to do next."""
    registry = PlatformRegistry.of_home()
    entry = registry.get(arguments.platform.lower())
    if entry is None:
        known = ", ".join(one.name for one in registry)
        raise UsageError(f"there is no platform {arguments.platform}; there are {known}")
    if library_of(entry) is not None:
        is_new = install_library(entry, out.progress)
        out.text(f"The library for {entry.label} is {'here now' if is_new else 'here already'}.")
    for line in STEPS.get(entry.name, ()):
        out.text(line)
    out.text("Then: hermes gateway start")
    return 0


class Service(NamedTuple):
    """What a system's supervisor is told, and how it is made to look."""

    path: Path
    content: str
    start: tuple[str, ...]
    stop: tuple[str, ...]


def service(platform: str = sys.platform) -> Service:
    """For the system Hermes runs on."""
    return _launchd() if platform == "darwin" else _systemd()


def _command() -> list[str]:
    return [sys.executable, "-P", "-m", "gateway.process.main"]


def _stop_seconds() -> int:
    drain = ConfigFile.of_home().settings().get_int("gateway.drain_seconds")
    return max(60, drain) + GRACE_SECONDS


def _systemd() -> Service:
    path = Path.home() / ".config" / "systemd" / "user" / f"{LABEL}.service"
    content = UNIT.format(
        command=" ".join(map(_quoted, _command())),
        home=_quoted(str(paths.hermes_home())),
        stop_seconds=_stop_seconds(),
    )
    start = (
        "systemctl --user daemon-reload",
        f"systemctl --user enable --now {LABEL}",
        "loginctl enable-linger    # so that it also runs while you are not logged in",
    )
    return Service(path, content, start, (f"systemctl --user disable --now {LABEL}",))


def _quoted(word: str) -> str:
    """A word as systemd reads it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if any(one in word for one in ' "\\') else escaped


def _launchd() -> Service:
    name = f"local.{LABEL}"
    path = Path.home() / "Library" / "LaunchAgents" / f"{name}.plist"
    facts = {
        "Label": name,
        "ProgramArguments": _command(),
        "EnvironmentVariables": {"HERMES_HOME": str(paths.hermes_home())},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": _stop_seconds(),
        "StandardErrorPath": str(paths.logs_path() / "gateway.log"),
    }
    content = plistlib.dumps(facts).decode()
    start = (f"launchctl bootstrap gui/$(id -u) {path}",)
    return Service(path, content, start, (f"launchctl bootout gui/$(id -u)/{name}",))


def install(arguments: argparse.Namespace, out: Output) -> int:
    """Write the file for the supervisor, and say how to start it."""
    found = service()
    if arguments.only_print:
        out.text(found.content.rstrip())
        return 0
    write_atomically(found.path, found.content)
    out.text(f"Written: {found.path}")
    out.text("To start it now and with the system:")
    for line in found.start:
        out.text(f"  {line}")
    return 0


def uninstall(_wishes: argparse.Namespace, out: Output) -> int:
    """Remove that file."""
    found = service()
    if not found.path.exists():
        out.text("It is not installed.")
        return 0
    found.path.unlink()
    out.text(f"Removed: {found.path}")
    for line in found.stop:
        out.text(f"  {line}")
    return 0
