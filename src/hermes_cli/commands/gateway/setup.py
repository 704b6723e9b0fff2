"""`hermes gateway add`, `install` and `uninstall`."""

from __future__ import annotations

import plistlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.platforms.registry import PlatformRegistry, explain_missing
from hermes_core import paths
from hermes_core.atomic_files import write_atomically
from hermes_core.config.file import ConfigFile
from hermes_core.distribution import find_distribution
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

SERVICE_NAME: Final = "hermes-gateway"
OLD_COMMAND: Final = "gateway.process"  # in service files of older releases
GRACE_SECONDS: Final = 30
# KillMode=mixed: the gateway gets the signal and stops its own children. With exit code 2 (and
# 78, of `gateway.process.main`) a restart is useless until the configuration changes.
SYSTEMD_UNIT: Final = """\
[Unit]
Description=Hermes gateway for chat apps
After=network-online.target
Wants=network-online.target

[Service]
Type=simple
ExecStart={command}
Environment=HERMES_HOME={home}
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2 78
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec={stop_seconds}
ExecReload=/bin/kill -USR1 $MAINPID

[Install]
WantedBy=default.target
"""


def add(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Install the library of a platform and print the next steps."""
    name = arguments.platform.lower()
    entry = PlatformRegistry.of_home().get(name)
    if entry is None:
        raise UsageError(explain_missing(name))
    if entry.library is not None:
        is_new = entry.library.fetch(out.progress)
        out.text(f"The library for {entry.title} {'was' if is_new else 'is already'} installed.")
    missing = [f"  {name}=…" for name in entry.secrets]
    default = ("Set in the environment or in .env:", *missing) if missing else ()
    for line in entry.next_steps or default:
        out.hint(line)
    out.hint("Then run `hermes gateway start`.")
    return 0


class SystemService(NamedTuple):
    """The service file, and the commands that start and stop the service."""

    path: Path
    content: str
    start: tuple[str, ...]
    stop: tuple[str, ...]


def service(platform: str = sys.platform) -> SystemService:
    """The service for the current operating system."""
    return _launchd() if platform == "darwin" else _systemd()


def _command() -> list[str]:
    """The launcher: it installs what an update needs, and its name does not change."""
    return [str(find_distribution().launcher), "gateway", "run"]


def is_outdated() -> bool:
    """Whether an installed service file is of a release that named a module."""
    path = service().path
    return path.exists() and OLD_COMMAND in path.read_text("utf-8", errors="replace")


def write_service() -> SystemService:
    """Write the service file."""
    result = service()
    write_atomically(result.path, result.content)
    return result


def _stop_seconds() -> int:
    drain = ConfigFile.of_home().settings().get_int("gateway.drain_seconds")
    return max(60, drain) + GRACE_SECONDS


def _systemd() -> SystemService:
    path = Path.home() / ".config" / "systemd" / "user" / f"{SERVICE_NAME}.service"
    content = SYSTEMD_UNIT.format(
        command=" ".join(map(_quoted, _command())),
        home=_quoted(str(paths.hermes_home())),
        stop_seconds=_stop_seconds(),
    )
    start = (
        "systemctl --user daemon-reload",
        f"systemctl --user enable --now {SERVICE_NAME}",
        "loginctl enable-linger    # keep it running while you are not logged in",
    )
    return SystemService(path, content, start, (f"systemctl --user disable --now {SERVICE_NAME}",))


def _quoted(word: str) -> str:
    """Quote an argument for a systemd unit."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if any(item in word for item in ' "\\') else escaped


def _launchd() -> SystemService:
    name = f"local.{SERVICE_NAME}"
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
    return SystemService(path, content, start, (f"launchctl bootout gui/$(id -u)/{name}",))


def install(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Write the service file and print how to start the service."""
    result = service()
    if arguments.only_print:
        out.text(result.content.rstrip())
        return 0
    write_service()
    out.text(f"Wrote {result.path}")
    out.text("To start it now and at every boot:")
    for line in result.start:
        out.text(f"  {line}")
    return 0


def uninstall(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Remove the service file."""
    result = service()
    if not result.path.exists():
        out.text("The service is not installed.")
        return 0
    result.path.unlink()
    out.text(f"Removed {result.path}")
    for line in result.stop:
        out.text(f"  {line}")
    return 0
