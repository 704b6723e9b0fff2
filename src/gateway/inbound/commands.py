"""Chat commands: the slash commands of every conversation, and those specific to chats."""

from __future__ import annotations

import functools
import json
import time
from typing import TYPE_CHECKING, Final, TypedDict

from gateway.inbound.prompt_format import message_uid, quote_text
from gateway.platforms.base import MenuCommand
from hermes_agent.providers.selection import require_configured_url
from hermes_conversation import slash_commands
from hermes_conversation.scheduled_jobs import chat_requester, remind
from hermes_conversation.slash_commands import ChatRule, CommandOutcome, Surface
from hermes_core.config.file import ConfigFile
from hermes_core.errors import LeaseTakenError, UsageError
from hermes_core.roles import Right, Role, may

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.inbound.access_control import AccessControl
    from gateway.inbound.questions import ChatQuestions, OpenChatQuestion
    from gateway.platforms.base import MessageEvent
    from gateway.routing.conversation_cache import ConversationCache
    from gateway.routing.session_routes import SessionRoutes
    from gateway.routing.sources import SessionEntry
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.slash_commands import SlashCommand
    from hermes_state.delivery.rows import ReplyTarget
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

RESET_REPLY: Final = (
    "New session started. The previous conversation is saved: /resume continues it, and I can "
    "search it."
)
TURN_COMMANDS: Final = slash_commands.names_with(ChatRule.RUNS_TURN)
OVERTAKING_COMMANDS: Final = slash_commands.names_with(ChatRule.OVERTAKES)
NEW_COMMANDS: Final = slash_commands.find("new").names
RUNNING_TURN_COMMANDS: Final = slash_commands.names_with(ChatRule.DURING_TURN)
PLAIN_ANSWERS: Final = {
    **dict.fromkeys(("yes", "y", "ok", "okay", "allow", "approve", "👍"), "once"),
    **dict.fromkeys(("no", "n", "nope", "deny", "👎"), "deny"),
}
COMMAND_INTERRUPTED: Final = (
    "The gateway stopped while running /{name}, so the command may or may not have taken effect. "
    "Check the result and repeat the command if necessary."
)
DELETED_COMMAND: Final = "deleted"  # internal: mark the message of an inbox row
RESTART_REQUEST_KEY: Final = "gateway_restarted_by"
MAX_LISTED_SESSIONS: Final = 10


class RestartRequest(TypedDict):
    """The chat from which a restart was requested."""

    platform: str
    target: ReplyTarget


