"""The conversations of chats: a cache of open ones, and what is known of each chat."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.inbound import prompt_format
from gateway.platforms.base import split_text
from gateway.platforms.names import Platform
from hermes_agent.context.system_prompt import with_instructions
from hermes_agent.tools.prompter import NonInteractivePrompter
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_core.paths import hermes_home
from hermes_core.roles import Person, Right, Role, may
from hermes_core.terminal_text import one_line
from hermes_state.files import media_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gateway.inbound.questions import ChatQuestions
    from gateway.routing.sources import SessionEntry, SessionSource
    from hermes_agent.tools.prompter import Prompter
    from hermes_agent.tools.send_file import SendsFiles
    from hermes_state.delivery.rows import StoredSource
    from hermes_state.store import SessionDB

    Describe = Callable[[SessionEntry, SessionSource | None], "ChatDescription"]
    from collections.abc import Mapping, Sequence

    from gateway.inbound.access_control import AccessControl
    from gateway.platforms.base import Adapter, Button
    from gateway.process.connections import Connections
    from gateway.routing.session_routes import SessionRoutes
    from gateway.routing.sources import SessionEntry, SessionSource
    from hermes_state.delivery.rows import ReplyPayload


MAX_CONVERSATIONS: Final = 128
CHOSEN_MODEL_KEY: Final = "_chosen_model"
# Their clients are programs, which name their conversations themselves.
WITHOUT_TITLES: Final = frozenset({Platform.WEBHOOK, Platform.API_SERVER})
INSTRUCTIONS_KEY: Final = "_instructions"


class ChatDescription(NamedTuple):
    """What a conversation needs about its chat."""

    about: str  # for the prompt
    scope_key: str  # the session key to restrict history search to; empty: all
    role: Role = Role.GUEST
    person: str = ""  # the folder name of the person
    sender: StoredSource | None = None  # chat and sender, for jobs that they schedule
    send_file: SendsFiles | None = None  # to the chat


class ConversationCache:
    """Open conversations by session ID."""

    def __init__(
        self,
        db: SessionDB,
        cwd: Path,
        questions: ChatQuestions,
        describe: Describe,
        *,
        is_bound_to_node: bool = False,
    ) -> None:
        self._is_bound_to_node = is_bound_to_node  # conversations that may use *cwd*
        self._db = db
        self._cwd = cwd
        self._questions = questions
        self._describe = describe
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def acquire(
        self, entry: SessionEntry, sender: SessionSource | None = None, instructions: str = ""
    ) -> Conversation:
        """The conversation of an entry, marked as busy until it is released.

        It has the rights of *sender*, or of the last sender without one. *instructions* replace
        those that it has.
        """
        session_id = entry.session_id
        with self._lock:
            self._busy.add(session_id)
            conversation = self._conversations.pop(session_id, None)
        try:
            if instructions and self._set_instructions(session_id, instructions) and conversation:
                conversation.stop()
                conversation = None
            conversation = self._with_rights(conversation, entry, sender)
        except BaseException:
            with self._lock:
                self._busy.discard(session_id)
            raise
        conversation.agent.expect_turn()
        with self._lock:
            self._conversations[session_id] = conversation
        return conversation

    def _with_rights(
        self, cached: Conversation | None, entry: SessionEntry, sender: SessionSource | None
    ) -> Conversation:
        """The cached conversation, unless the rights have changed since it was created."""
        chat = self._describe(entry, sender or entry.origin)
        if cached is None:
            return self._create(entry, chat)
        options = cached.options
        before = (options.role, options.person, options.scope_key, _chat_id(options.chat))
        if before == (chat.role, chat.person, chat.scope_key, _chat_id(chat.sender)):
            return cached
        cached.stop()
        return self._create(entry, chat)

    def _create(self, entry: SessionEntry, chat: ChatDescription) -> Conversation:
        session_id = entry.session_id
        if self._is_bound_to_node and may(chat.role, Right.ALL_FILES):
            self._db.nodes.bind(entry.session_key)
        platform = entry.platform.value if entry.platform else "gateway"
        options = ConversationOptions(
            session_id, self._chosen_model(session_id), platform, platform, self._cwd
        )
        options = options._replace(
            about=chat.about,
            scope_key=chat.scope_key,
            role=chat.role,
            person=chat.person,
            chat=chat.sender,
            send_file=chat.send_file,
            instructions=self._marker(session_id, INSTRUCTIONS_KEY),
            session_key=entry.session_key,
            has_automatic_title=entry.platform not in WITHOUT_TITLES,
        )
        return Conversation(self._db, self._prompter(entry), options)

    def _prompter(self, entry: SessionEntry) -> Prompter:
        """The prompter of a chat; the sender of a webhook is a program and answers nothing."""
        if entry.platform is Platform.WEBHOOK:
            return NonInteractivePrompter()
        return self._questions.prompter_for(entry.session_key)

    def choose_model(self, session_id: str, name: str) -> None:
        """Store the model chosen for a conversation."""
        self._db.sessions.update_session_meta(session_id, {CHOSEN_MODEL_KEY: name})

    def _chosen_model(self, session_id: str) -> str:
        return self._marker(session_id, CHOSEN_MODEL_KEY)

    def _marker(self, session_id: str, name: str) -> str:
        """A text that is stored with a conversation."""
        row = self._db.sessions.find(session_id)
        return "" if row is None else str(row.marker(name) or "")

    def _set_instructions(self, session_id: str, text: str) -> bool:
        """Store the instructions of a conversation; whether they have changed."""
        if self._marker(session_id, INSTRUCTIONS_KEY) == text:
            return False
        self._db.sessions.update_session_meta(session_id, {INSTRUCTIONS_KEY: text})
        row = self._db.sessions.find(session_id)
        if row is not None and row.system_prompt:
            prompt = with_instructions(row.system_prompt, text)
            self._db.sessions.update_system_prompt(session_id, prompt)
        return True

    def release(self, session_id: str) -> None:
        """Mark a conversation as idle; close the least recently used ones above the limit."""
        with self._lock:
            self._busy.discard(session_id)
            idle = [item for item in self._conversations if item not in self._busy]
            evicted = [
                self._conversations.pop(item)
                for item in idle[: max(len(self._conversations) - MAX_CONVERSATIONS, 0)]
            ]
        for conversation in evicted:
            conversation.stop()

    def running(self, session_id: str) -> Conversation | None:
        """The conversation, if a turn is running in it."""
        with self._lock:
            return self._conversations.get(session_id) if session_id in self._busy else None

    def all_running(self) -> list[Conversation]:
        """All conversations with a running turn."""
        with self._lock:
            return [self._conversations[item] for item in self._busy if item in self._conversations]

    def forget(self, session_id: str) -> None:
        """Close a conversation that the chat no longer uses."""
        with self._lock:
            conversation = self._conversations.pop(session_id, None)
        if conversation is not None:
            conversation.stop()

    def close(self) -> None:
        """Close all conversations."""
        with self._lock:
            closed, self._conversations = list(self._conversations.values()), OrderedDict()
        for conversation in closed:
            conversation.stop()


def _chat_id(source: StoredSource | None) -> tuple[str | None, ...]:
    """What identifies the chat of a source."""
    if source is None:
        return ()
    return source.get("platform"), source.get("chat_id"), source.get("thread_id")


class ChatFiles:
    """Stores files in the outbox."""

    def __init__(self, db: SessionDB, adapters: Mapping[str, Adapter]) -> None:
        self._db = db
        self._adapters = adapters

    def sender_for(self, source: SessionSource) -> SendsFiles | None:
        """What sends files to a chat; None if its platform cannot."""
        adapter = self._adapters.get(source.platform.value)
        if adapter is None or not adapter.abilities.files:
            return None

        def send(key: str, name: str, content: bytes, caption: str) -> None:
            stored = media_of(self._db).keep(content, name)
            # Platforms reject control characters in names, which file systems allow.
            path = hermes_home() / "media" / "sent" / stored.path.stem / (one_line(name) or "file")
            self._db.outbox.add(
                f"file:{key}",
                platform=source.platform.value,
                target={"chat_id": source.chat_id, "thread_id": source.thread_id},
                payload={"text": caption, "file": str(path), "media": stored.path.name},
            )

        return send


class Chats:
    """The chats of a gateway."""

    def __init__(
        self, db: SessionDB, routes: SessionRoutes, access: AccessControl, connections: Connections
    ) -> None:
        self._db = db
        self._routes = routes
        self._access = access
        self._connections = connections
        self._files = ChatFiles(db, connections.adapters)

    def describe(self, entry: SessionEntry, sender: SessionSource | None) -> ChatDescription:
        """The description of a chat for the prompt, and the rights of a turn there.

        In a conversation that several people write to, the turns of all have the rights of a
        guest: its texts may come from anyone.
        """
        if sender is None:
            return ChatDescription("", entry.session_key)
        is_shared = self._routes.is_shared(entry)
        about = prompt_format.describe_chat(sender, is_shared=is_shared)
        role = Role.GUEST if is_shared else self._access.role_of(sender)
        scope = "" if self._access.has_all_history(sender) else entry.session_key
        person = Person(sender.platform.value, sender.user_id or sender.chat_id)
        return ChatDescription(
            about,
            scope,
            role,
            person.folder_name,
            sender.to_dict(),
            self._files.sender_for(sender),
        )

    def session_of(self, session_key: str) -> str:
        """The session ID of a chat; empty if it has no conversation."""
        entry = self._routes.get(session_key)
        return entry.session_id if entry else ""

    def ask(self, session_key: str, text: str, buttons: Sequence[Button]) -> None:
        """Send a question to a chat; called from the thread of a turn."""
        entry = self._routes.get(session_key)
        origin = entry.origin if entry else None
        if entry is None or origin is None:
            return
        platform = origin.platform.value
        parts = split_text(text, self._connections.max_text_chars(platform))
        payloads: list[ReplyPayload] = [{"text": part} for part in parts]
        payloads[-1]["buttons"] = [(button.label, button.data) for button in buttons]
        for payload in payloads:
            self._db.outbox.add(
                f"question:{self._db.ids.new()}",
                platform=platform,
                target={"chat_id": origin.chat_id, "thread_id": origin.thread_id},
                payload=payload,
                session_id=entry.session_id,
            )
