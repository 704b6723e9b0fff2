"""The parts of the gateway that only the seed tests reach: a runner assembled by hand."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from gateway.config import GatewayConfig, Platform
from gateway.inbound.commands import RESET_REPLY
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionEntry, SessionSource, build_session_key
from gateway.run import GatewayRunner

SOURCE = SessionSource(Platform.TELEGRAM, "chat", user_id="user", chat_type="dm")
KEY = build_session_key(SOURCE)


def entry(session_id: str, age: timedelta = timedelta()) -> SessionEntry:
    moment = datetime.now().astimezone() - age
    return SessionEntry(KEY, session_id, moment, moment, platform=Platform.TELEGRAM)


class ForeignStore:
    """A session store that is not ours: it has no boundary events."""

    def __init__(self, *entries: SessionEntry) -> None:
        self._entries = {item.session_key: item for item in entries}
        self._lock = threading.Lock()
        self.saves = 0

    def _ensure_loaded(self) -> None: ...

    def _save(self) -> None:
        self.saves += 1

    def _generate_session_key(self, source: SessionSource) -> str:
        return build_session_key(source)

    def _is_session_expired(self, session: SessionEntry) -> bool:
        return datetime.now().astimezone() - session.updated_at > timedelta(hours=1)

    def reset_session(self, session_key: str, **_facts: Any) -> SessionEntry | None:
        return entry("new") if session_key in self._entries else None

    def get_or_create_session(self, _source: SessionSource) -> SessionEntry:
        return entry("first")


class AssignedAgent:
    """An agent that a caller put into the runner."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.reasons: list[str] = []

    def interrupt(self, reason: str) -> None:
        self.reasons.append(reason)


class AssignedAdapter:
    """An adapter that does not disconnect cleanly."""

    def __init__(self) -> None:
        self.calls = 0

    async def disconnect(self) -> None:
        self.calls += 1
        raise OSError("the socket is gone")


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Records every hook call under the module path of the original."""
    calls: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        "hermes_cli.plugins.invoke_hook", lambda name, **fields: calls.append((name, fields))
    )
    return calls


def runner(store: Any, **agents: AssignedAgent) -> Any:
    result: Any = object.__new__(GatewayRunner)
    result.config = GatewayConfig()
    result.session_store = store
    result._running_agents = dict(agents)
    result._restart_drain_timeout = 0.0
    return result


def new_command() -> MessageEvent:
    return MessageEvent(text="/new", source=SOURCE, message_id="1")


async def test_new_finalizes_the_old_session_before_it_announces_the_new_one(
    hooks: list[Any],
) -> None:
    assert (
        await runner(ForeignStore(entry("old")))._handle_reset_command(new_command()) == RESET_REPLY
    )
    assert hooks == [
        ("on_session_finalize", {"session_id": "old", "platform": "telegram"}),
        ("on_session_reset", {"session_id": "new", "platform": "telegram"}),
    ]


async def test_new_in_an_unknown_chat_only_announces_its_first_session(hooks: list[Any]) -> None:
    await runner(ForeignStore())._handle_reset_command(new_command())
    assert hooks == [("on_session_reset", {"session_id": "first", "platform": "telegram"})]


async def test_new_stops_only_the_turn_of_its_route(hooks: list[Any]) -> None:
    current, elsewhere = AssignedAgent("old"), AssignedAgent("other")
    result = runner(ForeignStore(entry("old")))
    result._running_agents = {KEY: current, "another": elsewhere}
    await result._handle_reset_command(new_command())
    assert len(current.reasons) == 1
    assert (elsewhere.reasons, list(result._running_agents)) == ([], ["another"])
    assert hooks


async def test_a_plugin_that_fails_does_not_stop_new(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: Any, **_facts: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("hermes_cli.plugins.invoke_hook", fail)
    assert (
        await runner(ForeignStore(entry("old")))._handle_reset_command(new_command()) == RESET_REPLY
    )


async def test_stop_finalizes_assigned_agents_and_survives_a_failing_adapter(
    hooks: list[Any], hermes_home: object
) -> None:
    agents = {"a": AssignedAgent("one"), "b": AssignedAgent("two")}
    result = runner(ForeignStore(), **agents)
    adapter = AssignedAdapter()
    result.adapters = {Platform.TELEGRAM: adapter}
    await result.stop()
    assert {fields["session_id"] for name, fields in hooks if name == "on_session_finalize"} == {
        "one",
        "two",
    }
    assert [agent.reasons for agent in agents.values()] == [["shutdown"], ["shutdown"]]
    assert (adapter.calls, result._running_agents) == (1, {})


def test_expired_sessions_are_finalized_once_and_suspended_ones_are_kept(
    hooks: list[Any],
) -> None:
    over = entry("over", timedelta(hours=2))
    result = runner(ForeignStore(over))
    result._end_expired()
    result._end_expired()
    assert hooks == [("on_session_finalize", {"session_id": "over", "platform": "telegram"})]
    assert (over.expiry_finalized, result.session_store.saves) == (True, 1)
    paused = entry("paused", timedelta(hours=2))
    paused.suspended = True
    runner(ForeignStore(paused))._end_expired()
    runner(ForeignStore(entry("fresh")))._end_expired()
    assert len(hooks) == 1
