"""Receives messages: stores each in the inbox before the platform may acknowledge it."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.inbound import prompt_format
from gateway.inbound.access_control import TRUSTED_PLATFORMS
from gateway.inbound.commands import DELETED_COMMAND, TURN_COMMANDS, with_slash
from gateway.inbound.prompt_format import format_message, quote_text
from gateway.platforms.base import MessageEvent, Reacts
from gateway.platforms.names import Platform
from hermes_conversation import pending_input
from hermes_conversation.agent_factory import notify_plugins
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import HermesError
from hermes_core.hooks import GuardFailure
from hermes_core.isolate import attempt, attempt_async
from hermes_core.log_file import log_fields
from hermes_core.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.inbound.access_control import AccessControl
    from gateway.inbound.commands import ChatCommands
    from gateway.inbound.inbox_workers import InboxWorkers
    from gateway.platforms.base import Adapter
    from gateway.routing.conversation_cache import ConversationCache
    from gateway.routing.session_routes import SessionRoutes
    from gateway.routing.sources import SessionEntry, SessionSource
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.pending_input import BusyMode
    from hermes_state.delivery.rows import IncomingMessage, ReceivedMessage
    from hermes_state.store import SessionDB

FAILED: Final = "failed"
ACTIONS: Final = frozenset({"skip", "rewrite", "allow"})


async def filter_message(
    event: MessageEvent, gateway: object, routes: SessionRoutes
) -> MessageEvent | None:
    """The message as plugins leave it; None if one has dropped it."""
    if event.is_deletion or event.internal or not is_set("plugins.enabled"):
        return event
    return await asyncio.to_thread(decide, event, gateway, routes)


def decide(event: MessageEvent, gateway: object, routes: SessionRoutes) -> MessageEvent | None:
    """The message as plugins leave it, undecided if one fails; None if one has dropped it."""
    event = dataclasses.replace(event, undecided="")
    answers = notify_plugins(
        "pre_gateway_dispatch", event=event, gateway=gateway, session_store=routes
    )
    decision = next((answer for answer in answers if _action(answer)), None)
    if isinstance(decision, GuardFailure):
        log.warning("message %s is undecided: %s", event.message_id, decision)
        return dataclasses.replace(event, undecided=str(decision))
    if decision is None or _action(decision) == "allow":
        return event
    if _action(decision) == "skip":
        reason = decision.get("reason") or "no reason given"
        log.info("message %s dropped by a plugin: %s", event.message_id, reason)
        return None
    text = decision.get("text")
    if not isinstance(text, str):
        log.warning("plugin returned a rewrite without text: message left unchanged")
        return event
    return dataclasses.replace(event, text=text)


def _action(answer: Any) -> str:
    if isinstance(answer, GuardFailure):
        return FAILED
    action = answer.get("action") if isinstance(answer, dict) else None
    return str(action) if action in ACTIONS else ""


log = logging.getLogger(__name__)

WAITING_USER: Final = (
    "{name} requests access on {platform}. To approve, run `hermes pairing approve {platform} "
    "CODE` with the code that was sent there; `hermes pairing list` shows all requests."
)
WAITING_REACTION: Final = "👀"  # on a message that waits for the running turn


class Receipt(NamedTuple):
    """What happened to an incoming message; the default: nothing was stored."""

    owners_key: str = ""  # the session key of a message of the owner
    is_claimed: bool = False  # it is handled at once
    is_waiting: bool = False  # for the running turn of its chat
    command_key: str = ""  # the session key of a command that needs no turn


class MessageReceiver:
    """Checks and stores incoming messages; offers them to the running turn of their chat."""

    def __init__(
        self,
        db: SessionDB,
        access: AccessControl,
        routes: SessionRoutes,
        conversations: ConversationCache,
        commands: ChatCommands,
        workers: InboxWorkers,
        adapters: Mapping[str, Adapter],
        busy_mode: BusyMode,
    ) -> None:
        self._db = db
        self._access = access
        self._routes = routes
        self._conversations = conversations
        self._commands = commands
        self._workers = workers
        self._adapters = adapters
        self._busy_mode = busy_mode
        self._reactions: set[asyncio.Task[None]] = set()

    async def receive(self, account: str, event: MessageEvent) -> None:
        """Store a message, or the deletion of one; when this returns, it is on disk."""
        if event.is_deletion:
            await asyncio.to_thread(self._withdraw, account, event)
            self._workers.wake()
            return
        stored = await asyncio.to_thread(self._store, account, event)
        if not stored.is_claimed:
            self._workers.wake(stored.owners_key, stored.command_key)
        if stored.is_waiting:  # the platform need not wait for the reaction
            task = asyncio.create_task(self._react(event))
            self._reactions.add(task)
            task.add_done_callback(self._reactions.discard)

    async def _react(self, event: MessageEvent) -> None:
        """Show the sender that the message has arrived and waits."""
        source = event.source
        adapter = self._adapters.get(source.platform.value) if source else None
        if source is not None and event.is_in_chat and isinstance(adapter, Reacts):
            reaction = adapter.react(source.chat_id, str(event.message_id), WAITING_REACTION)
            await attempt_async("add reaction", reaction)

    def _store(self, account: str, event: MessageEvent) -> Receipt:
        """Store a message, unless its sender has no access."""
        source = event.source
        if source is None or event.message_id is None:
            log.warning("message without source or ID dropped: %r", event.text[:80])
            return Receipt()
        if not self._access.is_for_agent(source, is_addressed=event.is_addressed):
            return Receipt()
        decision = self._access.decide(source)
        if not decision.is_allowed:
            self._drop(decision.reply, source, event.message_id)
            return Receipt()
        if source.platform not in {Platform.API_SERVER, Platform.WEBHOOK}:
            event.text = with_slash(event.text)
        message_id = self._apply_edit(account, event, source) if event.is_edit else event.message_id
        key = self._routes.key_of(source)
        owners_key = key if self._access.role_of(source) is Role.OWNER else ""
        if message_id is None:
            return Receipt(owners_key)
        received = self._insert_reserved(
            account, event, source, message_id, key, is_owners=bool(owners_key)
        )
        if received.claimed is not None:
            # From here, because the platform may stop waiting for this method at any moment.
            self._workers.start_from_thread(received.claimed, is_owners=bool(owners_key))
            return Receipt(owners_key, is_claimed=True)
        is_offered = received.is_new and not event.undecided
        is_waiting = is_offered and self._offer(received.inbox_id, key, event, source)
        command = event.get_command()
        command_key = key if command and command not in TURN_COMMANDS else ""
        return Receipt(owners_key, is_waiting=is_waiting, command_key=command_key)

    def _insert_reserved(
        self,
        account: str,
        event: MessageEvent,
        source: SessionSource,
        message_id: str,
        key: str,
        *,
        is_owners: bool,
    ) -> ReceivedMessage:
        """Store a message; claim it if there is a place to handle it."""
        has_place = self._workers.reserve(is_owners=is_owners)
        is_claimed = False
        try:
            received = self._insert(account, event, source, message_id, key, claim=has_place)
            is_claimed = received.claimed is not None
            return received
        finally:
            if has_place and not is_claimed:
                self._workers.give_back()

    def _insert(
        self,
        account: str,
        event: MessageEvent,
        source: SessionSource,
        message_id: str,
        key: str,
        *,
        claim: bool,
    ) -> ReceivedMessage:
        fields = {
            "platform": source.platform.value,
            "chat_id": source.chat_id,
            "message_id": message_id,
            "session_key": key,
        }
        received = self._db.inbox.receive(
            account=account, payload=prompt_format.encode(event), claim=claim, **fields
        )
        log.info(
            "message received" if received.is_new else "duplicate message received",
            extra=log_fields(inbox_id=received.inbox_id, **fields),
        )
        return received

    def _offer(self, inbox_id: int, key: str, event: MessageEvent, source: SessionSource) -> bool:
        """Offer a stored message to the running turn of its chat; whether it waits for that turn.

        An error here is harmless: the message is handled after the turn.
        """
        waits = attempt(
            "offer message to running turn",
            lambda: self._handle_during_turn(inbox_id, key, event, source),
        )
        return waits is True

    def offer_stored(self, row: IncomingMessage) -> None:
        """Offer a message that another node has stored to the running turn of its chat."""
        event = prompt_format.decode_row(row)
        if event is None or event.undecided:
            self._workers.note_offered(row.inbox_id)  # it is quarantined or decided after the turn
        elif event.source is not None:
            self._offer(row.inbox_id, row.session_key, event, event.source)

    def _apply_edit(self, account: str, event: MessageEvent, source: SessionSource) -> str | None:
        """Apply an edit: the message ID to store it under; None if there is nothing to store.

        A message that still waits is changed in place. After one that is handled, or being
        handled, the new text is stored as another message. An unknown message is new.
        """
        message_id = str(event.message_id)
        inbox_id = self._db.inbox.find_id(
            source.platform.value, account, source.chat_id, message_id
        )
        before = self._db.inbox.get(inbox_id) if inbox_id is not None else None
        if inbox_id is None or before is None:
            event.is_edit = False
            return message_id
        if (before.payload.get("source") or {}).get("user_id") != source.user_id:
            event.is_edit = False  # a message is changed by its sender only
            return _edit_id(message_id, f"{source.user_id} {event.text}")
        if before.payload.get("text") == event.text:
            return None  # e.g. a link preview was added
        is_offered = self._busy_mode == "steer" and self._is_turn_running(source)
        amended = prompt_format.encode(event)
        amended["is_edit"] = False
        if not is_offered and self._db.inbox.amend(inbox_id, amended):
            return None
        return _edit_id(message_id, event.text)

    def _withdraw(self, account: str, event: MessageEvent) -> None:
        """Settle a deleted message that waits; queue the mark of one that is stored.

        The mark is an inbox row, so it is durable and follows a running turn of the chat.
        """
        source, message_id = event.source, event.message_id
        if source is None or message_id is None:
            return
        platform = source.platform.value
        for row in self._db.inbox.sent_as(platform, account, source.chat_id, message_id):
            uid = prompt_format.message_uid(row.inbox_id)
            entry = self._routes.get(row.session_key)
            running = self._conversations.running(entry.session_id) if entry else None
            is_withdrawn = self._db.inbox.withdraw(row.inbox_id)
            if running is not None:
                running.agent.withdraw_steering(uid)
            if is_withdrawn:
                log.info("deleted message withdrawn", extra=log_fields(inbox_id=row.inbox_id))
            is_busy = running is not None or self._is_busy_elsewhere(row.session_key)
            if not is_withdrawn or is_busy or row.attempts:  # it may be stored
                self._queue_mark(account, row)

    def _queue_mark(self, account: str, row: IncomingMessage) -> None:
        original = prompt_format.decode_row(row)
        if original is None:
            return
        event = MessageEvent(
            f"/{DELETED_COMMAND} {row.inbox_id}",
            source=original.source,
            message_id=f"{DELETED_COMMAND}:{row.inbox_id}",
            internal=True,
        )
        self._db.inbox.receive(
            platform=row.platform,
            account=account,
            chat_id=row.chat_id,
            message_id=str(event.message_id),
            session_key=row.session_key,
            payload=prompt_format.encode(event),
        )

    def _is_turn_running(self, source: SessionSource) -> bool:
        """Whether the chat has a running turn, here or on another node."""
        key = self._routes.key_of(source)
        entry = self._routes.get(key)
        is_here = entry is not None and self._conversations.running(entry.session_id) is not None
        return is_here or self._is_busy_elsewhere(key)

    def _is_busy_elsewhere(self, session_key: str) -> bool:
        """Whether another node may run a turn of a chat."""
        return self._workers.has_other_nodes and self._db.inbox.is_place_claimed(session_key)

    def _drop(self, reply: str, source: SessionSource, message_id: str) -> None:
        """Drop a message from an unauthorized user; nothing of it is stored."""
        platform = source.platform.value
        log.info("message from unauthorized user %s dropped: %s", source.user_id, platform)
        if reply:
            attempt("tell the owner", lambda: self._tell_owner(source))
            self._db.outbox.add(
                f"stranger:{source.platform.value}:{source.chat_id}:{message_id}",  # words: allow
                platform=source.platform.value,
                target={"chat_id": source.chat_id, "thread_id": source.thread_id},
                payload={"text": reply},
            )

    def _tell_owner(self, source: SessionSource) -> None:
        """Tell the owner that a user waits for approval, at most once an hour per platform."""
        platform = source.platform.value
        name = f"{quote_text(source.user_name)} (ID {quote_text(source.user_id)})"
        log.warning("user %s waits for approval on %s: see `hermes pairing list`", name, platform)
        for entry in self._routes.list_sessions():
            origin = entry.origin
            if origin is None or origin.platform in TRUSTED_PLATFORMS:
                continue
            if self._access.has_all_history(origin):
                self._db.outbox.add(
                    f"pairing:{platform}:{int(time.time() // 3600)}:{entry.session_key}",
                    platform=origin.platform.value,
                    target={"chat_id": origin.chat_id, "thread_id": origin.thread_id},
                    payload={"text": WAITING_USER.format(name=name, platform=platform)},
                )

    # Input during a turn

    def _handle_during_turn(
        self, inbox_id: int, key: str, event: MessageEvent, source: SessionSource
    ) -> bool:
        entry = self._routes.get(key)
        running = self._conversations.running(entry.session_id) if entry else None
        if entry is None or running is None:
            self._workers.offer_later()  # its turn may be about to start
            return False
        self._workers.note_offered(inbox_id)
        try:
            text = self._commands.run_during_turn(entry, event, prompt_format.message_uid(inbox_id))
        except HermesError as error:
            text = str(error)
        if text is None:
            self._offer_input(running, inbox_id, entry, event)
            return True
        if self._db.inbox.settle_waiting(inbox_id) and text:
            self._db.outbox.add(
                f"inbox:{inbox_id}:meanwhile",
                platform=source.platform.value,
                target={"chat_id": source.chat_id, "thread_id": source.thread_id},
                payload={"text": text},
                session_id=entry.session_id,
                inbox_id=inbox_id,
            )
        return False

    def _has_rights_of(self, running: Conversation, event: MessageEvent) -> bool:
        """Whether the sender may write to a turn with the rights that it has."""
        role = running.options.role
        return role is Role.GUEST or (
            event.source is not None and self._access.role_of(event.source) is role
        )

    def _offer_input(
        self, running: Conversation, inbox_id: int, entry: SessionEntry, event: MessageEvent
    ) -> None:
        """Interrupt the turn or steer it with the message, which stays in the inbox as well.

        A message that the turn has read is settled with the turn's reply; any other is handled
        after it.
        """
        if event.get_command() or not self._has_rights_of(running, event):
            return
        mode = self._busy_mode
        if mode == "steer" and event.media_urls:
            mode = "queue"  # steering is text only
        text = format_message(event, is_shared=self._routes.is_shared(entry))
        pending_input.submit_to_agent(
            running.agent, text, mode, prompt_format.message_uid(inbox_id)
        )


def _edit_id(message_id: str, content: str) -> str:
    """The ID of a message that an edit adds."""
    return f"{message_id}#{hashlib.sha256(content.encode()).hexdigest()[:16]}"
