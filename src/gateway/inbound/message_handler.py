"""A message handled: routed to its conversation, answered, and the answer owed."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.inbound import inbox_codec
from gateway.inbound.turn_runner import LATER_SECONDS, LaterError, TurnPrompt
from gateway.outbound.chunks import pieces
from hermes_core.errors import HermesError, LeaseTakenError, StoreError, UsageError
from hermes_core.log_file import log_fields
from hermes_state.delivery.outbox import OutgoingReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.inbound.commands import ChatCommands
    from gateway.inbound.turn_runner import Row, TurnRunner
    from gateway.platforms.base import MessageEvent
    from gateway.routing.entries import SessionEntry
    from gateway.routing.sources import SessionSource
    from gateway.session import SessionStore
    from hermes_state import SessionDB

log = logging.getLogger(__name__)

BREATH_SECONDS: Final = 2.0
ALBUM_SECONDS: Final = 1.0
CUT_SECONDS: Final = 0.7
CUT_SHARE: Final = 0.9  # of the longest text: longer ones have probably been cut
STOPPED: Final = "(stopped before it began)"
GIVEN_UP: Final = (
    "I have tried this message {attempts} times, and each time something broke off in the middle. "
    "The conversation is kept; write again to begin another one."
)
RESET_NOTE: Final = (
    "This is a new conversation ({reason}). /resume goes on with the one before, which I can "
    "search, too."
)


class ChatAnswer(NamedTuple):
    """What is sent back."""

    session_id: str | None
    texts: list[str]


class MessageHandler:
    """Handles one message at a time per place; called from as many threads as there are places."""

    def __init__(
        self,
        db: SessionDB,
        places: SessionStore,
        playing: TurnRunner,
        commands: ChatCommands,
        longest_text: Callable[[str], int],
        most_attempts: int,
    ) -> None:
        self._db = db
        self._places = places
        self._playing = playing
        self._commands = commands
        self._longest_text = longest_text  # by the platform's name
        self._most_attempts = most_attempts

    def handle(self, row: dict[str, Any]) -> None:
        """Answer a claimed message; what cannot be answered now is given back."""
        if self._read(row) is None:
            self._db.settle_incoming(row["inbox_id"], error="it cannot be read")
            return
        rows = [row, *self._in_one_breath(row)]
        events = [inbox_codec.read(one["payload"]) for one in rows]
        try:
            answer = self._answer(TurnPrompt(rows, events))
        except LaterError:
            self._db.give_back_incoming(row, is_attempt=False)
            return
        rows += self._read_meanwhile(row, answer)
        merged = [one["inbox_id"] for one in rows[1:]]
        replies = self._replies(rows[0]["inbox_id"], events, answer)
        self._db.answer_incoming(row["inbox_id"], answer.session_id, replies, merged)
        log.info(
            "a message is answered",
            extra=log_fields(
                inbox_id=row["inbox_id"],
                merged=merged,
                attempts=row["attempts"],
                session_id=answer.session_id,
                replies=len(replies),
            ),
        )

    def _read(self, row: Row) -> MessageEvent | None:
        """A message as it was kept; None when nobody can read it, of a platform gone, say."""
        try:
            return inbox_codec.read(row["payload"])
        except (ValueError, KeyError, TypeError) as error:
            log.error("message %s cannot be read: %s", row["inbox_id"], error)
            return None

    # What belongs together

    def _in_one_breath(self, row: Row) -> list[Row]:
        """What was sent right behind it and belongs to it: an album, a thought in pieces.

        When it was said in an earlier attempt, that is what was merged into it then.
        """
        if row["payload"]["text"].startswith("/"):
            return []
        wait = self._more_seconds(row)
        time.sleep(max(0.0, min(wait, row["received_at"] + wait - time.time())))
        last, found = row["received_at"], []
        for one in self._db.waiting_behind(row):
            if self._read(one) is None or not self._belongs(one, row, last):
                break  # whatever comes behind it keeps its place behind it
            last = one["received_at"]
            found.append(one)
        return self._claimed(found)

    def _claimed(self, rows: list[Row]) -> list[Row]:
        taken = set(self._db.claim_with([one["inbox_id"] for one in rows]))
        return [one for one in rows if one["inbox_id"] in taken]

    def _more_seconds(self, row: Row) -> float:
        """How long more of it may be on its way: an album, or a text a platform has cut."""
        payload = row["payload"]
        if payload.get("group_id"):
            return ALBUM_SECONDS
        longest = self._longest_text(row["platform"])
        return CUT_SECONDS if len(payload["text"]) >= CUT_SHARE * longest else 0.0

    def _belongs(self, one: Row, row: Row, last: float) -> bool:
        if self._is_said(row):
            return self._is_said(one)
        is_close = one["received_at"] - last <= BREATH_SECONDS
        is_album = one["payload"].get("group_id") == row["payload"].get("group_id") is not None
        return (is_close or is_album) and not one["payload"]["text"].startswith("/")

    def _read_meanwhile(self, row: Row, answer: ChatAnswer) -> list[Row]:
        """The messages that came during the turn and were read by it."""
        session_id = answer.session_id
        if session_id is None:
            return []
        behind = self._db.waiting_behind(row)
        return self._claimed([one for one in behind if self._playing.is_said(session_id, one)])

    def _is_said(self, row: Row) -> bool:
        entry = self._places.get(row["session_key"])
        return entry is not None and self._playing.is_said(entry.session_id, row)

    # The answer

    def _answer(self, prompt: TurnPrompt) -> ChatAnswer:
        row, event = prompt.rows[0], prompt.events[0]
        entry = self._entry(row, event)
        if row["attempts"] > self._most_attempts:
            self._places.suspend_session(entry.session_key)
            return ChatAnswer(entry.session_id, [GIVEN_UP.format(attempts=self._most_attempts)])
        if event.get_command():
            return self._carried_out(prompt, entry)
        if self._is_stopped(prompt.rows):
            return ChatAnswer(entry.session_id, [STOPPED])
        note = self._reset_note(entry)
        answer = self._play(prompt, entry)
        if note:
            self._places.update_session(entry.session_key, was_auto_reset=False)
        else:
            self._places.touch(entry.session_key)
        return ChatAnswer(entry.session_id, [*note, answer])

    def _is_stopped(self, rows: list[Row]) -> bool:
        """Whether `/stop` came before the turn began; it is settled with the message."""
        if self._is_said(rows[0]):
            return False
        behind = self._db.waiting_behind(rows[-1], limit=1)
        stop = [one for one in behind if one["payload"].get("text", "").split()[:1] == ["/stop"]]
        rows += self._claimed(stop)
        return bool(stop)

    def _play(self, prompt: TurnPrompt, entry: SessionEntry) -> str:
        return self._playing.play(prompt, entry, is_shared=self._places.is_shared(entry))

    def _entry(self, row: Row, event: MessageEvent) -> SessionEntry:
        """The conversation of a message: where it was said already, or where policy puts it."""
        known = self._places.get(row["session_key"])
        if known is not None and (event.internal or self._is_said(row)):
            return known  # however long ago that was: it is not said again elsewhere
        return self._places.get_or_create_session(_source(event))

    def _reset_note(self, entry: SessionEntry) -> list[str]:
        """What is said once about a conversation that policy has begun."""
        policy = self._places.config.get_reset_policy(entry.platform, entry.chat_type)
        platform = entry.platform.value if entry.platform else ""
        is_wanted = policy.notify and platform not in policy.notify_exclude_platforms
        if not (is_wanted and entry.was_auto_reset and entry.reset_had_activity):
            return []
        return [RESET_NOTE.format(reason=entry.auto_reset_reason)]

    def _carried_out(self, prompt: TurnPrompt, entry: SessionEntry) -> ChatAnswer:
        row, event = prompt.rows[0], prompt.events[0]
        if self._is_said(row):  # a command that asks again had come that far
            return ChatAnswer(entry.session_id, [self._play(prompt, entry)])
        try:
            outcome = self._commands.run(entry, event, inbox_codec.uid(row["inbox_id"]))
        except LeaseTakenError as error:  # a terminal is at work in it: its turn comes first
            time.sleep(LATER_SECONDS)
            raise LaterError from error
        except StoreError:
            raise
        except HermesError as error:
            return ChatAnswer(entry.session_id, [str(error)])
        texts = [outcome.text] if outcome.text else []
        said = outcome.say or outcome.queue or outcome.steer
        if said:
            again = self._places.get(entry.session_key) or entry
            texts.append(self._play(prompt._replace(text=said), again))
        return ChatAnswer(entry.session_id, texts)

    # Replies

    def _replies(
        self, inbox_id: int, events: list[MessageEvent], answer: ChatAnswer
    ) -> list[OutgoingReply]:
        source = _source(events[0])
        platform = source.platform.value
        target = {"chat_id": source.chat_id, "thread_id": source.thread_id}
        texts = [
            piece for text in answer.texts for piece in pieces(text, self._longest_text(platform))
        ]
        shown = self._db.shown(inbox_id)
        return [
            OutgoingReply(platform, target, self._payload(text, number, events[-1], shown))
            for number, text in enumerate(texts)
        ]

    def _payload(
        self, text: str, number: int, event: MessageEvent, shown: str | None
    ) -> dict[str, Any]:
        """One message of an answer; the first takes the place of what was shown so far."""
        payload: dict[str, Any] = {"text": text}
        mode = self._places.reply_mode(_source(event))
        if mode == "all" or (mode == "first" and number == 0):
            payload["reply_to"] = event.message_id
        if shown is not None and number == 0:
            payload["in_place_of"] = shown
        return payload


def _source(event: MessageEvent) -> SessionSource:
    if event.source is None:
        raise UsageError("a message without a source cannot be answered")
    return event.source
