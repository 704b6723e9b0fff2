"""The dependencies of the dashboard, assembled by the process that starts it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from hermes_core.errors import UsageError
from hermes_dashboard.analytics.analysis import Analysis, ToolErrorCounts
from hermes_dashboard.health_checks import HealthChecks
from hermes_dashboard.workspaces import Workspaces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_state.store import SessionDB


class PlatformStatus(NamedTuple):
    """The state of a platform; `since` is a timestamp or an ISO time."""

    name: str
    state: str
    detail: str = ""
    account: str | None = None
    since: float | str | None = None


class GatewayStatus(NamedTuple):
    """The state of the gateway's process and of each platform."""

    is_running: bool = False
    pid: int | None = None
    started_at: float | None = None
    version: str | None = None
    platforms: Sequence[PlatformStatus] = ()
    problems: Sequence[str] = ()


class GatewayError(NamedTuple):
    """An error in the gateway's log."""

    at: float
    level: str
    logger: str
    message: str


class GatewayChat(NamedTuple):
    """A chat with a conversation."""

    key: str
    platform: str
    name: str
    kind: str
    session_id: str
    last_active: float | str | None


class SelectableModel(NamedTuple):
    """A model that a conversation can use; `is_here` means that it needs no download."""

    name: str
    provider: str
    is_current: bool = False
    is_here: bool = True
    detail: str = ""


GatewayAction = Literal["start", "stop", "restart"]


def no_gateway_control(action: GatewayAction) -> str:
    """Where the dashboard cannot change the gateway."""
    raise UsageError(f"Run `hermes gateway {action}` in a terminal.")


class GatewayReader(Protocol):
    """Read access to the chat gateway, which may run in another process."""

    def state(self) -> GatewayStatus:
        """The state of the process and of each platform."""
        ...

    def errors(self, limit: int) -> list[GatewayError]:
        """Recent errors, newest first."""
        ...

    def chats(self, limit: int) -> list[GatewayChat]:
        """Chats with a conversation, most recently active first."""
        ...


class GatewayPerson(NamedTuple):
    """A person or program with access, and its role."""

    platform: str
    user_id: str
    name: str
    role: str
    is_paired: bool
    is_configured: bool
    last_seen: float | None


class PlatformFacts(NamedTuple):
    """What the gateway has for a platform, and what it lacks."""

    name: str
    is_enabled: bool
    missing: str = ""
    library_command: str = ""  # installs its library; empty if nothing has to be installed
    can_test: bool = False


class PlatformTest(NamedTuple):
    """The result of a connection test: the account, or why it failed."""

    is_ok: bool
    detail: str


class GatewayAdministration(Protocol):
    """People and platforms of the gateway."""

    def people(self) -> list[GatewayPerson]:
        """People with access, and all whose role was set."""
        ...

    def require_possible_role(self, platform: str, user_id: str, role: str) -> None:
        """Raise UsageError if a person cannot have a role."""
        ...

    def platforms(self) -> list[PlatformFacts]:
        """The state of each platform."""
        ...

    def test_platform(self, name: str) -> PlatformTest:
        """Sign in to a platform with the stored credentials."""
        ...


class NoGatewayAdministration:
    """Where the gateway is not part of the process that serves the page."""

    def people(self) -> list[GatewayPerson]:
        """No person is known."""
        return []

    def require_possible_role(self, platform: str, user_id: str, role: str) -> None:
        """Roles are set in a terminal."""
        raise UsageError(f"Run `hermes people set {platform}:{user_id} --role {role}`.")

    def platforms(self) -> list[PlatformFacts]:
        """Nothing is known about platforms."""
        return []

    def test_platform(self, name: str) -> PlatformTest:
        """There is nothing to test with."""
        return PlatformTest(False, f"{name} cannot be tested here.")


@dataclass(frozen=True)
class DashboardContext:
    """The dependencies of the resources."""

    db: SessionDB
    home: Path
    gateway: GatewayReader
    models: Callable[[], list[SelectableModel]]
    is_demo: bool = False
    control_gateway: Callable[[GatewayAction], str] = no_gateway_control
    administration: GatewayAdministration = field(default_factory=NoGatewayAdministration)
    start_folder: Path = field(default_factory=Path.cwd)  # where the dashboard was started

    @functools.cached_property
    def workspaces(self) -> Workspaces:
        """The working folders of conversations on the page."""
        return Workspaces(self.home, self.start_folder)

    @functools.cached_property
    def health(self) -> HealthChecks:
        """The health checks, shared by all resources."""
        return HealthChecks(self)

    @functools.cached_property
    def analysis(self) -> Analysis:
        """The analytics of the history, shared by all resources."""
        return Analysis(self.db)

    @functools.cached_property
    def tool_errors(self) -> ToolErrorCounts:
        """The numbers of failed tool calls, for lists that are sorted by them."""
        return ToolErrorCounts(self.db, self.analysis)
