"""What the gateway knows about a chat, and how it asks a question there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.inbound import prompt_format
from gateway.outbound.chunks import split_text
from gateway.routing.conversation_cache import ChatDescription
from hermes_core.paths import hermes_home
from hermes_core.roles import Person, Role
from hermes_core.terminal_text import one_line
from hermes_state.files import media_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.inbound.access_control import AccessControl
    from gateway.platforms.base import Adapter, Button
    from gateway.process.connections import Connections
    from gateway.routing.session_routes import SessionRoutes
    from gateway.routing.sources import SessionEntry, SessionSource
    from hermes_agent.tools.send_file import SendsFiles
    from hermes_state.delivery.stored_json import ReplyPayload
    from hermes_state.store import SessionDB


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
