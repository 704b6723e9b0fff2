"""Every kind of boundary is stored with the change and delivered to plugins once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from gateway.config import GatewayConfig, Platform, SessionResetPolicy
from gateway.process.runner import Gateway
from gateway.routing.sources import SessionSource
from gateway.session import SessionStore, local_now
from hermes_core.config.file import ConfigFile
from hermes_core.hooks import BoundaryKind
from hermes_plugin_host import delivery
from hermes_plugin_host.manager import PluginManager
from hermes_state.upkeep.crash_recovery import release_process
from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_state import SessionDB

pytestmark = pytest.mark.clock

RECORDER_CODE = """
def register(ctx):
    def record(hook, **fields):
        with open({path!r}, "a") as file:
            file.write(f"{{hook}} {{fields.get('kind', '-')}} {{fields['session_id']}}" + chr(10))
    for hook in ("on_session_finalize", "on_session_reset", "on_session_boundary"):
        ctx.register_hook(hook, lambda hook=hook, **fields: record(hook, **fields))
"""
IDLE = SessionResetPolicy("idle", idle_minutes=60)
SOURCE = SessionSource(Platform.TELEGRAM, "c1", user_id="u1")


class BoundaryScenario:
    """A route with a conversation, and the events that end it."""

    def __init__(self, db: SessionDB, folder: Path, policy: SessionResetPolicy) -> None:
        self.db = db
        self.routes = SessionStore(folder, GatewayConfig(default_reset_policy=policy))
        self.routes._db = db
        self.entry = self.routes.get_or_create_session(SOURCE)
        db.append_message(self.entry.session_id, "user", "hello")

    @property
    def key(self) -> str:
        return self.entry.session_key

    def advance(self, **span: int) -> None:
        self.routes.update_session(self.key, updated_at=local_now() - timedelta(**span))

    def message(self) -> None:
        self.routes.get_or_create_session(SOURCE)

    def watch(self) -> None:
        runner = object.__new__(Gateway)
        runner.db, runner.routes = self.db, self.routes
        runner._end_expired()

    def idle(self) -> None:
        self.advance(hours=3)
        self.message()

    def daily(self) -> None:
        self.advance(days=2)
        self.message()

    def expire(self) -> None:
        self.advance(hours=3)
        self.watch()

    def suspended(self) -> None:
        self.routes.suspend_session(self.key)
        self.message()

    def resume(self) -> None:
        self.db.create_session("older", "telegram", is_owned=False)
        self.routes.switch_session(self.key, "older")

    def branch(self) -> None:
        new = self.db.edits.branch(self.entry.session_id)
        self.routes.switch_session(self.key, new, "branched")

    def hand_off(self) -> None:
        self.db.create_session("terminal", "cli", is_owned=False)
        self.routes.switch_session(self.key, "terminal", "handoff")

    def compact(self) -> None:
        summary = [{"role": "user", "content": "a summary"}]
        self.db.archive_and_compact(self.entry.session_id, summary)

    def prune(self) -> None:
        self.advance(days=100)
        self.routes.prune_old_entries(90)


SCENARIOS: dict[
    str, tuple[BoundaryKind, Callable[[BoundaryScenario], None], bool, SessionResetPolicy]
] = {
    "/new": (BoundaryKind.NEW, lambda w: w.routes.reset_session(w.key), True, IDLE),
    "a pause": (BoundaryKind.IDLE, BoundaryScenario.idle, True, IDLE),
    "the hour": (
        BoundaryKind.DAILY,
        BoundaryScenario.daily,
        True,
        SessionResetPolicy("daily", at_hour=0),
    ),
    "expiry": (BoundaryKind.EXPIRY, BoundaryScenario.expire, True, IDLE),
    "a suspended message": (BoundaryKind.SUSPEND, BoundaryScenario.suspended, True, IDLE),
    "/resume": (BoundaryKind.RESUME, BoundaryScenario.resume, True, IDLE),
    "/branch": (BoundaryKind.BRANCH, BoundaryScenario.branch, True, IDLE),
    "a hand-off": (BoundaryKind.HANDOFF, BoundaryScenario.hand_off, True, IDLE),
    "compaction": (BoundaryKind.COMPACTION, BoundaryScenario.compact, False, IDLE),
    "prune": (BoundaryKind.PRUNE, BoundaryScenario.prune, True, IDLE),
    "the end of the gateway": (
        BoundaryKind.SHUTDOWN,
        lambda w: w.db.end_session(w.entry.session_id, "shutdown"),
        True,
        IDLE,
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_boundary_is_announced_and_marked_final_when_it_is(
    name: str, db: SessionDB, hermes_home: Path, tmp_path: Path
) -> None:
    kind, act, is_final, policy = SCENARIOS[name]
    path = tmp_path / "boundaries"
    make_plugin(hermes_home, "recorder", RECORDER_CODE.format(path=str(path)))
    ConfigFile.of_home().set("plugins.enabled", "recorder")
    scenario = BoundaryScenario(db, tmp_path, policy)
    previous = scenario.entry.session_id
    act(scenario)
    for _ in range(2):  # a delivered event is not delivered again
        delivery.Delivery(db.boundaries, PluginManager.of_home()).deliver_due()
    lines = path.read_text().splitlines()
    assert f"on_session_boundary {kind} " in "\n".join(lines)
    assert lines.count(f"on_session_finalize - {previous}") == int(is_final)


def test_a_repeated_announcement_is_final_once(db: SessionDB, tmp_path: Path) -> None:
    scenario = BoundaryScenario(db, tmp_path, IDLE)
    scenario.expire()
    scenario.watch()
    scenario.message()  # the reset at access, after the watcher
    finals = [boundary for boundary in db.boundaries.recent() if boundary.is_final]
    assert [event.session_id for event in finals] == [scenario.entry.session_id]


def test_a_conversation_that_is_resumed_is_finalized_again_when_it_ends_again(
    db: SessionDB, tmp_path: Path
) -> None:
    scenario = BoundaryScenario(db, tmp_path, SessionResetPolicy())
    first = scenario.entry.session_id
    db.end_session(first, "shutdown")
    scenario.message()  # after the restart
    assert (db.get_session(first) or {})["ended_at"] is None
    scenario.routes.reset_session(scenario.key)
    finals = [boundary.epoch for boundary in db.boundaries.recent(first) if boundary.is_final]
    assert sorted(finals) == [0, 1]


def test_no_end_is_announced_for_an_empty_conversation(db: SessionDB) -> None:
    db.end_session("unknown", "shutdown")
    assert db.boundaries.recent() == []


def test_a_crash_ends_the_sessions_of_the_process(db: SessionDB) -> None:
    db.create_session("mine", "cli")
    db.engine.write(lambda tx: release_process(tx, db.identity.process_id, db.ids))
    assert [boundary.kind for boundary in db.boundaries.recent("mine")] == [BoundaryKind.CRASH]


def test_every_kind_is_tested_here() -> None:
    covered = {scenario[0] for scenario in SCENARIOS.values()} | {BoundaryKind.CRASH}
    assert covered == set(BoundaryKind)
