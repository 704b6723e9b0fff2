"""A turn for a chat message: said once, whatever happens, shown while it is written.

What the user said has an identity made of its place in the inbox: when a message comes back
after a crash, its turn is found as it stands, and either goes on or has its answer sent.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.inbound import inbox_codec
from gateway.inbound.attachments import heard
from gateway.inbound.prompt_format import said
from hermes_agent import events
from hermes_agent.conversation_store import UNFINISHED
from hermes_core.errors import HermesError, LeaseTakenError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.inbound.attachments import Transcriber
    from gateway.inbound.questions import ChatQuestions
    from gateway.inbound.usage_limits import Limits
    from gateway.outbound.live_reply import LiveReply, Screen
    from gateway.platforms.base import MessageEvent
    from gateway.routing.conversation_cache import ConversationCache
    from gateway.routing.entries import SessionEntry
    from hermes_agent.events import Event
    from hermes_conversation.conversation import Conversation
    from hermes_state import SessionDB

    Row = dict[str, Any]

LATER_SECONDS: Final = 1.0


class LaterError(Exception):
    """It cannot be answered now: the gateway leaves, or somebody else has the turn."""


class TurnPrompt(NamedTuple):
    """What is to be said, and by which messages of the inbox."""

    rows: list[Row]  # the first is the one that is answered, the others were merged into it
    events: list[MessageEvent]
    text: str = ""  # instead of what the messages say


class TurnRunner:
    """Plays turns; called from as many threads as there are places at work."""

    def __init__(
        self,
        db: SessionDB,
        conversations: ConversationCache,
        questions: ChatQuestions,
        showing: LiveReply,
        limits: Limits,
        write_down: Transcriber | None,
    ) -> None:
        self._db = db
        self._conversations = conversations
        self._questions = questions
        self._showing = showing
        self._limits = limits
        self._write_down = write_down
        self.is_leaving = False

    def is_said(self, session_id: str, row: Row) -> bool:
        """Whether a message stands in a conversation already, from an earlier attempt."""
        return self._db.message_of(session_id, inbox_codec.uid(row["inbox_id"])) is not None

    def play(self, prompt: TurnPrompt, entry: SessionEntry, *, is_shared: bool) -> str:
        """The answer to what is said in a place."""
        source = prompt.events[0].source
        if source is not None and not self.is_said(entry.session_id, prompt.rows[0]):
            refusal = self._limits.refusal(source, prompt.rows[0]["inbox_id"])
            if refusal:
                return refusal
        requester = source.user_id if source is not None else None
        self._questions.work_for(entry.session_key, requester or "")
        try:
            conversation = self._conversations.take(entry)
            before = _cost(conversation)
            answer = self._played(prompt, conversation, is_shared=is_shared)
            if source is not None:
                self._limits.spent(source, _cost(conversation) - before)
        except LeaseTakenError as error:  # a terminal is at work in it: its turn comes first
            time.sleep(LATER_SECONDS)
            raise LaterError from error
        except StoreError:
            raise  # it is tried again when the store lets us
        except HermesError as error:
            return f"I cannot answer: {error}"
        else:
            return answer
        finally:
            self._conversations.give_back(entry.session_id)
            self._questions.done(entry.session_key)

    def _played(self, prompt: TurnPrompt, conversation: Conversation, *, is_shared: bool) -> str:
        row = prompt.rows[0]
        place = self._db.message_of(conversation.session_id, inbox_codec.uid(row["inbox_id"]))
        if place is None:
            turn = self._said(prompt, conversation, is_shared=is_shared)
        else:
            answer = _finished(self._db.get_messages(conversation.session_id, after_id=place))
            if answer is not None:
                return answer
            turn = conversation.continue_turn()
        with self._showing.of(row["inbox_id"], prompt.events[-1]) as screen:
            last = _followed(turn, screen)
        conversation.agent.take_steering()  # what it has not read waits in the inbox
        return self._told(last)

    def _said(
        self, prompt: TurnPrompt, conversation: Conversation, *, is_shared: bool
    ) -> Iterable[Event]:
        uid, *merged = [inbox_codec.uid(one["inbox_id"]) for one in prompt.rows]
        found = [heard(event, self._write_down) for event in prompt.events]
        words = [prompt.text] if prompt.text else self._words(prompt, is_shared=is_shared)
        notes = [note for one in found for note in one.notes]
        return conversation.send(
            "\n".join([*words, *notes]),
            [picture for one in found for picture in one.pictures],
            uid=uid,
            aliases=merged,
            platform_message_id=prompt.rows[0]["message_id"],
        )

    def _words(self, prompt: TurnPrompt, *, is_shared: bool) -> list[str]:
        spoken = [said(event, is_shared=is_shared) for event in prompt.events]
        return [one for one in spoken if one.strip()]

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


def _followed(turn: Iterable[Event], screen: Screen) -> events.TurnFinished | None:
    """Play a turn to its end, on a screen."""
    last = None
    for event in turn:
        if isinstance(event, events.TextDelta):
            screen.add(event.text)
        elif isinstance(event, events.ToolStarted):
            screen.begin_again()
        elif isinstance(event, events.TurnFinished):
            last = event
    return last


def _cost(conversation: Conversation) -> float:
    row = conversation.row()
    return float(row.get("actual_cost_usd") or row.get("estimated_cost_usd") or 0.0)


def _finished(rows: list[Row]) -> str | None:
    """The answer behind a message, if it was given to its end."""
    last = rows[-1] if rows else None
    if last is None or last["role"] != "assistant" or last["tool_calls"]:
        return None
    return None if last["finish_reason"] in UNFINISHED else str(last["content"] or "")
