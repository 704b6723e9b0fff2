"""Checks of `hermes doctor` whether the agent can work now: model, daemon, gateway, PATH, disk."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import status
from hermes_agent.events import FailureKind
from hermes_agent.providers import selection
from hermes_core import __version__, human_format
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, HermesError, NoModelError
from hermes_core.instance_record import DAEMON
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.providers.selection import ModelChoice

LOW_SPACE_BYTES: Final = 500_000_000
# Failures that the user has to repair; others may pass.
LASTING_FAILURES: Final = frozenset({FailureKind.KEY, FailureKind.FORBIDDEN, FailureKind.MODEL})


class Readiness(NamedTuple):
    """The result of a check."""

    name: str
    status: str
    detail: str
    advice: str = ""


def check_readiness() -> list[Readiness]:
    """All checks of this module."""
    return [*check_model(), check_daemon(), check_gateway(), check_path(), check_space()]


def check_model() -> Iterator[Readiness]:
    """Whether a model is chosen, its key is accepted, and its endpoint lists it."""
    from hermes_conversation import agent_factory  # noqa: PLC0415 - `--help` does without

    try:
        choice = agent_factory.model_chain(ConfigFile.of_home().settings())[0]
    except NoModelError:
        advice = "Run `hermes setup`, or set e.g. ANTHROPIC_API_KEY"
        yield Readiness("model", "warning", "none is configured; nothing can be answered", advice)
        return
    except HermesError as error:
        yield Readiness("model", "failed", str(error), "Run `hermes setup`")
        return
    setting = selection.key_name(choice.api, choice.base_url)
    if setting.startswith("keys.") and not choice.key:
        advice = f"Run `hermes setup`, or `hermes config set {setting}`"
        yield Readiness("model", "failed", f"{choice.model}: the API key is missing", advice)
        return
    yield _tested(choice)


def _tested(choice: ModelChoice) -> Readiness:
    """Ask the endpoint for its models, which costs nothing and tests the key."""
    from hermes_agent.local.built_in import BuiltIn  # noqa: PLC0415 - `--help` does without
    from hermes_agent.providers.model_list import list_models  # noqa: PLC0415 - as above

    if choice.api == "local":
        is_here = BuiltIn.of_home().is_installed
        detail = f"{choice.model}, {'installed' if is_here else 'not installed'}"
        advice = f"Run `hermes models get {choice.model}`"
        return Readiness("model", "ok" if is_here else "failed", detail, advice)
    if choice.api == "script":
        return Readiness("model", "ok", f"the script {choice.model}")
    listed = list_models(choice)
    if listed.failure is not None:
        is_lasting = listed.failure.kind in LASTING_FAILURES
        level = "failed" if is_lasting else "warning"
        return Readiness("model", level, listed.failure.message, listed.failure.advice)
    if listed.names and choice.model not in {*listed.names, *_untagged(listed.names)}:
        detail = f"{choice.model} is not in the list of its endpoint"
        return Readiness("model", "warning", detail, "Run `hermes models` to choose another one")
    return Readiness("model", "ok", f"{choice.model}; the endpoint answers and accepts the key")


def _untagged(names: list[str]) -> list[str]:
    return [name.removesuffix(":latest") for name in names]


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
    found = shutil.which("hermes")
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