class ChatCommands:
    """Runs the messages that start with a slash."""

    def __init__(
        self,
        db: SessionDB,
        routes: SessionRoutes,
        conversations: ConversationCache,
        questions: ChatQuestions,
        access: AccessControl,
        restart: Callable[[], None],
    ) -> None:
        self._db = db
        self._routes = routes
        self._conversations = conversations
        self._questions = questions
        self._access = access
        self._restart = restart
        self._started = time.time()

    def run(self, entry: SessionEntry, event: MessageEvent, uid: str) -> CommandOutcome:
        """Run the command of the message *uid* once, also when the message is handled again.

        A command that changes the route is marked as done in the same transaction. One that
        changes the history is marked before it starts and is not started again.
        """
        arguments, role = event.get_command_args(), self._role(event)
        command = slash_commands.find(event.get_command() or "")
        slash_commands.require_right(command, role, arguments)
        slash_commands.require_surface(command, Surface.CHAT)
        if not command.repeatable:
            self._mark_once(entry, command, uid)
        changes: dict[str, Callable[[], CommandOutcome]] = {
            "sent": lambda: self._record_sent(entry, event),
            "new": lambda: self._new(entry, arguments, uid),
            "resume": lambda: self._resume(entry, event, arguments, uid),
            "branch": lambda: self._branch(entry, arguments, uid),
        }
        replies: dict[str, Callable[[], str]] = {
            "sessions": lambda: "\n".join(self._list_own(entry)) or "No conversations yet.",
            "start": lambda: "Hello. Send me a message, or /help for a list of commands.",
            "whoami": lambda: self._whoami(event),
            "help": lambda: _help(role),
            "remind": lambda: self._remind(event, role, uid),
            "restart": lambda: self._request_restart(event),
            "stop": lambda: "No turn is running.",
        }
        if command.name in changes:
            return changes[command.name]()
        if command.name in replies:
            return CommandOutcome(replies[command.name]())
        if ChatRule.ANSWERS in command.chat:
            return CommandOutcome(_no_question(event))
        return self._run_shared(entry, event, role, command)

    def _remind(self, event: MessageEvent, role: Role, uid: str) -> str:
        """`/remind`, without the agent; a message that is handled again adds nothing."""
        if event.source is None:
            raise UsageError("A reminder needs a chat.")
        requester = chat_requester(event.source.to_dict(), role)
        return remind(self._db, requester, event.get_command_args(), f"message:{uid}")

    def _mark_once(self, entry: SessionEntry, command: SlashCommand, uid: str) -> None:
        """Mark a command that must not run twice, before it has an effect."""
        if not command.while_busy:
            self._require_idle(entry)
        if not self._db.chats.mark(f"{uid}:{command.name}"):
            raise UsageError(COMMAND_INTERRUPTED.format(name=command.name))

    def _require_idle(self, entry: SessionEntry) -> None:
        if self._db.leases.is_held_elsewhere(entry.session_id):
            raise LeaseTakenError("Another process is running a turn in this conversation.")

    def _role(self, event: MessageEvent) -> Role:
        """The role of a sender; messages of the gateway itself have the owner's rights."""
        if event.internal:
            return Role.OWNER
        return self._access.role_of(event.source) if event.source else Role.GUEST

    def _run_shared(
        self, entry: SessionEntry, event: MessageEvent, role: Role, command: SlashCommand
    ) -> CommandOutcome:
        name, arguments = command.name, event.get_command_args()
        if command.provided is not None:
            return CommandOutcome(command.provided.run(arguments))
        if name == "model":
            require_configured_url(ConfigFile.of_home().settings(), arguments.strip())
        conversation = self._conversations.acquire(entry, event.source)
        try:
            line = f"/{name} {arguments}".rstrip()
            outcome = slash_commands.run(conversation, line, Surface.CHAT, role)
            if name == "model" and arguments:
                self._conversations.choose_model(entry.session_id, arguments)
        finally:
            self._conversations.release(entry.session_id)
        return outcome

    def _branch(self, entry: SessionEntry, title: str, uid: str) -> CommandOutcome:
        if self._db.chats.is_marked(uid):  # done before a crash
            return CommandOutcome(slash_commands.BRANCHED_TEXT.format(entry.session_id))
        self._require_idle(entry)
        self._conversations.forget(entry.session_id)
        new = self._routes.branch_session(entry.session_key, title, uid)
        return CommandOutcome(slash_commands.BRANCHED_TEXT.format((new or entry).session_id))

    def _new(self, entry: SessionEntry, title: str, uid: str) -> CommandOutcome:
        if self._db.chats.is_marked(uid):  # done before a crash
            return CommandOutcome(RESET_REPLY)
        stop_turn = functools.partial(self._conversations.forget, entry.session_id)
        new = reset_route(self._routes, entry.session_key, stop_turn, uid)
        if title and new is not None:
            self._db.titles.set_session_title(new.session_id, title)
        return CommandOutcome(RESET_REPLY)

    def _record_sent(self, entry: SessionEntry, event: MessageEvent) -> CommandOutcome:
        """Record a message that was sent to this chat without a prompt."""
        if not event.internal:
            raise UsageError("Unknown command: /sent. Type /help.")
        text = event.text.removeprefix("/sent ")
        self._db.messages.append_message(
            entry.session_id, "assistant", text, uid=str(event.message_id)
        )
        return CommandOutcome()

    def mark_deleted(self, inbox_id: int) -> None:
        """Mark a stored message as deleted by its sender; the model no longer gets its text."""
        for session_id in self._db.edits.mark_deleted(message_uid(inbox_id)):
            self._conversations.forget(session_id)  # its kept messages contain the text

    # Other conversations of the chat

    def _resume(
        self, entry: SessionEntry, event: MessageEvent, arguments: str, uid: str
    ) -> CommandOutcome:
        """Continue an earlier conversation of this chat; others only by hand-off."""
        if self._db.chats.is_marked(uid):  # done before a crash
            return self._resumed(entry.session_id)
        if event.internal:
            return self._switch(entry, arguments, "handoff", uid)
        own = self._own_ids(entry)
        if not arguments:
            target = entry.prev_session_id or ""
            if target not in own:
                return CommandOutcome(
                    "\n".join(self._list_own(entry)) or "No previous conversation."
                )
        else:
            target = self._find_own(entry, arguments)
        return self._switch(entry, target, "session_switch", uid)

    def _find_own(self, entry: SessionEntry, arguments: str) -> str:
        """The conversation of this chat with an ID or title; those of other chats stay hidden."""
        rows = self._own_sessions(entry)
        wanted = arguments.casefold()
        exact = [row for row in rows if wanted in {row.id, str(row.title).casefold()}]
        near = [
            row
            for row in rows
            if row.id.startswith(arguments) or str(row.title).casefold().startswith(wanted)
        ]
        results = {row.id for row in exact or near}
        if len(results) != 1:
            count = "Several conversations match" if results else "No conversation matches"
            raise UsageError(f"{count} {arguments!r} in this chat. /sessions lists them.")
        return results.pop()

    def _switch(self, entry: SessionEntry, target: str, reason: str, uid: str) -> CommandOutcome:
        self._forget(entry.session_id, target)
        self._routes.switch_session(entry.session_key, target, reason, mark=uid)
        return self._resumed(target)

    def _forget(self, session_id: str, target: str) -> None:
        """Close the cached conversations of a switch, which are bound to their chat."""
        if self._conversations.running(target) is not None:
            raise LeaseTakenError("A turn of this conversation is running in another chat.")
        for name in (session_id, target):
            self._conversations.forget(name)

    def _resumed(self, session_id: str) -> CommandOutcome:
        title = self._db.titles.get_session_title(session_id)
        return CommandOutcome(f"Continuing {title or session_id}.")

    def _own_ids(self, entry: SessionEntry) -> set[str]:
        return {row.id for row in self._own_sessions(entry)} | {entry.session_id}

    def _own_sessions(self, entry: SessionEntry) -> list[SessionRow]:
        listed = self._db.lists.sessions(limit=-1, session_key=entry.session_key)
        return [item.session for item in listed]

    def _list_own(self, entry: SessionEntry) -> list[str]:
        listed = self._db.lists.sessions(
            limit=MAX_LISTED_SESSIONS, session_key=entry.session_key, order_by_last_active=True
        )
        return [f"{item.session.id}  {item.session.title or item.preview}" for item in listed]

    # The gateway

    def _whoami(self, event: MessageEvent) -> str:
        source = event.source
        if source is None:
            return "Unknown user."
        role = self._access.role_of(source)
        user = f"{quote_text(source.user_name)} (ID {source.user_id})"
        return f"{user} on {source.platform.value}. Role: {role}."

    def _request_restart(self, event: MessageEvent) -> str:
        source = event.source
        if event.timestamp < self._started:
            return "The gateway has already restarted."
        if source is not None:
            note: RestartRequest = {
                "platform": source.platform.value,
                "target": {"chat_id": source.chat_id, "thread_id": source.thread_id},
            }
            self._db.meta.set_meta(RESTART_REQUEST_KEY, json.dumps(note))
        self._restart()
        return "Restarting after current turns finish. New messages are answered afterwards."

    # While a turn runs

    def run_during_turn(self, entry: SessionEntry, event: MessageEvent, uid: str) -> str | None:
        """Run a command or answer that concerns the running turn; None if the message has to wait.

        Steering waits in the inbox as well, as *uid*: the turn may end without reading it.
        """
        question = self._questions.pending(entry.session_key)
        name = event.get_command()
        if event.question_id and (question is None or question.question_id != event.question_id):
            return _no_question(event)
        if name is None:
            answer = self._plain_answer(event, question) if question else None
            if answer is None:
                return None
            self._questions.answer(entry.session_key, answer, question)
            return ""
        conversation = self._conversations.running(entry.session_id)
        if conversation is not None and name in NEW_COMMANDS:
            conversation.agent.interrupt("new conversation requested")
            self._questions.cancel(entry.session_key)
        if conversation is None or name not in RUNNING_TURN_COMMANDS:
            return None
        role = self._role(event)
        command = slash_commands.find(name)
        slash_commands.require_right(command, role, event.get_command_args())
        if name == "steer" and conversation.options.role not in {Role.GUEST, role}:
            return None  # the turn has other rights than the sender
        return self._apply_to_turn(conversation, entry, event, uid)

    def _apply_to_turn(
        self, conversation: Conversation, entry: SessionEntry, event: MessageEvent, uid: str
    ) -> str | None:
        if event.get_command() == "answer":
            question = self._questions.pending(entry.session_key)
            if question is not None and question.kind != "clarify":
                return "This is an approval: use /approve or /deny."
            return self._answer(entry, event, event.get_command_args())
        line = f"/{event.get_command()} {event.get_command_args()}".rstrip()
        outcome = slash_commands.run(conversation, line, Surface.CHAT, self._role(event))
        if outcome.answer:
            return self._answer(entry, event, outcome.answer)
        if outcome.stop:
            conversation.agent.interrupt("/stop")
            self._questions.cancel(entry.session_key)
            return ""
        if outcome.steer:
            conversation.agent.steer(outcome.steer, uid)
            return None
        return outcome.text

    def _answer(self, entry: SessionEntry, event: MessageEvent, answer: str) -> str:
        question = self._questions.pending(entry.session_key)
        if question is None:
            return "No pending question."
        if not self._may_answer(event, question):
            raise UsageError(
                "Only the user who started this turn or the owner can answer this question."
            )
        self._questions.answer(entry.session_key, answer, question)
        return ""

    def _plain_answer(self, event: MessageEvent, question: OpenChatQuestion) -> str | None:
        """The answer that a message without a command gives; None if it is none."""
        is_late_enough = question.was_asked_before(event.timestamp)  # else meant for another one
        if not is_late_enough or not self._may_answer(event, question):
            return None
        if question.kind == "clarify":
            return event.text
        may_approve = may(self._role(event), Right.APPROVE)
        return (
            PLAIN_ANSWERS.get(event.text.strip().rstrip(".!").casefold()) if may_approve else None
        )

    def _may_answer(self, event: MessageEvent, question: OpenChatQuestion) -> bool:
        """Whether the sender may answer: the user who started the turn, or the owner."""
        source = event.source
        if source is None:
            return False
        is_requester = (source.user_id or "") == question.requester
        return is_requester or self._access.may(source, Right.APPROVE)


