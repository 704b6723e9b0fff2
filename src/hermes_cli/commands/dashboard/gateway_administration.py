"""The gateway for the dashboard: people, platforms, start and stop."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from gateway import people
from gateway.platforms.connection_check import check_connection
from gateway.platforms.registry import PlatformRegistry, explain_missing
from gateway.process.config_loader import Secrets, config_of_home, enabled_platforms
from hermes_core import paths
from hermes_core.errors import UsageError
from hermes_core.roles import Person, Role
from hermes_dashboard.context import GatewayPerson, PlatformFacts, PlatformTest

if TYPE_CHECKING:
    from hermes_core.config.platform_spec import PlatformSpec
    from hermes_dashboard.context import GatewayAction
    from hermes_state.store import SessionDB

IS_CHANGING: Final = "The gateway is being started or stopped. Try again when that is done."


class GatewayAdministrator:
    """Reads people and platforms from the store and the configuration."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def people(self) -> list[GatewayPerson]:
        """People with access, and all whose role was set."""
        return [
            GatewayPerson(
                known.person.platform,
                known.person.user_id,
                known.name,
                str(known.role),
                known.is_paired,
                known.is_configured,
                known.last_seen,
            )
            for known in people.known_people(self._db, config_of_home())
        ]

    def require_possible_role(self, platform: str, user_id: str, role: str) -> None:
        """Raise UsageError if a person cannot have a role."""
        people.require_possible_role(
            self._db, config_of_home(), Person(platform, user_id), Role(role)
        )

    def platforms(self) -> list[PlatformFacts]:
        """The state of each platform."""
        registry = PlatformRegistry.of_home()
        enabled = {entry.name for entry in enabled_platforms(config_of_home(), registry, Secrets())}
        return [
            PlatformFacts(
                entry.name,
                entry.name in enabled,
                missing_text(entry),
                "" if entry.is_usable else f"hermes gateway add {entry.name}",
                entry.check is not None,
            )
            for entry in registry
        ]

    def test_platform(self, name: str) -> PlatformTest:
        """Sign in to a platform with the stored credentials."""
        entry = PlatformRegistry.of_home().get(name)
        if entry is None:
            raise UsageError(explain_missing(name))
        return PlatformTest(*check_connection(entry))


def missing_text(entry: PlatformSpec) -> str:
    """What a platform lacks; empty if nothing."""
    if not entry.is_usable:
        return f"The library is not installed. Run `hermes gateway add {entry.name}`."
    secrets = Secrets()
    missing = [name for name in entry.secrets if not secrets(name)]
    return f"Not set: {', '.join(missing)}" if missing else ""


class GatewayControl:
    """Runs one `hermes gateway` command at a time.

    A command in a process of its own: the gateway must not be a child of the dashboard.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, action: GatewayAction) -> str:
        """Run the command to its end; its output, or UsageError with the reason."""
        if not self._lock.acquire(blocking=False):
            raise UsageError(IS_CHANGING)
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "hermes_cli", "gateway", action],
                env=paths.environment() | {"NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            self._lock.release()
        if done.returncode:
            raise UsageError((done.stderr or done.stdout).strip() or f"Exit code {done.returncode}")
        return " ".join((done.stdout + done.stderr).split())
