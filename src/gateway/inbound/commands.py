"""Commands in a chat: those of every conversation, and what means something else here."""

from __future__ import annotations

import functools
import json
import time
from typing import TYPE_CHECKING, Final

from gateway.inbound.prompt_format import quoted
from hermes_conversation import slash_commands
from hermes_core.errors import LeaseTakenError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.inbound.access_control import AccessControl
    from gateway.inbound.questions import ChatQuestions, OpenChatQuestion
    from gateway.platforms.base import MessageEvent
    from gateway.routing.conversation_cache import ConversationCache
    from gateway.routing.entries import SessionEntry
    from gateway.session import SessionStore
    from hermes_conversation.conversation import Conversation
    from hermes_state import SessionDB

RESET: Final = (
    "New session. The conversation before it is kept: /resume goes on with it, and I can "
    "search it for you."
)
AT_HOME: Final = frozenset({"save", "quit", "exit", "q"})  # what makes no sense in a chat
FOR_ADMINS: Final = frozenset({"restart", "model", "memory", "approve", "handoff"})
# What would do something else when it is done twice.
ONCE: Final = frozenset({"undo", "redo", "retry", "branch", "fork", "compress"})
MEANWHILE: Final = frozenset({"approve", "deny", "stop", "steer", "status", "usage"})
HERE: Final = (
    ("whoami", "who you are to me"),
    ("restart", "finish what runs and start anew"),
)
NOT_AN_ADMIN: Final = (
    "/{name} is for admins of this agent: people listed in platforms.{platform}.allow_admin_from, "
    "or, where nobody is, those who were let in by name and write directly."
)
BROKEN_OFF: Final = (
    "I was interrupted while I carried out /{name} and cannot tell whether it was done. "
    "Please look, and repeat it if need be."
)
RESTARTED_BY: Final = "gateway_restarted_by"
LISTED: Final = 10


