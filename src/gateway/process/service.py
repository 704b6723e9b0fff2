"""The gateway service: connects platforms, inbox, conversations and outbox."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from typing import TYPE_CHECKING, Final, cast

from gateway import status
from gateway.inbound import prompt_format, receiver
from gateway.inbound.access_control import AccessControl
from gateway.inbound.budgets import Budgets, UsageLimits
from gateway.inbound.commands import RESTART_REQUEST_KEY, ChatCommands, RestartRequest
from gateway.inbound.inbox_workers import MAX_CONCURRENT_TURNS, InboxWorkers
from gateway.inbound.message_handler import MessageHandler
from gateway.inbound.questions import ChatQuestions
from gateway.inbound.receiver import MessageReceiver
from gateway.inbound.turn_runner import RunningTurns, TurnRunner
from gateway.outbound import direct_send
from gateway.outbound.live_reply import LiveReplies
from gateway.outbound.sender import OutboxSender
from gateway.process.connections import Connections, PlatformLeases
from gateway.process.health import GatewayMetrics
from gateway.process.live_facts import WORKING_STATES, LiveFacts
from gateway.process.media_limits import MediaLimits, MediaPruning
from gateway.process.nodes import (
    answer_commands_of_missing,
    is_answered_anywhere,
    is_bound_to_node,
    owners_workspace,
)
from gateway.routing.conversation_cache import Chats, ConversationCache
from gateway.routing.handoff_worker import HandoffWorker
from gateway.schedules.run_handler import RunContext, ScheduledRunHandler
from gateway.schedules.scheduler import Scheduler
from gateway.schedules.targets import JobTargets
from gateway.supervision import Supervisor
from hermes_conversation import boundary_delivery, transcription
from hermes_conversation.agent_imports import BackgroundFollower
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.isolate import Step, attempt, run_all
from hermes_core.paths import hermes_home
from hermes_state.delivery.inbox import INBOX_TOPIC
from hermes_state.engine.process_identity import node_name
from hermes_state.schedules.rows import CRON

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gateway.config import GatewayConfig
    from gateway.platforms.base import Adapter, MessageEvent
    from gateway.routing.session_routes import SessionRoutes
    from gateway.status import RuntimePlatform
    from hermes_conversation.pending_input import BusyMode
    from hermes_core.clock import Clock
    from hermes_core.config.file import Settings
    from hermes_plugin_host.delivery import Delivery
    from hermes_state.delivery.rows import IncomingMessage
    from hermes_state.store import SessionDB

LOST_SECONDS: Final = 60.0  # a platform that is back sooner is not mentioned
LOST_NOTICE: Final = "Hermes: {platform} is not connected: {reason}"
BACK_NOTICE: Final = "Hermes: {platform} is connected again, after {minutes} min."


class OutageNotices:
    """Compares the states of the platforms; sends through the outbox.

    A notice to the lost platform itself arrives when that is back. Announced outages are stored:
    the gateway may be restarted before they end.
    """

    def __init__(
        self,
        db: SessionDB,
        config: GatewayConfig,
        targets: Sequence[str],
        clock: Callable[[], float] = time.time,  # of the wall: a loss may be older than the process
    ) -> None:
        self._db = db
        self._config = config
        self._targets = targets  # `platform:chat`, a home channel or the name of a chat
        self._clock = clock
        self._lost_since: dict[str, float] = {}
        self._key = f"gateway_outages:{node_name()}"
        stored = db.meta.get_meta(self._key) if targets else None
        self._announced: dict[str, float] = json.loads(stored or "{}")  # times of the losses

    def update(self, states: Mapping[str, RuntimePlatform]) -> None:
        """Send what has changed."""
        now = self._clock()
        for platform, state in states.items():
            if state.get("state") in WORKING_STATES:
                self._lost_since.pop(platform, None)
                self._announce_return(platform)
                continue
            lost_at = self._lost_since.setdefault(platform, now)
            if now - lost_at >= LOST_SECONDS and platform not in self._announced:
                reason = state.get("error_message") or state.get("state")
                self._send(LOST_NOTICE.format(platform=platform, reason=reason))
                self._announced[platform] = lost_at
                self._store()

    def _announce_return(self, platform: str) -> None:
        lost_at = self._announced.pop(platform, None)
        if lost_at is not None:
            minutes = max(1, round((self._clock() - lost_at) / 60))
            self._send(BACK_NOTICE.format(platform=platform, minutes=minutes))
            self._store()

    def _store(self) -> None:
        if self._targets:
            self._db.meta.set_meta(self._key, json.dumps(self._announced))

    def _send(self, text: str) -> None:
        for name in self._targets:
            try:
                channel = direct_send.find_channel(self._db, self._config, name)
            except UsageError as error:
                log.warning("gateway.notify: %s", error)
                continue
            self._db.outbox.add(
                f"notice:{self._db.ids.new()}",
                platform=channel.platform,
                target=channel.target(),
                payload={"text": text},
            )


log = logging.getLogger(__name__)

STOP_GRACE_SECONDS: Final = 5.0
EXPORT_SECONDS: Final = 30.0
SWEEPS_PER_TIMEOUT: Final = 4
EXPORT_PAUSE_FACTOR: Final = 60  # the pause is at least 60 times as long as the last export
FIRST_CONNECT_SECONDS: Final = 10.0
SENDERS_PER_PLATFORM: Final = 4  # the replies of one chat keep their order
MAIL_RETENTION_DAYS: Final = 30.0  # far longer than any platform redelivers a message
RUN_RETENTION_DAYS: Final = 365.0
API_REQUEST_RETENTION_DAYS: Final = 180.0  # an older transcript starts a conversation
HANDOFF_POLL_SECONDS: Final = 1.0
MISSING_NODE_REPLY: Final = (
    "This conversation works with files on {node}, which is not running. Your messages are "
    "answered when it is back, or after `hermes nodes release {node}` on another machine."
)
RESTARTED_REPLY: Final = "The gateway has restarted."


class GatewayService:
    """Handles messages from the platform update to the sent reply."""

    def __init__(
        self,
        db: SessionDB,
        routes: SessionRoutes,
        config: GatewayConfig,
        cwd: Path | None = None,
        restart: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
    ) -> None:
        """*clock* is that of scheduled jobs; without one it is the clock of the store."""
        settings = ConfigFile.of_home().settings()
        self._db = db
        self._routes = routes
        self.metrics = GatewayMetrics()
        db.engine.on_write = self.metrics.store_write_seconds.observe
        self.supervisor = Supervisor()
        # Other nodes may connect to the same accounts.
        is_alone = db.engine.database.is_file
        leases = None if is_alone else PlatformLeases(db, restart, self.supervisor)
        self.connections = Connections(
            self._receive, self._write_status, leases=leases, supervisor=self.supervisor
        )
        self.adapters = self.connections.adapters
        self._turns = RunningTurns(settings.get_int("agent.idle_seconds"))
        self.facts = LiveFacts(db, self.connections, self.supervisor, self._turns)
        self._senders: dict[str, OutboxSender] = {}
        self._sending: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._delivery: Delivery | None = None
        self._follower = BackgroundFollower(db, settings)
        self._stop_listening: Callable[[], None] = lambda: None
        # What a dead machine held is released soon after its timeout.
        timeout_seconds = db.engine.columns.process_timeout_seconds
        self._export_seconds = min(EXPORT_SECONDS, timeout_seconds / SWEEPS_PER_TIMEOUT)
        self._notices = OutageNotices(db, config, settings.get_list("gateway.notify"))
        self._media_pruning = MediaPruning(hermes_home() / "media", MediaLimits.of(settings))
        self._is_started = self._is_stopping = False
        self._access = AccessControl(db, config)
        self._budgets = Budgets.of(db, settings)
        cwd = cwd or owners_workspace(settings)
        self._build_conversations(config, settings, cwd)
        self._build_schedules(config, settings, cwd, clock or db.clock)
        self._build_inbox(config, settings, restart)

    def _build_conversations(self, config: GatewayConfig, settings: Settings, cwd: Path) -> None:
        """What runs a turn in the conversation of a chat."""
        chats = Chats(self._db, self._routes, self._access, self.connections)
        self.questions = ChatQuestions(
            chats.ask, stored=self._db.open_questions, session_of=chats.session_of
        )
        self.conversations = ConversationCache(
            self._db,
            cwd,
            self.questions,
            chats.describe,
            is_bound_to_node=is_bound_to_node(self._db, settings),
        )
        self._routes.set_busy_check(self._is_turn_running)
        self._live_replies = LiveReplies(self._db, self.adapters, config.streaming)
        self._turn_runner = TurnRunner(
            self._db,
            self.conversations,
            self.questions,
            self._live_replies,
            UsageLimits.of(settings),
            self._budgets,
            transcription.transcriber_of(settings) if config.stt_enabled else None,
            self._turns.progress,
        )

    def _build_schedules(
        self, config: GatewayConfig, settings: Settings, cwd: Path, clock: Clock
    ) -> None:
        """What starts and runs scheduled jobs."""
        targets = JobTargets(self._db, config, self._access)
        self.scheduled_runs = ScheduledRunHandler(
            self._db,
            RunContext(
                self._routes,
                self._access,
                targets,
                self._budgets,
                self.connections.max_text_chars,
                cwd,
                settings.get_int("gateway.job_failures"),
                clock,
                is_bound_to_node(self._db, settings),
                self._turns.progress,
            ),
        )
        self.scheduler = Scheduler(self._db, self._budgets, targets, self._wake_inbox, clock)

    def _build_inbox(
        self, config: GatewayConfig, settings: Settings, restart: Callable[[], None]
    ) -> None:
        """What receives messages, and handles them in order."""
        db, attempts = self._db, settings.get_int("gateway.attempts")
        commands = ChatCommands(
            db, self._routes, self.conversations, self.questions, self._access, restart
        )
        self.message_handler = MessageHandler(
            db,
            self._routes,
            self._turn_runner,
            commands,
            self.connections.max_text_chars,
            attempts,
            self._budgets,
            functools.partial(receiver.decide, gateway=self, routes=self._routes),
        )
        self.inbox_workers = InboxWorkers(
            db,
            self._handle,
            self._wake_senders,
            config.max_concurrent_sessions or MAX_CONCURRENT_TURNS,
            self._offer,
            has_other_nodes=not db.engine.database.is_file,
            max_attempts=attempts,
        )
        self.facts.count_suspects = lambda: self.inbox_workers.suspects
        self.receiver = MessageReceiver(
            db,
            self._access,
            self._routes,
            self.conversations,
            commands,
            self.inbox_workers,
            self.adapters,
            cast("BusyMode", settings.get_str("agent.busy_input")),
        )

    async def _receive(self, account: str, event: MessageEvent) -> None:
        kept = await receiver.filter_message(event, self, self._routes)
        if kept is not None:
            await self.receiver.receive(account, kept)
        if event.source is not None:
            self.metrics.received.labels(event.source.platform.value).inc()

    def _write_status(self) -> None:
        status.write_runtime_status(self.state, platforms=self.connections.states)

    async def beat(self) -> None:
        """Collect the live facts and write them to the state file."""
        facts = await self.facts.collect()
        notify = functools.partial(self._notices.update, facts["platforms"])
        await asyncio.to_thread(attempt, "send notices of outages", notify)
        try:
            status.write_runtime_status(self.state, **facts)
        except OSError as error:  # the disk may be full: the endpoints show it
            log.warning("state file not written: %s", error)

    async def _run_heartbeat(self) -> None:
        while True:
            await self.beat()
            await asyncio.sleep(status.HEARTBEAT_SECONDS)

    @property
    def state(self) -> str:
        """The state, as in gateway_state.json."""
        if self._is_stopping:
            return "draining"
        if not self._is_started:
            return "starting"
        return "running" if self.connections.all_connected else "degraded"

    def _wake_from_thread(self, loop: asyncio.AbstractEventLoop, topic: str) -> None:
        """Look for what another node has stored."""
        wake = self.inbox_workers.wake if topic == INBOX_TOPIC else self._wake_senders
        loop.call_soon_threadsafe(wake)

    def _wake_inbox(self) -> None:
        self.inbox_workers.wake()

    def _wake_senders(self) -> None:
        for sender in self._senders.values():
            sender.wake()

    def _count_attempt(self, platform: str, outcome: str) -> None:
        self.metrics.sent.labels(platform, outcome).inc()

    def _handle(self, message: IncomingMessage) -> None:
        self._turns.start(message.inbox_id)
        try:
            with self.metrics.turn_seconds.time():
                if message.platform == CRON:
                    self.scheduled_runs.handle(message)
                else:
                    self.message_handler.handle(message)
        finally:
            self._turns.end(message.inbox_id)

    def _offer(self, message: IncomingMessage) -> None:
        if message.platform == CRON:  # a run waits for the one before it
            self.inbox_workers.note_offered(message.inbox_id)
        else:
            self.receiver.offer_stored(message)

    def _is_turn_running(self, session_key: str) -> bool:
        entry = self._routes.get(session_key)
        return entry is not None and self.conversations.running(entry.session_id) is not None

    # Start

    async def start(
        self,
        adapters: Mapping[str, Adapter],
        refused: Mapping[str, str] | None = None,
        account_keys: Mapping[str, str] | None = None,
    ) -> None:
        """Connect the platforms and handle messages.

        Platforms that cannot be connected are retried while the others work.
        """
        self._live_replies.start()
        wake = functools.partial(self._wake_from_thread, asyncio.get_running_loop())
        self._stop_listening = self._db.engine.database.listen(wake)
        for name, adapter in adapters.items():
            is_connected = functools.partial(self.connections.is_connected, name)
            self._senders[name] = OutboxSender(
                self._db, name, adapter, self._count_attempt, is_connected
            )
        start = self.supervisor.start
        self._sending = [
            start(f"{name} sender {number}", sender.run)
            for name, sender in self._senders.items()
            for number in range(1, SENDERS_PER_PLATFORM + 1)
        ]
        self._tasks = [
            start("inbox", self.inbox_workers.run),
            start("maintenance", self._run_maintenance),
            start("hand-offs", self._run_handoffs),
            start("schedules", self.scheduler.run),
            start("heartbeat", self._run_heartbeat),
        ]
        if boundary_delivery.has_consumers():
            self._delivery = boundary_delivery.make_delivery(self._db)
            self._delivery.start()
        self._follower.start()
        for name, reason in (refused or {}).items():
            self.connections.refuse(name, reason)
        self.connections.start(adapters, account_keys)
        await asyncio.to_thread(self._announce_restart)
        await self.connections.wait_for_first_attempts(FIRST_CONNECT_SECONDS)
        self._is_started = True

    def _announce_restart(self) -> None:
        """Reply to the user who requested the restart."""
        request = self._db.meta.get_meta(RESTART_REQUEST_KEY)
        if request is not None:
            requester: RestartRequest = json.loads(request)
            key = f"restart:{self._db.ids.new()}"
            self._db.outbox.add(
                key,
                platform=requester["platform"],
                target=requester["target"],
                payload={"text": RESTARTED_REPLY},
            )
            self._db.meta.delete(RESTART_REQUEST_KEY)

    async def _run_maintenance(self) -> None:
        """Export the routes and clean up after dead processes, periodically."""
        seconds = 0.0
        while True:
            await asyncio.sleep(max(self._export_seconds, EXPORT_PAUSE_FACTOR * seconds))
            started = time.monotonic()
            await asyncio.to_thread(self._maintain)
            seconds = time.monotonic() - started

    async def _run_handoffs(self) -> None:
        """Run hand-offs, and commands in chats of missing nodes, soon after they are requested."""
        worker = HandoffWorker(self._db, self._routes, self.adapters, self._access.has_all_history)
        while True:
            await asyncio.sleep(HANDOFF_POLL_SECONDS)
            steps = [
                Step("run hand-offs", worker.run_pending),
                Step("answer commands of missing nodes", self._answer_commands),
                Step("release what waits for a budget", self._budgets.release),
            ]
            await asyncio.to_thread(run_all, steps)

    def _answer_commands(self) -> None:
        answer_commands_of_missing(self._db, self.inbox_workers)

    def _maintain(self) -> None:
        run_all(
            [
                Step("write sessions.json", self._routes.export_if_due),
                Step("release rows of dead processes", self._db.sweep),
                Step("announce missing nodes", self._announce_missing_nodes),
                Step(
                    "delete old inbox and outbox rows",
                    lambda: self._db.chats.forget_mail(MAIL_RETENTION_DAYS),
                ),
                Step("delete old media files", self._media_pruning.run_if_due),
                Step("end scheduled runs", self.scheduled_runs.end_conversations),
                Step(
                    "delete old scheduled runs",
                    lambda: self._db.schedules.forget(RUN_RETENTION_DAYS),
                ),
                Step(
                    "delete old API requests",
                    lambda: self._db.api_requests.prune(API_REQUEST_RETENTION_DAYS),
                ),
            ]
        )

    def _announce_missing_nodes(self) -> None:
        """Tell people whose conversation works on a node that is down, once per message."""
        is_alone = self._db.engine.database.is_file
        for message in [] if is_alone else self._db.nodes.waiting_for_nodes():
            if message.platform == CRON:
                continue  # the list of jobs shows it
            if not message.is_oldest or is_answered_anywhere(message):
                continue
            event = prompt_format.decode_row(message)
            source = event.source if event else None
            if source is not None:
                self._db.outbox.add(
                    f"node:{message.inbox_id}",
                    platform=message.platform,
                    target={"chat_id": source.chat_id, "thread_id": source.thread_id},
                    payload={"text": MISSING_NODE_REPLY.format(node=message.node)},
                    inbox_id=message.inbox_id,
                )

    # Stop

    async def stop(self, drain_seconds: float) -> None:
        """Finish running turns or release their messages, send due replies, disconnect.

        Messages that arrive meanwhile are stored and answered after the next start.
        """
        self._is_stopping = self._turn_runner.is_stopping = True
        self._stop_listening()
        await asyncio.to_thread(self._cancel_questions)
        if not await self.inbox_workers.stop(drain_seconds):
            await self._interrupt_turns()
        self.inbox_workers.close()
        for sender in self._senders.values():
            sender.stop()
        if self._sending:
            await asyncio.wait(self._sending, timeout=STOP_GRACE_SECONDS)
        await self.connections.close()
        for task in (*self._sending, *self._tasks):
            task.cancel()
        await asyncio.gather(*self._sending, *self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.conversations.close)
        await asyncio.to_thread(self._follower.stop)
        if self._delivery is not None:
            await asyncio.to_thread(self._delivery.stop)
        await asyncio.to_thread(attempt, "write sessions.json", self._routes.export_if_due)
        await asyncio.to_thread(attempt, "store settlements", self._db.engine.flush)

    def _cancel_questions(self) -> None:
        """Interrupt turns that wait for an answer; they ask again after the next start."""
        for session_key in self.questions.open_keys():
            entry = self._routes.get(session_key)
            conversation = self.conversations.running(entry.session_id) if entry else None
            if conversation is not None:
                conversation.agent.interrupt("shutdown")
            self.questions.cancel(session_key)

    async def _interrupt_turns(self) -> None:
        """Interrupt running turns: their messages are released and their conversations end.

        The conversations are reopened when the messages are handled after the next start.
        """
        running = [*self.conversations.all_running(), *self.scheduled_runs.all_running()]
        for conversation in running:
            conversation.agent.interrupt("shutdown")
        await self.inbox_workers.stop(STOP_GRACE_SECONDS)
        for conversation in running:
            await asyncio.to_thread(
                self._db.sessions.end_session, conversation.session_id, "shutdown"
            )
