"""What the dashboard is given of rooms it does not know: the gateway and the models."""

from __future__ import annotations

import json
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from gateway import status
from gateway.outbound import channel_directory
from gateway.process.config_loader import config_of_home
from hermes_agent.local import built_in
from hermes_agent.providers import selection
from hermes_cli.commands.models.command import where
from hermes_core import log_file, paths
from hermes_core.config.file import ConfigFile
from hermes_dashboard.app import Dashboard, create_app
from hermes_dashboard.context import Parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.page import Page
    from hermes_dashboard.plugins.apis import Find
    from hermes_state import SessionDB

SERIOUS: Final = frozenset({"warning", "error", "critical"})
TAIL_BYTES: Final = 1_000_000


def app(
    db: SessionDB, access: Access, page: Page, tabs: Find, *, is_demo: bool = False
) -> Dashboard:
    """The dashboard over *db*, with everything it needs."""
    parts = Parts(db, paths.hermes_home(), GatewayView(db), models, is_demo)
    return create_app(parts, access, page, tabs=tabs)


class GatewayView:
    """The chat gateway, seen from outside: its files and the store."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def state(self) -> dict[str, Any]:
        """Whether it runs, since when, and how each platform is doing."""
        pid = status.running_pid()
        found = (status.read_runtime_status() or {}) if pid is not None else {}
        platforms = found.get("platforms")
        return {
            "is_running": pid is not None,
            "pid": pid,
            "started_at": found.get("start_time"),
            "version": found.get("version"),
            "platforms": [
                _platform(name, one)
                for name, one in (platforms if isinstance(platforms, dict) else {}).items()
                if isinstance(one, dict)
            ],
        }

    def errors(self, limit: int) -> list[dict[str, Any]]:
        """What went wrong lately, the newest first."""
        return list(deque(_entries(), maxlen=max(limit, 0)))[::-1]

    def chats(self, limit: int) -> list[dict[str, Any]]:
        """The places that have a conversation, the latest first."""
        known = channel_directory.channels(self._db, config_of_home())
        return [
            {
                "key": one.session_key,
                "platform": one.platform,
                "name": one.name,
                "kind": one.kind,
                "session_id": one.session_id,
                "last_active": one.last_active,
            }
            for one in known
            if one.session_id
        ][:limit]


def _platform(name: str, state: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "state": str(state.get("state") or ""),
        "detail": str(state.get("error_message") or ""),
        "account": state.get("account"),
        "since": state.get("updated_at"),
    }


def _entries() -> Iterator[dict[str, Any]]:
    """The serious entries at the end of the gateway's log."""
    path = paths.logs_path() / log_file.GATEWAY
    if not path.exists():
        return
    with path.open("rb") as file:
        if path.stat().st_size > TAIL_BYTES:
            file.seek(-TAIL_BYTES, 2)
            file.readline()  # the rest of a line
        for line in file:
            entry = _entry(line)
            if entry is not None:
                yield entry


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
        if found.get("level") not in SERIOUS:
            return None
        at = datetime.fromisoformat(str(found["at"])).timestamp()
    except (ValueError, AttributeError, KeyError):
        return None  # not one of ours, or cut off
    words = {name: str(found.get(name, "")) for name in ("level", "logger", "message")}
    return {"at": at, **words}


def models() -> list[dict[str, Any]]:
    """Models by the names that choose them: the chosen one, local servers', the built-in one."""
    choice = selection.chosen(ConfigFile.of_home().settings()) or selection.found_here()
    found = [] if choice is None else [_model(choice.model, where(choice), is_current=True)]
    for server in selection.local_servers():
        names = selection.served(server)
        found += [_model(f"{server.base_url}#{one}", server.name) for one in names]
    home = built_in.BuiltIn.of_home()
    if choice is None or choice.api != "local":
        found.append(_model(built_in.NAME, "built in", is_here=home.is_here, detail="a toy"))
    return found


def _model(
    name: str, provider: str, *, is_current: bool = False, is_here: bool = True, detail: str = ""
) -> dict[str, Any]:
    return {
        "name": name,
        "provider": provider,
        "is_current": is_current,
        "is_here": is_here,
        "detail": detail,
    }
