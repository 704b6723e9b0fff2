"""A gateway at work: platforms, the inbox, conversations and the outbox, put together."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway import status
from gateway.commands import Commands
from gateway.connecting import Connections
from gateway.conversations import Conversations
from gateway.door import Door
from gateway.handling import Handling
from gateway.intake import Intake
from gateway.questions import ChatQuestions
from gateway.sending import Sender
from gateway.turns import MOST_AT_ONCE, Turns
from hermes_cli import plugins
from hermes_cli.plugins.delivery import Delivery
from hermes_core.config_file import ConfigFile
from hermes_core.isolate import Step, attempt
from hermes_core.mentions import is_mentioned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.config import GatewayConfig
    from gateway.platforms.base import Adapter, MessageEvent
    from gateway.session import SessionStore
    from hermes_state import SessionDB

log = logging.getLogger(__name__)

LONGEST_TEXT: Final = 4000
GRACE_SECONDS: Final = 5.0
EXPORT_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 10.0


class Service:
    """Everything between a platform's update and its reply."""

    def __init__(
        self, db: SessionDB, places: SessionStore, config: GatewayConfig, cwd: Path | None = None
    ) -> None:
        self._db = db
        self._places = places
        self.connections = Connections(self._received, self._note_states)
        self.adapters = self.connections.adapters
        self._senders: dict[str, Sender] = {}
        self._sending: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._delivery: Delivery | None = None
        self.questions = ChatQuestions(self._ask)
        self.conversations = Conversations(db, cwd or Path.home(), self.questions)
        commands = Commands(db, places, self.conversations, self.questions)
        settings = ConfigFile.of_home().settings()
        attempts = settings.get_int("gateway.attempts")
        self._handling = Handling(
            db, places, self.conversations, commands, self._longest_text, attempts
        )
        most = config.max_concurrent_sessions or MOST_AT_ONCE
        self.turns = Turns(db, self._handling.handle, self._wake_senders, most)
        interrupts = settings.get_str("agent.busy_input") == "interrupt"
        self.intake = Intake(
            db,
            Door(db, config),
            places,
            self.conversations,
            commands,
            self.turns.wake,
            interrupts=interrupts,
        )

    async def _received(self, account: str, event: MessageEvent) -> None:
        await self.intake.receive(account, event)

    def _note_states(self) -> None:
        status.write_runtime_status("running", platforms=self.connections.states)

    def _longest_text(self, platform: str) -> int:
        adapter = self.adapters.get(platform)
        return adapter.abilities.longest_text if adapter else LONGEST_TEXT

    def _wake_senders(self) -> None:
        for sender in self._senders.values():
            sender.wake()

    def _ask(self, session_key: str, text: str) -> None:
        """Ask a person in a chat; called from the thread of a turn."""
        entry = self._places.get(session_key)
        origin = entry.origin if entry else None
        if entry is None or origin is None:
            return
        self._db.owe_reply(
            f"question:{self._db.ids.new()}",
            platform=origin.platform.value,
            target={"chat_id": origin.chat_id, "thread_id": origin.thread_id},
            payload={"text": text},
            session_id=entry.session_id,
        )

    async def start(
        self, adapters: Mapping[str, Adapter], refused: Mapping[str, str] | None = None
    ) -> bool:
        """Connect the platforms and begin to work; whether all could be connected at once.

        Those that could not are tried again and again, while the others work.
        """
        for name, adapter in adapters.items():
            self._senders[name] = Sender(self._db, name, adapter)
        self._sending = [asyncio.create_task(one.run()) for one in self._senders.values()]
        working = (self.turns.run(), self._export())
        self._tasks = [asyncio.create_task(one) for one in working]
        if is_mentioned("plugins.enabled"):
            self._delivery = Delivery(self._db, plugins.active())
            self._delivery.start()
        for name, reason in (refused or {}).items():
            self.connections.refuse(name, reason)
        self.connections.start(adapters)
        return await self.connections.settled(CONNECT_SECONDS)

    async def _export(self) -> None:
        while True:
            await asyncio.sleep(EXPORT_SECONDS)
            await asyncio.to_thread(self._write_file)

    def _write_file(self) -> None:
        attempt(Step("write sessions.json", self._places.export_if_due))

    async def stop(self, drain_seconds: float) -> None:
        """Finish what runs or give it back, send what is owed, let go of the platforms.

        What comes in meanwhile is kept, and answered after the next start.
        """
        if not await self.turns.stop(drain_seconds):
            self._handling.is_leaving = True
            for desk in self.conversations.all_running():
                desk.agent.interrupt("shutdown")
            await self.turns.stop(GRACE_SECONDS)
        self.turns.close()
        for sender in self._senders.values():
            sender.stop()
        if self._sending:
            await asyncio.wait(self._sending, timeout=GRACE_SECONDS)
        await self.connections.close()
        for task in (*self._sending, *self._tasks):
            task.cancel()
        await asyncio.gather(*self._sending, *self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.conversations.close)
        if self._delivery is not None:
            await asyncio.to_thread(self._delivery.stop)
        await asyncio.to_thread(self._write_file)