def with_slash(text: str) -> str:
    """A command that starts with `!`, as apps that intercept `/` need it, with a slash."""
    if not text.startswith("!") or text[1:2].isspace():
        return text
    name = text[1:].partition(" ")[0].partition("\n")[0].partition("@")[0].lower()
    return f"/{text[1:]}" if slash_commands.is_known(name) else text


def reset_route(
    routes: SessionRoutes, session_key: str, stop_turn: Callable[[], object], mark: str = ""
) -> SessionEntry | None:
    """`/new`: stop the running turn of a chat and start a new conversation there."""
    stop_turn()
    return routes.reset_session(session_key, mark=mark)


def _no_question(event: MessageEvent) -> str:
    return "This question is no longer open." if event.question_id else "No pending question."


def menu_commands(role: Role = Role.OWNER) -> tuple[MenuCommand, ...]:
    """The commands for the menus of platforms, those that a role may use."""
    return tuple(
        MenuCommand(command.name, command.help, command.hint)
        for command in slash_commands.listed_commands(Surface.CHAT)
        if ":" not in command.name and may(role, command.right)
    )


def _help(role: Role) -> str:
    return "\n".join(
        f"{f'/{command.name} {command.hint}'.rstrip()} - {command.help}"
        for command in menu_commands(role)
    )
