"""Files that the agent sends to the chat it talks in.

The content is stored when the agent calls the tool: what happens to the file later, and on which
machine the gateway sends it, does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.paths import hermes_home
from hermes_core.terminal_text import one_line
from hermes_state.files import media_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.platforms.base import Adapter
    from gateway.routing.sources import SessionSource
    from hermes_agent.tools.send_file import SendsFiles
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
