"""Checks of `hermes doctor` whether the agent can work now: model, daemon, gateway, PATH, disk."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import status
from hermes_agent.providers import catalog
from hermes_core import __version__, human_format
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, HermesError, NoModelError
from hermes_core.instance_record import DAEMON
from hermes_core.paths import hermes_home
from hermes_core.system_programs import program_on_path

if TYPE_CHECKING:
    from collections.abc import Iterator

LOW_SPACE_BYTES: Final = 500_000_000


class Readiness(NamedTuple):
    """The result of a check."""

    name: str
    status: str
    detail: str
    advice: str = ""


def check_readiness() -> list[Readiness]:
    """All checks of this module."""
    checks = (check_gateway(), *check_service(), check_path(), check_space())
    return [*check_model(), check_daemon(), *checks]


def check_model() -> Iterator[Readiness]:
    """Whether a model is chosen, its key is accepted, and its endpoint lists it."""
    from hermes_conversation import agent_factory  # noqa: PLC0415 - `--help` does without

    try:
        choice = agent_factory.model_chain(ConfigFile.of_home().settings())[0]
    except NoModelError:
        advice = "Run `hermes setup`, or set e.g. ANTHROPIC_API_KEY"
        yield Readiness("model", "warning", "none configured", advice)
        return
    except HermesError as error:
        yield Readiness("model", "failed", str(error), "Run `hermes setup`")
        return
    checked = catalog.check_model(choice)
    yield Readiness("model", checked.status, checked.detail, checked.advice)


def check_daemon() -> Readiness:
    """Whether the daemon runs, and is of this release."""
    record = DAEMON.find()
    if record is None:
        return Readiness("daemon", "ok", "not running; the terminal UI starts it")
    if record.version != __version__:
        detail = f"running, but of release {record.version}"
        return Readiness("daemon", "warning", detail, "Close the terminal UIs; it exits when idle")
    return Readiness("daemon", "ok", f"running (PID {record.pid})")


def check_gateway() -> Readiness:
    """Whether the gateway runs, and which chat platforms it has."""
    names = configured_platforms()
    process_id = status.running_pid()
    listed = ", ".join(names) or "no chat platform configured"
    if process_id is not None:
        return Readiness("gateway", "ok", f"running (PID {process_id}); {listed}")
    if not names:
        return Readiness("gateway", "skipped", "not configured: no chat platform")
    return Readiness("gateway", "warning", f"not running; {listed}", "Run `hermes gateway start`")


def check_service() -> list[Readiness]:
    """Whether an installed service starts the launcher."""
    from hermes_cli.commands.gateway import setup  # noqa: PLC0415 - slow

    path = setup.service().path
    if not path.exists():
        return []
    if setup.is_outdated():
        detail = f"{path} is of an older release and may not start after an update"
        return [Readiness("gateway service", "warning", detail, "Run `hermes gateway install`")]
    return [Readiness("gateway service", "ok", str(path))]


def configured_platforms() -> list[str]:
    """The names of the chat platforms that the gateway connects to."""
    from gateway.platforms.registry import PlatformRegistry  # noqa: PLC0415 - slow
    from gateway.process import config_loader  # noqa: PLC0415 - as above

    try:
        entries = config_loader.enabled_platforms(
            config_loader.config_of_home(), PlatformRegistry.of_home(), config_loader.Secrets()
        )
    except ConfigError:
        return []  # the check of the settings reports it
    return [entry.name for entry in entries if entry.name != "local"]


def check_path() -> Readiness:
    """Whether the shell finds `hermes`."""
    found = program_on_path("hermes")
    if found is None:
        return Readiness("PATH", "warning", "no `hermes` on it", "Run `hermes install`")
    return Readiness("PATH", "ok", found)


def check_space() -> Readiness:
    """The free space of the disk of the Hermes folder."""
    home = hermes_home()
    folder = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    detail = f"{human_format.size(free)} free"
    if free < LOW_SPACE_BYTES:
        return Readiness("disk space", "warning", detail, "Free some space")
    return Readiness("disk space", "ok", detail)