class ChatCommands:
    """What a message that begins with a slash does."""

    def __init__(
        self,
        db: SessionDB,
        places: SessionStore,
        conversations: ConversationCache,
        questions: ChatQuestions,
        door: AccessControl,
        restart: Callable[[], None],
    ) -> None:
        self._db = db
        self._places = places
        self._conversations = conversations
        self._questions = questions
        self._door = door
        self._restart = restart
        self._started = time.time()

    def run(
        self, entry: SessionEntry, event: MessageEvent, uid: str
    ) -> slash_commands.CommandOutcome:
        """Carry out the command of a message, which is known as *uid*: once.

        One that goes elsewhere is marked in the very change that does it. One that changes what
        was said is marked before it begins, and not begun again.
        """
        name, words = event.get_command() or "", event.get_command_args()
        self._require_admin(name, words, event)
        if name in ONCE:
            self._begin(entry, name, uid)
        if name == "sent" and event.internal:
            return self._noted(entry, event)
        if name in {"new", "reset"}:
            return self._new(entry, words, uid)
        if name == "resume":
            return self._resume(entry, event, words, uid)
        here: dict[str, Callable[[], str]] = {
            "sessions": lambda: "\n".join(self._own(entry)) or "No conversations yet.",
            "start": lambda: "Hello. Write to me; /help lists what else there is.",
            "whoami": lambda: self._whoami(event),
            "help": _help,
            "restart": lambda: self._restarting(event),
            "stop": lambda: "Nothing runs.",
            "approve": lambda: "Nothing is being asked.",
            "deny": lambda: "Nothing is being asked.",
        }
        if name in here:
            return slash_commands.CommandOutcome(here[name]())
        if name in AT_HOME:
            raise UsageError(f"/{name} is for the terminal")
        return self._at_desk(entry, name, words)

    def _begin(self, entry: SessionEntry, name: str, uid: str) -> None:
        """Make sure that a change of what was said is made once, and by nobody else meanwhile."""
        if self._db.is_turn_elsewhere(entry.session_id):
            raise LeaseTakenError("a turn runs elsewhere in this conversation")
        if not self._db.mark(f"{uid}:{name}"):
            raise UsageError(BROKEN_OFF.format(name=name))

    def _require_admin(self, name: str, words: str, event: MessageEvent) -> None:
        source = event.source
        is_question = name == "model" and not words
        if name not in FOR_ADMINS or is_question or event.internal or source is None:
            return
        if not self._door.is_admin(source):
            raise UsageError(NOT_AN_ADMIN.format(name=name, platform=source.platform.value))

    def _at_desk(self, entry: SessionEntry, name: str, words: str) -> slash_commands.CommandOutcome:
        slash_commands.find(name)
        conversation = self._conversations.take(entry)
        before = conversation.session_id
        try:
            outcome = slash_commands.run(conversation, f"/{name} {words}".rstrip())
            if conversation.session_id != before:  # a branch: the place goes along with it
                self._places.switch_session(entry.session_key, conversation.session_id, "branched")
            if name == "model" and words:
                self._conversations.choose_model(entry.session_id, words)
        finally:
            self._conversations.give_back(before)
            if conversation.session_id != before:  # it was switched to another
                self._conversations.forget(before)
        return outcome

    def _new(self, entry: SessionEntry, title: str, uid: str) -> slash_commands.CommandOutcome:
        if self._db.is_marked(uid):  # before a crash
            return slash_commands.CommandOutcome(RESET)
        stop_turn = functools.partial(self._conversations.forget, entry.session_id)
        new = reset_place(self._places, entry.session_key, stop_turn, uid)
        if title and new is not None:
            self._db.set_session_title(new.session_id, title)
        return slash_commands.CommandOutcome(RESET)

    def _noted(self, entry: SessionEntry, event: MessageEvent) -> slash_commands.CommandOutcome:
        """Something was sent here that answered nobody: the conversation knows it now."""
        text = event.text.removeprefix("/sent ")
        self._db.append_message(entry.session_id, "assistant", text, uid=str(event.message_id))
        return slash_commands.CommandOutcome()

    # Other conversations

    def _resume(
        self, entry: SessionEntry, event: MessageEvent, words: str, uid: str
    ) -> slash_commands.CommandOutcome:
        """Go on with an earlier conversation of this place; of no other, but by hand-off."""
        if self._db.is_marked(uid):  # before a crash
            return self._told(entry.session_id)
        if event.internal:
            return self._switched(entry, words, "handoff", uid)
        own = self._own_ids(entry)
        if not words:
            target = entry.prev_session_id or ""
            if target not in own:
                return slash_commands.CommandOutcome(
                    "\n".join(self._own(entry)) or "There is none before this."
                )
        else:
            target = self._meant(entry, words)
        return self._switched(entry, target, "session_switch", uid)

    def _meant(self, entry: SessionEntry, words: str) -> str:
        """The conversation of this place that somebody means; nothing of others is told."""
        rows = self._db.list_sessions_rich(limit=-1, session_key=entry.session_key)
        wanted = words.casefold()
        exact = [one for one in rows if wanted in {one["id"], str(one.get("title")).casefold()}]
        near = [
            one
            for one in rows
            if one["id"].startswith(words) or str(one.get("title")).casefold().startswith(wanted)
        ]
        found = {str(one["id"]) for one in exact or near}
        if len(found) != 1:
            several = "there are several conversations" if found else "there is no conversation"
            raise UsageError(f"{several} {words!r} of this chat; /sessions lists them")
        return found.pop()

    def _switched(
        self, entry: SessionEntry, target: str, reason: str, uid: str
    ) -> slash_commands.CommandOutcome:
        for session_id in (entry.session_id, target):  # a conversation belongs to its place
            self._conversations.forget(session_id)
        self._places.switch_session(entry.session_key, target, reason, mark=uid)
        return self._told(target)

    def _told(self, session_id: str) -> slash_commands.CommandOutcome:
        row = self._db.get_session(session_id) or {}
        return slash_commands.CommandOutcome(f"Going on with {row.get('title') or session_id}.")

    def _own_ids(self, entry: SessionEntry) -> set[str]:
        rows = self._db.list_sessions_rich(limit=-1, session_key=entry.session_key)
        return {str(row["id"]) for row in rows} | {entry.session_id}

    def _own(self, entry: SessionEntry) -> list[str]:
        rows = self._db.list_sessions_rich(
            limit=LISTED, session_key=entry.session_key, order_by_last_active=True
        )
        return [f"{row['id']}  {row.get('title') or row.get('preview') or ''}" for row in rows]

    # The agent as a whole

    def _whoami(self, event: MessageEvent) -> str:
        source = event.source
        if source is None:
            return "I do not know."
        role = "an admin" if self._door.is_admin(source) else "a user"
        return f"{quoted(source.user_name)}, {source.user_id} on {source.platform.value}: {role}."

    def _restarting(self, event: MessageEvent) -> str:
        source = event.source
        if event.timestamp < self._started:
            return "I have begun anew since."
        if source is not None:
            target = {"chat_id": source.chat_id, "thread_id": source.thread_id}
            note = {"platform": source.platform.value, "target": target}
            self._db.set_meta(RESTARTED_BY, json.dumps(note))
        self._restart()
        return "I finish what runs and start anew; what you write meanwhile is answered then."

    # While a turn runs

    def meanwhile(self, entry: SessionEntry, event: MessageEvent, uid: str) -> str | None:
        """Carry out at once what concerns the running turn; None when it has to wait.

        What is said to the turn waits as well, as *uid*: the turn may not come to read it.
        """
        question = self._questions.waiting(entry.session_key)
        name = event.get_command()
        if name is None:
            if question is None or question.kind != "clarify" or not self._may(event, question):
                return None
            self._questions.answer(entry.session_key, event.text, question)
            return ""
        conversation = self._conversations.running(entry.session_id)
        if conversation is not None and name in {"new", "reset"}:
            conversation.agent.interrupt("a new conversation was asked for")
            self._questions.give_up(entry.session_key)
        if conversation is None or name not in MEANWHILE:
            return None
        self._require_admin(name, event.get_command_args(), event)
        return self._to_turn(conversation, entry, event, uid)

    def _to_turn(
        self, conversation: Conversation, entry: SessionEntry, event: MessageEvent, uid: str
    ) -> str | None:
        line = f"/{event.get_command()} {event.get_command_args()}".rstrip()
        outcome = slash_commands.run(conversation, line)
        if outcome.answer:
            return self._answered(entry, event, outcome.answer)
        if outcome.stop:
            conversation.agent.interrupt("/stop")
            self._questions.give_up(entry.session_key)
            return ""
        if outcome.steer:
            conversation.agent.steer(outcome.steer, uid)
            return None
        return outcome.text

    def _answered(self, entry: SessionEntry, event: MessageEvent, answer: str) -> str:
        question = self._questions.waiting(entry.session_key)
        if question is None:
            return "Nothing is being asked."
        if not self._may(event, question):
            raise UsageError("only the one who is being worked for, or an admin, can answer that")
        self._questions.answer(entry.session_key, answer, question)
        return ""

    def _may(self, event: MessageEvent, question: OpenChatQuestion) -> bool:
        """Whether somebody may answer: it is their turn, or they are admins."""
        source = event.source
        if source is None:
            return False
        return (source.user_id or "") == question.requester or self._door.is_admin(source)


def reset_place(
    places: SessionStore, session_key: str, stop_turn: Callable[[], object], mark: str = ""
) -> SessionEntry | None:
    """`/new`: stop the turn of a place and give the place a new conversation."""
    stop_turn()
    return places.reset_session(session_key, mark=mark)


def _help() -> str:
    rows = [(f"/{one.name} {one.hint}".rstrip(), one.help) for one in slash_commands.COMMANDS
            if one.name not in AT_HOME]  # fmt: skip
    rows += [(f"/{name}", about) for name, about in HERE]
    return "\n".join(f"{name} - {about}" for name, about in rows)
