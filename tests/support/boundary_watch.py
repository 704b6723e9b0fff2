"""Compares the stored boundary events of a test's home with what a plugin received."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway import status
from gateway.config import GatewayConfig
from gateway.platforms.local import socket_path
from gateway.session import SessionStore
from hermes_core.config.file import ConfigFile
from hermes_plugin_host.delivery import Delivery
from hermes_plugin_host.manager import PluginManager
from hermes_state import SessionDB
from support.plugin_folders import RECORDER_PLUGIN, make_plugin, recorded_calls
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

KEY = "agent:main:local:dm:c1"


class Boundaries(NamedTuple):
    """What a plugin received, in order: kinds with their session, finalized and new sessions."""

    events: list[tuple[str, str]]
    finalized: list[str]
    reset: list[str]


class BoundaryWatch:
    """Installs a recording plugin and reads its record."""

    def __init__(self, home: Path) -> None:
        self._home = home
        make_plugin(home, "recorder", RECORDER_PLUGIN)
        ConfigFile.of_home().set("plugins.enabled", "recorder")

    def _calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in recorded_calls(self._home)]

    def wait_for(self, kind: str, count: int = 1) -> None:
        """Wait until events of a kind are stored."""

        def is_stored() -> bool:
            with SessionDB(is_recovering=False) as db:
                return sum(event.kind == kind for event in db.boundaries.recent()) >= count

        wait_until(is_stored)

    def read(self) -> Boundaries:
        """Everything announced so far; each stored event has reached the plugin exactly once."""
        with SessionDB() as db:
            if status.running_pid() is None:  # two dispatchers would not keep the order
                Delivery(db.boundaries, PluginManager.of_home()).deliver_due()
            wait_until(lambda: db.boundaries.pending() == 0)
            stored = Counter(event.event_id for event in db.boundaries.recent(limit=-1))
        calls = self._calls()
        received = [call for call in calls if call["hook"] == "on_session_boundary"]
        announced = Counter(call["event_id"] for call in received)
        assert announced == stored, (received, stored)
        for call in calls:
            if call["hook"] in {"on_session_finalize", "on_session_reset"}:
                assert list(call) == ["hook", "session_id", "platform"]
        return Boundaries(
            [(call["kind"], call["session_id"]) for call in received],
            [call["session_id"] for call in calls if call["hook"] == "on_session_finalize"],
            [call["session_id"] for call in calls if call["hook"] == "on_session_reset"],
        )


def routed(key: str = KEY) -> str:
    """The conversation of a chat."""
    with SessionDB(is_recovering=False) as db:
        route = db.routes.of_key(key)
    assert route is not None
    return route.session_id


def change_route(**fields: Any) -> None:
    """Change the entry of the chat while no gateway runs."""
    with SessionDB() as db:
        store = SessionStore(socket_path().parent, GatewayConfig())
        store._db = db
        store.update_session(KEY, **fields)
