"""The gateway runner as tests of hermes-agent reach into it.

They make one with `object.__new__(GatewayRunner)` and assign agents, adapters and a mock of the
session store to it. A real gateway has neither: its agents belong to the service, its adapters
to the connections, and its store writes a boundary event with every change.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

import hermes_plugin_host
from gateway import status
from gateway.config import Platform
from gateway.inbound.commands import RESET_REPLY, reset_route
from gateway.process.runner import FIRST_SWEEP_SECONDS, SWEEP_SECONDS, Gateway
from gateway.routing.session_routes import SessionRoutes
from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from gateway.platforms.base import MessageEvent
    from gateway.routing.sources import SessionEntry

log = logging.getLogger(__name__)


class GatewayRunner(Gateway):
    """A gateway with the attributes of hermes-agent's; it may be made without `__init__`."""

    _restart_drain_timeout = 180.0

    @cached_property
    def session_store(self) -> Any:
        """The routes: chats and their conversations."""
        return self.routes

    @cached_property
    def adapters(self) -> dict[Platform, Any]:
        """Adapters assigned from outside; empty in a real gateway."""
        return {}

    @cached_property
    def _running_agents(self) -> dict[str, Any]:
        """Agents assigned from outside, by session key; empty in a real gateway."""
        return {}

    async def _handle_reset_command(self, event: MessageEvent) -> str:
        """`/new` for a message: the reply to it."""
        await asyncio.to_thread(self._reset, event)
        return RESET_REPLY

    def _reset(self, event: MessageEvent) -> None:
        source, store = event.source, self.session_store
        if source is None:
            return
        key = store._generate_session_key(source)
        with store._lock:
            old: SessionEntry | None = store._entries.get(key)
        new = reset_route(store, key, lambda: self._stop_agent(key)) if old else None
        new = new or store.get_or_create_session(source)
        if not isinstance(store, SessionRoutes):
            platform = source.platform.value
            if old is not None:
                _invoke("on_session_finalize", session_id=old.session_id, platform=platform)
            _invoke("on_session_reset", session_id=new.session_id, platform=platform)

    def _stop_agent(self, session_key: str) -> None:
        agent = self._running_agents.pop(session_key, None)
        if agent is not None:
            attempt("stop turn", lambda: agent.interrupt("new conversation requested"))

    async def _session_expiry_watcher(self, interval: float = SWEEP_SECONDS) -> None:
        """End expired conversations, once each, and prune unused routes."""
        await asyncio.sleep(FIRST_SWEEP_SECONDS)
        while self._running:
            await asyncio.to_thread(attempt, "end expired conversations", self._end_expired)
            await asyncio.sleep(interval)

    def _end_expired(self) -> None:
        if isinstance(self.session_store, SessionRoutes):
            super()._end_expired()
        else:
            _end_expired_of(self.session_store)

    async def stop(self) -> None:
        """Stop the gateway, and the agents and adapters assigned from outside."""
        await self._stop_assigned()
        if hasattr(self, "routes"):
            await super().stop()
        else:
            status.write_runtime_status("stopped")
            status.remove_pid_file()

    async def _stop_assigned(self) -> None:
        """Wait for the assigned agents, finalize them and disconnect the assigned adapters."""
        deadline = time.monotonic() + self._restart_drain_timeout
        while self._running_agents and time.monotonic() < deadline:  # noqa: ASYNC110 - a dict
            await asyncio.sleep(0.05)
        await asyncio.to_thread(self._finalize_assigned)
        for adapter in list(self.adapters.values()):
            try:
                await adapter.disconnect()
            except (OSError, RuntimeError, asyncio.CancelledError) as error:
                log.warning("platform failed to shut down cleanly: %s", error)

    def _finalize_assigned(self) -> None:
        for agent in list(self._running_agents.values()):
            attempt("stop turn", functools.partial(agent.interrupt, "shutdown"))
            _invoke("on_session_finalize", session_id=agent.session_id, platform="gateway")
        self._running_agents.clear()


def _end_expired_of(store: Any) -> None:
    """End every conversation of a mock that its reset policy has expired, once."""
    store._ensure_loaded()
    with store._lock:
        entries: list[SessionEntry] = list(store._entries.values())
    for entry in entries:
        if entry.expiry_finalized or entry.suspended or not store._is_session_expired(entry):
            continue
        with store._lock:
            entry.expiry_finalized = True
            store._save()
        platform = _platform_of(entry)
        _invoke("on_session_finalize", session_id=entry.session_id, platform=platform)


def _platform_of(entry: SessionEntry) -> str:
    if isinstance(entry.platform, Platform):
        return entry.platform.value
    parts = entry.session_key.split(":")
    return parts[2] if len(parts) > 2 else "unknown"


def _invoke(hook: str, **facts: Any) -> None:
    """Call a hook; a failing plugin does not stop the gateway."""
    attempt(f"call {hook}", lambda: hermes_plugin_host.invoke_hook(hook, **facts))
