"""A message handled: routed to its conversation, answered, and the answer owed.

Whatever happens in between, a message is answered once. What the user said has an identity
made of its place in the inbox: when a message comes back after a crash, its turn is found as
it stands, and either goes on or has its answer sent.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway import letters
from gateway.chunking import pieces
from hermes_agent import events
from hermes_agent.keeping import UNFINISHED
from hermes_core.errors import HermesError, LeaseTakenError, UsageError
from hermes_state.outbox import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gateway.commands import Commands
    from gateway.conversations import Conversations
    from gateway.entries import SessionEntry
    from gateway.platforms.base import MessageEvent
    from gateway.session import SessionStore
    from gateway.sources import SessionSource
    from hermes_cli.desk import Desk
    from hermes_state import SessionDB

    Row = dict[str, Any]

log = logging.getLogger(__name__)

BREATH_SECONDS: Final = 2.0
LATER_SECONDS: Final = 1.0
GIVEN_UP: Final = (
    "I have tried this message {attempts} times, and each time something broke off in the middle. "
    "The conversation is kept; write again to begin another one."
)
RESET_NOTE: Final = (
    "This is a new conversation ({reason}). /resume goes on with the one before, which I can "
    "search, too."
)


class LaterError(Exception):
    """It cannot be answered now: the gateway leaves, or somebody else has the turn."""


class Answer(NamedTuple):
    """What is sent back."""

    session_id: str | None
    texts: list[str]


class Handling:
    """Handles one message at a time per place; called from as many threads as there are places."""

    def __init__(
        self,
        db: SessionDB,
        places: SessionStore,
        conversations: Conversations,
        commands: Commands,
        longest_text: Callable[[str], int],
        most_attempts: int,
    ) -> None:
        self._db = db
        self._places = places
        self._conversations = conversations
        self._commands = commands
        self._longest_text = longest_text  # by the platform's name
        self._most_attempts = most_attempts
        self.is_leaving = False

    def handle(self, row: dict[str, Any]) -> None:
        """Answer a claimed message; what cannot be answered now is given back."""
        rows = [row, *self._in_one_breath(row)]
        event = letters.merged([letters.read(one["payload"]) for one in rows])
        try:
            answer = self._answer(rows, event)
        except LaterError:
            for one in rows:
                self._db.release_incoming(one["inbox_id"])
            return
        merged = [one["inbox_id"] for one in rows[1:]]
        replies = self._replies(event, answer)
        self._db.answer_incoming(row["inbox_id"], answer.session_id, replies, merged)

    def _in_one_breath(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What was sent right behind it and belongs to it: an album, a thought in pieces.

        When it was said in an earlier attempt, that is what was merged into it then.
        """
        if row["payload"]["text"].startswith("/"):
            return
        last = row["received_at"]
        for one in self._db.claim_following(row):
            if self._belongs(one, row, last):
                last = one["received_at"]
                yield one
            else:
                self._db.release_incoming(one["inbox_id"])
                last = float("-inf")  # whatever comes behind it keeps its place behind it

    def _belongs(self, one: Row, row: Row, last: float) -> bool:
        if self._is_said(row):
            return self._is_said(one)
        is_close = one["received_at"] - last <= BREATH_SECONDS
        return is_close and not one["payload"]["text"].startswith("/")

    def _is_said(self, row: Row) -> bool:
        """Whether a message stands in its conversation already, from an earlier attempt."""
        entry = self._places.get(row["session_key"])
        return entry is not None and self._db.message_of(entry.session_id, _uid(row)) is not None

    def _answer(self, rows: list[Row], event: MessageEvent) -> Answer:
        entry = self._entry(rows[0], event)
        if rows[0]["attempts"] > self._most_attempts:
            self._places.suspend_session(entry.session_key)
            return Answer(entry.session_id, [GIVEN_UP.format(attempts=self._most_attempts)])
        if event.get_command():
            return self._carried_out(rows, entry, event)
        note = self._reset_note(entry)
        answer = self._turn(rows, entry, event.text)
        if note:
            self._places.update_session(entry.session_key, was_auto_reset=False)
        return Answer(entry.session_id, [*note, answer])

    def _entry(self, row: Row, event: MessageEvent) -> SessionEntry:
        """The conversation of a message: where it was said already, or where policy puts it."""
        known = self._places.get(row["session_key"])
        if known is not None and self._is_said(row):
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

    def _carried_out(self, rows: list[Row], entry: SessionEntry, event: MessageEvent) -> Answer:
        try:
            is_again = rows[0]["attempts"] > 1 and _is_newer(entry, rows[0])
            outcome = self._commands.run(entry, event, is_done=is_again)
        except HermesError as error:
            return Answer(entry.session_id, [str(error)])
        texts = [outcome.text] if outcome.text else []
        if outcome.say:
            again = self._places.get(entry.session_key) or entry
            texts.append(self._turn(rows, again, outcome.say))
        return Answer(entry.session_id, texts)

    # A turn

    def _turn(self, rows: list[Row], entry: SessionEntry, text: str) -> str:
        try:
            desk = self._conversations.take(entry)
            return self._played(rows, desk, text)
        except LeaseTakenError as error:  # a terminal is at work in it: its turn comes first
            time.sleep(LATER_SECONDS)
            raise LaterError from error
        except HermesError as error:
            return f"I cannot answer: {error}"
        finally:
            self._conversations.give_back(entry.session_id)

    def _played(self, rows: list[Row], desk: Desk, text: str) -> str:
        uid, *merged = map(_uid, rows)
        said = self._db.message_of(desk.session_id, uid)
        if said is None:
            known_as = rows[0]["message_id"]
            turn = desk.say(text, uid=uid, aliases=merged, platform_message_id=known_as)
        else:
            answer = _finished(self._db.get_messages(desk.session_id, after_id=said))
            if answer is not None:
                return answer
            turn = desk.go_on()
        last = None
        for event in turn:
            if isinstance(event, events.TurnFinished):
                last = event
        return self._told(last)

    def _told(self, last: events.TurnFinished | None) -> str:
        if last is None:
            return "Something broke off in the middle; please write again."
        if last.end is events.TurnEnd.INTERRUPTED:
            if self.is_leaving:
                raise LaterError
            return f"{last.text}\n\n(stopped)".strip()
        if last.end is events.TurnEnd.FAILED:
            return f"{last.text}\n\nI could not go on: {last.error}".strip()
        return last.text or "(nothing to say)"

    def _replies(self, event: MessageEvent, answer: Answer) -> list[Reply]:
        source = _source(event)
        platform = source.platform.value
        target = {"chat_id": source.chat_id, "thread_id": source.thread_id}
        found = [
            piece for text in answer.texts for piece in pieces(text, self._longest_text(platform))
        ]
        first = {"reply_to": event.message_id}
        return [
            Reply(platform, target, {"text": piece, **(first if number == 0 else {})})
            for number, piece in enumerate(found)
        ]


def _is_newer(entry: SessionEntry, row: Row) -> bool:
    """Whether a place's conversation was chosen after a message came: by that message, then."""
    return entry.created_at.timestamp() >= float(row["received_at"])


def _uid(row: Row) -> str:
    """The identity of what a message of the inbox says."""
    return f"inbox:{row['inbox_id']}"


def _source(event: MessageEvent) -> SessionSource:
    if event.source is None:
        raise UsageError("a message without a source cannot be answered")
    return event.source


def _finished(rows: list[dict[str, Any]]) -> str | None:
    """The answer behind a message, if it was given to its end."""
    last = rows[-1] if rows else None
    if last is None or last["role"] != "assistant" or last["tool_calls"]:
        return None
    return None if last["finish_reason"] in UNFINISHED else str(last["content"] or "")
