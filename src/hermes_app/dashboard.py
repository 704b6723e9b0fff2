"""The dashboard of a process: its parts, and how it sees the gateway and the models."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gateway import people, status
from gateway.outbound import direct_send
from gateway.platforms.connection_check import check_connection
from gateway.platforms.registry import PlatformRegistry, explain_missing
from gateway.process.config_loader import (
    Secrets,
    config_of_home,
    enabled_platforms,
    unavailable_platforms,
)
from hermes_agent.local import built_in
from hermes_agent.providers import selection
from hermes_core import log_file, paths
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.roles import Person, Role
from hermes_dashboard.app import Dashboard, create_app
from hermes_dashboard.caches import CachedValue
from hermes_dashboard.context import (
    DashboardContext,
    GatewayChat,
    GatewayError,
    GatewayPerson,
    GatewayStatus,
    PlatformFacts,
    PlatformStatus,
    PlatformTest,
    SelectableModel,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.status import RuntimePlatform
    from hermes_core.config.platform_spec import PlatformSpec
    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.context import GatewayAction
    from hermes_dashboard.page import Page
    from hermes_dashboard.plugins.apis import FindTabs
    from hermes_state.store import SessionDB

SHOWN_LOG_LEVELS: Final = frozenset({"warning", "error", "critical"})
TAIL_BYTES: Final = 1_000_000
KEEP_SECONDS: Final = 10.0


IS_CHANGING: Final = "The gateway is being started or stopped. Try again when that is done."


def app(
    db: SessionDB, access: Access, page: Page, tabs: FindTabs, *, is_demo: bool = False
) -> Dashboard:
    """Build the dashboard app over *db*."""
    reader, control = GatewayStatusReader(db), GatewayControl()
    parts = DashboardContext(
        db, paths.hermes_home(), reader, models, is_demo, control, GatewayAdministrator(db)
    )
    return create_app(parts, access, page, tabs=tabs)


class GatewayStatusReader:
    """The state of the gateway, read from its files and the store."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._configured = CachedValue(_configured_platforms, KEEP_SECONDS)

    def state(self) -> GatewayStatus:
        """Whether the gateway is running, since when, and the state of each platform."""
        pid = status.running_pid()
        if pid is None:
            return GatewayStatus(platforms=self._configured.get())
        runtime_status = status.read_runtime_status() or {}
        return GatewayStatus(
            is_running=True,
            pid=pid,
            started_at=runtime_status.get("start_time"),
            version=runtime_status.get("version"),
            platforms=[
                _platform(name, item) for name, item in runtime_status.get("platforms", {}).items()
            ],
            problems=status.live_problems(runtime_status, time.time()),
        )

    def errors(self, limit: int) -> list[GatewayError]:
        """Recent errors, newest first."""
        return list(deque(_entries(), maxlen=max(limit, 0)))[::-1]

    def chats(self, limit: int) -> list[GatewayChat]:
        """The chats with a conversation, latest first."""
        known = direct_send.list_channels(self._db, config_of_home())
        return [
            GatewayChat(
                key=item.session_key or "",
                platform=item.platform,
                name=item.name,
                kind=item.kind,
                session_id=item.session_id,
                last_active=item.last_active,
            )
            for item in known
            if item.session_id
        ][:limit]


def _configured_platforms() -> list[PlatformStatus]:
    """The platforms that the gateway would connect, and what is missing for them."""
    registry = PlatformRegistry.of_home()
    entries = enabled_platforms(config_of_home(), registry, Secrets())
    found = [PlatformStatus(entry.name, "stopped", missing_text(entry)) for entry in entries]
    unknown = unavailable_platforms(registry).items()
    return found + [PlatformStatus(name, "unavailable", reason) for name, reason in unknown]


def _platform(name: str, state: RuntimePlatform) -> PlatformStatus:
    return PlatformStatus(
        name=name,
        state=state.get("state") or "",
        detail=state.get("error_message") or "",
        account=state.get("account"),
        since=state.get("updated_at"),
    )


def _entries() -> Iterator[GatewayError]:
    """The warnings and errors at the end of the gateway log."""
    path = paths.logs_path() / log_file.GATEWAY_LOG_NAME
    if not path.exists():
        return
    with path.open("rb") as file:
        if path.stat().st_size > TAIL_BYTES:
            file.seek(-TAIL_BYTES, 2)
            file.readline()  # a partial line
        for line in file:
            entry = _entry(line)
            if entry is not None:
                yield entry


def _entry(line: bytes) -> GatewayError | None:
    try:
        entry = log_file.parse_line(line)
        at = datetime.fromisoformat(entry.at).timestamp()
    except ValueError:
        return None  # foreign or truncated line
    if entry.level not in SHOWN_LOG_LEVELS:
        return None
    return GatewayError(at, entry.level, entry.logger, entry.message)


def models() -> list[SelectableModel]:
    """The selectable models: the current one, local servers' and the built-in one."""
    choice = (
        selection.selected_model(ConfigFile.of_home().settings()) or selection.find_local_model()
    )
    available = [] if choice is None else [_model(choice.model, choice.server, is_current=True)]
    for server in selection.local_servers():
        names = selection.list_served_models(server)
        available += [_model(f"{server.base_url}#{name}", server.name) for name in names]
    home = built_in.BuiltIn.of_home()
    if choice is None or not choice.is_built_in:
        available.append(
            _model(built_in.MODEL_NAME, "built-in", is_here=home.is_installed, detail="demo")
        )
    return available


def _model(
    name: str, provider: str, *, is_current: bool = False, is_here: bool = True, detail: str = ""
) -> SelectableModel:
    return SelectableModel(name, provider, is_current, is_here, detail)


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
