"""Handles an inbox message: finds its conversation, runs it, stores the reply in the outbox."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from gateway.inbound import prompt_format
from gateway.inbound.budgets import MESSAGES_WAIT, BudgetExceededError, user_key
from gateway.inbound.commands import DELETED_COMMAND, TURN_COMMANDS
from gateway.inbound.turn_runner import (
    BUDGET_FAILURE,
    GONE_FAILURE,
    INTERNAL_FAILURE,
    LEASE_RETRY_SECONDS,
    RetryLaterError,
    TurnPrompt,
    TurnReply,
)
from gateway.platforms.base import split_text
from gateway.platforms.names import Platform
from hermes_agent.messages import UNFINISHED
from hermes_core.errors import (
    HermesError,
    LeaseTakenError,
    SessionDeletedError,
    SessionNotFoundError,
    StoreError,
    UsageError,
)
from hermes_core.log_file import log_fields
from hermes_state.delivery import outbox
from hermes_state.delivery.inbox import PausedPlace
from hermes_state.delivery.outbox import OutgoingReply, ReplyBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.inbound.budgets import Budgets, ExceededBudget
    from gateway.inbound.commands import ChatCommands
    from gateway.inbound.turn_runner import TurnRunner
    from gateway.platforms.base import MessageEvent
    from gateway.routing.session_routes import SessionRoutes
    from gateway.routing.sources import SessionEntry, SessionSource
    from hermes_state.delivery.rows import IncomingMessage, ReplyPayload, ReplyTarget, StoredUsage
    from hermes_state.engine.transaction import Tx
    from hermes_state.messages.rows import MessageRow
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

MERGE_SECONDS: Final = 2.0
ALBUM_WAIT_SECONDS: Final = 1.0
SPLIT_WAIT_SECONDS: Final = 0.7
SPLIT_SHARE: Final = 0.9  # of the maximum length: the platform has probably split longer texts
STOPPED_REPLY: Final = "(Stopped before the turn started.)"
GONE_REPLY: Final = "The conversation was changed or deleted meanwhile. Repeat the request."
DELETED_REPLY: Final = "(The conversation was deleted while your message was being answered.)"
GIVEN_UP_REPLY: Final = (
    "Processing this message was interrupted {attempts} times, so it will not be retried. "
    "The conversation continues with your next message."
)
UNDECIDED_REPLY: Final = "Your message was not answered: {}. Send it again later."
UNDECIDED_NOTICE: Final = (
    "Your message was not answered: {}. It is kept: `hermes gateway quarantine {} --retry` lets it "
    "be handled again."
)
RESET_NOTE: Final = (
    "Started a new conversation ({reason}). /resume continues the previous one, and I can search "
    "it."
)


class ChatAnswer(NamedTuple):
    """The reply to a message."""

    session_id: str | None
    replies: list[TurnReply]
    delivered: ReplyBatch | None = None  # if it is stored already, with the turn's answer


class MessageHandler:
    """Handles one message at a time per chat; called from one thread per busy chat."""

    def __init__(
        self,
        db: SessionDB,
        routes: SessionRoutes,
        turn_runner: TurnRunner,
        commands: ChatCommands,
        longest_text: Callable[[str], int],
        max_attempts: int,
        budgets: Budgets,
        decide: Callable[[MessageEvent], MessageEvent | None],
    ) -> None:
        self._budgets = budgets
        self._decide = decide  # the plugins' decision on a message
        self._db = db
        self._routes = routes
        self._turn_runner = turn_runner
        self._commands = commands
        self._longest_text = longest_text  # by platform name
        self._max_attempts = max_attempts

    def handle(self, row: IncomingMessage) -> None:
        """Answer a claimed message; one that cannot be answered now is released."""
        event = prompt_format.decode_row(row)
        if event is None:
            self._db.inbox.settle(row.inbox_id, error=prompt_format.UNREADABLE)
            return
        if event.internal and event.get_command() == DELETED_COMMAND:
            self._commands.mark_deleted(int(event.get_command_args()))
            self._db.inbox.settle(row.inbox_id)
            return
        if event.undecided:
            decided = self._decide(event)
            if decided is None or decided.undecided:
                self._leave_undecided(row, decided)
                return
            event = decided
        merged = self._claim_merged(row)
        rows = [row, *merged]
        events = [event, *[prompt_format.decode(item.payload) for item in merged]]
        try:
            answer = self._answer(TurnPrompt(rows, events))
        except RetryLaterError:
            self._db.inbox.requeue(row, is_attempt=False)
            return
        except BudgetExceededError as error:
            self._pause(row, _source(events[0]), error.exceeded)
            return
        batch = answer.delivered
        if batch is None:
            shown = self._db.chats.shown(row.inbox_id)
            batch = self._batch(TurnPrompt(rows, events), answer.session_id, answer.replies, shown)
            self._db.outbox.answer(batch)
        log.info(
            "message answered",
            extra=log_fields(
                inbox_id=row.inbox_id,
                merged=[*batch.merged, *batch.read],
                attempts=row.attempts,
                session_id=answer.session_id,
                replies=len(batch.replies),
            ),
        )

    def _leave_undecided(self, row: IncomingMessage, event: MessageEvent | None) -> None:
        """Settle a dropped message; keep one on which a plugin fails, and tell its sender."""
        if event is None:
            self._db.inbox.settle(row.inbox_id)
            return
        source = _source(event)
        if source.platform is Platform.API_SERVER:  # its client waits for an answer
            refused = TurnReply.refused(INTERNAL_FAILURE, UNDECIDED_REPLY.format(event.undecided))
            prompt = TurnPrompt([row], [event])
            self._db.outbox.answer(self._batch(prompt, None, [refused], None))
            return
        self._db.outbox.add(
            f"inbox:{row.inbox_id}:undecided",
            platform=source.platform.value,
            target={"chat_id": source.chat_id, "thread_id": source.thread_id},
            payload={"text": UNDECIDED_NOTICE.format(event.undecided, row.inbox_id)},
            inbox_id=row.inbox_id,
        )
        self._db.inbox.settle(row.inbox_id, error=event.undecided)

    def _pause(self, row: IncomingMessage, source: SessionSource, exceeded: ExceededBudget) -> None:
        """Let the messages of a chat wait for a budget; the person gets one notice."""
        user = user_key(source)
        self._db.paused_places.pause(row, PausedPlace(row.session_key, exceeded.until, *user))
        target: ReplyTarget = {"chat_id": source.chat_id, "thread_id": source.thread_id}
        self._budgets.notify(user, exceeded, source.platform.value, target, MESSAGES_WAIT)
        log.info("message waits: %s", exceeded.reason, extra=log_fields(inbox_id=row.inbox_id))

    # Merging

    def _claim_merged(self, row: IncomingMessage) -> list[IncomingMessage]:
        """Claim the messages that belong to this one: an album, a text sent in several parts.

        After an earlier attempt, these are the messages that were merged then.
        """
        if row.payload["text"].startswith("/"):
            return []
        wait = self._wait_seconds(row)
        time.sleep(max(0.0, min(wait, row.received_at + wait - time.time())))
        last, merged = row.received_at, []
        for item in self._db.inbox.waiting_behind(row):
            event = prompt_format.decode_row(item)
            if event is None or event.undecided or not self._is_part_of(item, row, last):
                break  # later messages keep their order
            last = item.received_at
            merged.append(item)
        return self._claim(merged)

    def _claim(self, rows: list[IncomingMessage]) -> list[IncomingMessage]:
        claimed = set(self._db.inbox.claim_with([row.inbox_id for row in rows]))
        return [row for row in rows if row.inbox_id in claimed]

    def _wait_seconds(self, row: IncomingMessage) -> float:
        """How long to wait for the rest of an album or of a text that the platform has split."""
        payload = row.payload
        if payload.get("group_id"):
            return ALBUM_WAIT_SECONDS
        longest = self._longest_text(row.platform)
        return SPLIT_WAIT_SECONDS if len(payload["text"]) >= SPLIT_SHARE * longest else 0.0

    def _is_part_of(self, one: IncomingMessage, row: IncomingMessage, last: float) -> bool:
        if self._is_stored(row):
            return self._is_stored(one)
        is_close = one.received_at - last <= MERGE_SECONDS
        if not self._is_same_sender(one, row):
            return False
        is_album = one.payload.get("group_id") == row.payload.get("group_id") is not None
        return (is_close or is_album) and not one.payload["text"].startswith("/")

    def _is_same_sender(self, one: IncomingMessage, row: IncomingMessage) -> bool:
        """Whether a turn with the rights of one sender may contain the other's text."""
        entry = self._routes.get(row.session_key)
        if entry is not None and self._routes.is_shared(entry):
            return True
        senders = [(item.payload.get("source") or {}).get("user_id") for item in (one, row)]
        return senders[0] == senders[1]

    def _read_by_turn(self, row: IncomingMessage, session_id: str | None) -> list[int]:
        """The messages that arrived during the turn and were read by it."""
        if session_id is None:
            return []
        return [
            item.inbox_id
            for item in self._db.inbox.waiting_behind(row)
            if self._turn_runner.is_stored(session_id, item)
        ]

    def _is_stored(self, row: IncomingMessage) -> bool:
        entry = self._routes.get(row.session_key)
        return entry is not None and self._turn_runner.is_stored(entry.session_id, row)

    # The reply

    def _answer(self, prompt: TurnPrompt) -> ChatAnswer:
        row, event = prompt.rows[0], prompt.events[0]
        try:
            entry = self._entry(row, event)
        except SessionNotFoundError:  # deleted since the client's request was received
            return ChatAnswer(None, [TurnReply.refused(GONE_FAILURE, GONE_REPLY)])
        interruptions = row.attempts - 1 + row.crashes
        if interruptions >= self._max_attempts and row.attempts > 1:  # at least one of them alone
            text = GIVEN_UP_REPLY.format(attempts=interruptions)
            return ChatAnswer(entry.session_id, [TurnReply.refused(INTERNAL_FAILURE, text)])
        if event.get_command():
            return self._run_command(prompt, entry)
        if self._is_stopped(prompt.rows):
            return ChatAnswer(entry.session_id, [TurnReply(STOPPED_REPLY)])
        note = self._reset_note(entry)
        answer = self._run_turn(prompt, entry, note)
        if note:
            self._routes.update_session(entry.session_key, was_auto_reset=False)
        else:
            self._routes.touch(entry.session_key)
        return answer

    def _is_stopped(self, rows: list[IncomingMessage]) -> bool:
        """Whether `/stop` arrived before the turn started; it is settled with the message."""
        if self._is_stored(rows[0]):
            return False
        later = self._db.inbox.waiting_behind(rows[-1], limit=1)
        stop = [item for item in later if item.payload.get("text", "").split()[:1] == ["/stop"]]
        rows += self._claim(stop)
        return bool(stop)

    def _run_turn(self, prompt: TurnPrompt, entry: SessionEntry, before: list[str]) -> ChatAnswer:
        """Run a turn; its reply follows the texts *before*."""
        delivered: list[ReplyBatch] = []
        earlier = list(map(TurnReply, before))
        process_id = self._db.identity.process_id

        def deliver(reply: TurnReply, shown: str | None) -> Callable[[Tx], object]:
            batch = self._batch(prompt, entry.session_id, [*earlier, reply], shown)
            delivered[:] = [batch]
            return lambda tx: outbox.answer(tx, process_id, batch)

        is_shared = self._routes.is_shared(entry)
        prompt = prompt._replace(deliver=deliver)
        try:
            reply = self._turn_runner.run(prompt, entry, is_shared=is_shared)
        except SessionDeletedError:  # another turn would run its tools again
            return ChatAnswer(None, [*earlier, TurnReply(DELETED_REPLY)])
        batch = delivered[0] if delivered else None
        return ChatAnswer(entry.session_id, [*earlier, reply], batch)

    def _entry(self, row: IncomingMessage, event: MessageEvent) -> SessionEntry:
        """The conversation of a message: where it is stored already, or where policy puts it."""
        known = self._routes.get(row.session_key)
        if known is not None and (event.internal or self._is_stored(row)):
            # However long ago that was: it is not stored twice.
            known = self._routes.get_open(row.session_key)
            if known is not None:
                return known
        if known is None and event.internal and event.get_command() == "resume":
            with contextlib.suppress(SessionNotFoundError):  # the command replies with it
                return self._routes.adopt(_source(event), event.get_command_args())
        if event.continues is not None:
            return self._continued(row, event, *event.continues)
        return self._routes.get_or_create_session(_source(event))

    def _continued(
        self, row: IncomingMessage, event: MessageEvent, session_id: str, message_id: int
    ) -> SessionEntry:
        """The conversation that an API client continues, however long ago it was used."""
        known = self._routes.get(row.session_key)
        if known is not None and session_id in {known.session_id, ""}:
            known = self._routes.get_open(row.session_key)
            if known is not None:
                self._undo_failed_turn(known.session_id, message_id)
                return known
        if not session_id:
            return self._routes.get_or_create_session(_source(event))
        if not message_id:
            raise SessionNotFoundError(f"the conversation {session_id} has changed")
        branch = self._db.sessions.find(known.session_id) if known else None
        if known is not None and branch is not None and branch.parent_session_id == session_id:
            return known  # made in an earlier attempt
        return self._routes.adopt(_source(event), session_id, message_id)

    def _undo_failed_turn(self, session_id: str, message_id: int) -> None:
        """Undo the prompt after a message if it has no answer: the client has not seen one."""
        later = self._db.messages.rows(session_id, after_id=message_id) if message_id else []
        is_of_client = bool(later) and later[0].platform_message_id is not None
        if not is_of_client or self._db.leases.is_held_elsewhere(session_id):
            return  # e.g. a turn of the dashboard in the same conversation
        if not any(map(_is_answer, later)):
            self._db.edits.rewind(session_id, later[0].id)

    def _reset_note(self, entry: SessionEntry) -> list[str]:
        """The one-time notice of a conversation that the reset policy has started."""
        policy = self._routes.config.get_reset_policy(entry.platform, entry.chat_type)
        platform = entry.platform.value if entry.platform else ""
        if not (policy.notifies(platform) and entry.was_auto_reset and entry.reset_had_activity):
            return []
        return [RESET_NOTE.format(reason=entry.auto_reset_reason)]

    def _run_command(self, prompt: TurnPrompt, entry: SessionEntry) -> ChatAnswer:
        row, event = prompt.rows[0], prompt.events[0]
        if self._is_stored(row):  # the prompt of a command such as /retry
            return self._run_turn(prompt, entry, [])
        if event.get_command() in TURN_COMMANDS:
            refusal = self._turn_runner.budget_refusal(_source(event), can_wait=False)
            if refusal:  # a command changes the history before its turn: it does not wait
                refused = TurnReply.refused(BUDGET_FAILURE, refusal)
                return ChatAnswer(entry.session_id, [refused])
        try:
            outcome = self._commands.run(entry, event, prompt_format.message_uid(row.inbox_id))
        except LeaseTakenError as error:  # another process is running a turn: wait for it
            time.sleep(LEASE_RETRY_SECONDS)
            raise RetryLaterError from error
        except StoreError:
            raise
        except HermesError as error:
            return ChatAnswer(entry.session_id, [TurnReply(str(error))])
        texts = [outcome.text] if outcome.text else []
        text = outcome.say or outcome.queue or outcome.steer
        if text:
            current = self._routes.get(entry.session_key) or entry
            return self._run_turn(prompt._replace(text=text), current, texts)
        return ChatAnswer(entry.session_id, list(map(TurnReply, texts)))

    # Replies

    def _batch(
        self,
        prompt: TurnPrompt,
        session_id: str | None,
        turn_replies: list[TurnReply],
        shown: str | None,
    ) -> ReplyBatch:
        """The replies with these texts, and the messages that they answer."""
        inbox_id, *merged = [row.inbox_id for row in prompt.rows]
        replies = self._replies(prompt.events, turn_replies, shown)
        read = self._read_by_turn(prompt.rows[0], session_id)
        return ReplyBatch(inbox_id, session_id, replies, merged, read)

    def _replies(
        self, events: list[MessageEvent], turn_replies: list[TurnReply], shown: str | None
    ) -> list[OutgoingReply]:
        source = _source(events[0])
        platform = source.platform.value
        target: ReplyTarget = {"chat_id": source.chat_id, "thread_id": source.thread_id}
        longest = self._longest_text(platform)
        texts = [part for reply in turn_replies for part in split_text(reply.text, longest)]
        payloads = [
            self._payload(text, number, events[-1], shown) for number, text in enumerate(texts)
        ]
        if payloads and source.platform is Platform.API_SERVER:  # for programs
            _add_facts(payloads[0], turn_replies[-1])
        return [OutgoingReply(platform, target, payload) for payload in payloads]

    def _payload(
        self, text: str, number: int, event: MessageEvent, shown: str | None
    ) -> ReplyPayload:
        """The payload of one reply; the first replaces the live reply."""
        payload: ReplyPayload = {"text": text}
        mode = self._routes.reply_mode(_source(event))
        if event.is_in_chat and (mode == "all" or (mode == "first" and number == 0)):
            payload["reply_to"] = event.message_id
        if shown is not None and number == 0:
            payload["in_place_of"] = shown
        return payload


def _is_answer(row: MessageRow) -> bool:
    is_complete = row.role == "assistant" and not row.tool_calls
    return is_complete and row.finish_reason not in UNFINISHED


def _add_facts(payload: ReplyPayload, reply: TurnReply) -> None:
    if reply.usage is not None:
        payload["usage"] = cast("StoredUsage", reply.usage._asdict())
    if reply.failure is not None:
        payload["failure"] = reply.failure
    if reply.problem is not None:
        payload["problem"] = reply.problem.value


def _source(event: MessageEvent) -> SessionSource:
    if event.source is None:
        raise UsageError("A message without a source cannot be answered.")
    return event.source
