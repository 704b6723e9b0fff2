"""A gateway at work: platforms, the inbox, conversations and the outbox, put together."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import hermes_plugin_host
from gateway import status
from gateway.inbound import attachments, prompt_format
from gateway.inbound.access_control import AccessControl
from gateway.inbound.commands import RESTARTED_BY, ChatCommands
from gateway.inbound.inbox_workers import MOST_AT_ONCE, InboxWorkers
from gateway.inbound.message_handler import MessageHandler
from gateway.inbound.questions import ChatQuestions
from gateway.inbound.receiver import MessageReceiver
from gateway.inbound.turn_runner import TurnRunner
from gateway.inbound.usage_limits import Limits
from gateway.outbound.live_reply import LiveReply
from gateway.outbound.sender import Sender
from gateway.process.connections import Connections
from gateway.process.health import GatewayMetrics
from gateway.routing.conversation_cache import ConversationCache, PlaceDescription
from gateway.routing.handoff_worker import HandoffWorker
from hermes_core.config.file import ConfigFile
from hermes_core.config.probe import may_be_set
from hermes_core.isolate import Step, attempt, run_all
from hermes_plugin_host.delivery import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.config import GatewayConfig
    from gateway.platforms.base import Adapter, MessageEvent
    from gateway.routing.entries import SessionEntry
    from gateway.session import SessionStore
    from hermes_conversation.pending_input import BusyMode
    from hermes_state import SessionDB

log = logging.getLogger(__name__)

LONGEST_TEXT: Final = 4000
GRACE_SECONDS: Final = 5.0
EXPORT_SECONDS: Final = 30.0
LEISURE: Final = 60  # of many routes the file takes seconds: a sixtieth of the time at most
CONNECT_SECONDS: Final = 10.0
LINES: Final = 4  # replies of a platform on their way at once; those of a chat keep their order
MAIL_DAYS: Final = 30.0  # far longer than any platform sends a message again
HAND_OFF_SECONDS: Final = 2.0
BACK: Final = "I am back."


class GatewayService:
    """Everything between a platform's update and its reply."""

    def __init__(
        self,
        db: SessionDB,
        places: SessionStore,
        config: GatewayConfig,
        cwd: Path | None = None,
        restart: Callable[[], None] = lambda: None,
    ) -> None:
        settings = ConfigFile.of_home().settings()
        self._db = db
        self._places = places
        self.meters = GatewayMetrics()
        self.connections = Connections(self._received, self._note_states)
        self.adapters = self.connections.adapters
        self._senders: dict[str, Sender] = {}
        self._sending: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._delivery: Delivery | None = None
        self._is_up = self._is_leaving = False
        self._door = AccessControl(db, config)
        self.questions = ChatQuestions(self._ask)
        self.conversations = ConversationCache(
            db, cwd or Path.home(), self.questions, self._describe
        )
        commands = ChatCommands(db, places, self.conversations, self.questions, self._door, restart)
        places.spare(self._is_at_work)
        self._showing = LiveReply(db, self.adapters, config.streaming)
        self._playing = TurnRunner(
            db,
            self.conversations,
            self.questions,
            self._showing,
            Limits.of(db, settings),
            attachments.writer_of(settings) if config.stt_enabled else None,
        )
        attempts = settings.get_int("gateway.attempts")
        self.handling = MessageHandler(
            db, places, self._playing, commands, self._longest_text, attempts
        )
        most = config.max_concurrent_sessions or MOST_AT_ONCE
        self.turns = InboxWorkers(db, self._handle, self._wake_senders, most)
        self.intake = MessageReceiver(
            db,
            self._door,
            places,
            self.conversations,
            commands,
            self.turns.wake,
            self.adapters,
            cast("BusyMode", settings.get_str("agent.busy_input")),
        )

    async def _received(self, account: str, event: MessageEvent) -> None:
        await self.intake.receive(account, event)
        if event.source is not None:
            self.meters.received.labels(event.source.platform.value).inc()

    def _note_states(self) -> None:
        status.write_runtime_status(self.state, platforms=self.connections.states)

    @property
    def state(self) -> str:
        """How it fares, in the words of the file with the gateway's state."""
        if self._is_leaving:
            return "draining"
        if not self._is_up:
            return "starting"
        return "running" if self.connections.is_whole else "degraded"

    def _longest_text(self, platform: str) -> int:
        adapter = self.adapters.get(platform)
        return adapter.abilities.longest_text if adapter else LONGEST_TEXT

    def _wake_senders(self) -> None:
        for sender in self._senders.values():
            sender.wake()

    def _note_sent(self, platform: str, outcome: str) -> None:
        self.meters.sent.labels(platform, outcome).inc()

    def _handle(self, row: dict[str, Any]) -> None:
        with self.meters.turn_seconds.time():
            self.handling.handle(row)

    def _describe(self, entry: SessionEntry) -> PlaceDescription:
        """What a conversation is told about its place, and how far it may look back."""
        origin = entry.origin
        if origin is None:
            return PlaceDescription("", entry.session_key)
        about = prompt_format.about(origin, is_shared=self._places.is_shared(entry))
        return PlaceDescription(about, "" if self._door.is_owner(origin) else entry.session_key)

    def _is_at_work(self, session_key: str) -> bool:
        entry = self._places.get(session_key)
        return entry is not None and self.conversations.running(entry.session_id) is not None

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

    # The beginning

    async def start(
        self, adapters: Mapping[str, Adapter], refused: Mapping[str, str] | None = None
    ) -> None:
        """Connect the platforms and begin to work.

        Those that cannot be connected are tried again and again, while the others work.
        """
        self._showing.start()
        for name, adapter in adapters.items():
            is_connected = functools.partial(self.connections.is_connected, name)
            self._senders[name] = Sender(self._db, name, adapter, self._note_sent, is_connected)
        self._sending = [
            asyncio.create_task(one.run()) for one in self._senders.values() for _ in range(LINES)
        ]
        working = (self.turns.run(), self._keep_house(), self._take_over())
        self._tasks = [asyncio.create_task(one) for one in working]
        if may_be_set("plugins.enabled"):
            self._delivery = Delivery(self._db, hermes_plugin_host.active())
            self._delivery.start()
        for name, reason in (refused or {}).items():
            self.connections.refuse(name, reason)
        self.connections.start(adapters)
        await asyncio.to_thread(self._say_that_we_are_back)
        await self.connections.settled(CONNECT_SECONDS)
        self._is_up = True

    def _say_that_we_are_back(self) -> None:
        """Tell whoever asked for the restart."""
        note = self._db.get_meta(RESTARTED_BY)
        if note is not None:
            found = json.loads(note)
            key = f"restart:{self._db.ids.new()}"
            self._db.owe_reply(
                key,
                platform=found["platform"],
                target=found["target"],
                payload={"text": BACK},
            )
            self._db.delete_meta(RESTARTED_BY)

    async def _keep_house(self) -> None:
        """Now and then: the file for people, and what other processes left when they died."""
        took = 0.0
        while True:
            await asyncio.sleep(max(EXPORT_SECONDS, LEISURE * took))
            began = time.monotonic()
            await asyncio.to_thread(self._tidy_up)
            took = time.monotonic() - began

    async def _take_over(self) -> None:
        """Carry out hand-offs soon after they were asked for."""
        handing = HandoffWorker(self._db, self._places, self.adapters)
        while True:
            await asyncio.sleep(HAND_OFF_SECONDS)
            step = Step("hand over conversations", handing.carry_out)
            await asyncio.to_thread(attempt, step)

    def _tidy_up(self) -> None:
        run_all(
            [
                Step("write sessions.json", self._places.export_if_due),
                Step("sweep after crashes", self._db.sweep),
                Step("forget old mail", lambda: self._db.forget_mail(MAIL_DAYS)),
            ]
        )

    # The end

    async def stop(self, drain_seconds: float) -> None:
        """Finish what runs or give it back, send what is owed, let go of the platforms.

        What comes in meanwhile is kept, and answered after the next start.
        """
        self._is_leaving = self._playing.is_leaving = True
        await asyncio.to_thread(self._ask_no_more)
        if not await self.turns.stop(drain_seconds):
            await self._break_off()
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
        await asyncio.to_thread(attempt, Step("write sessions.json", self._places.export_if_due))

    def _ask_no_more(self) -> None:
        """Turns that wait for an answer are broken off: they ask again after the next start."""
        for session_key in self.questions.places():
            entry = self._places.get(session_key)
            conversation = self.conversations.running(entry.session_id) if entry else None
            if conversation is not None:
                conversation.agent.interrupt("shutdown")
            self.questions.give_up(session_key)

    async def _break_off(self) -> None:
        """Stop the turns that run: their messages are given back, their conversations end.

        They are opened again when the messages are handled after the next start.
        """
        running = self.conversations.all_running()
        for conversation in running:
            conversation.agent.interrupt("shutdown")
        await self.turns.stop(GRACE_SECONDS)
        for conversation in running:
            await asyncio.to_thread(self._db.end_session, conversation.session_id, "shutdown")
