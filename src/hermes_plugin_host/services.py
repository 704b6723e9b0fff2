"""What plugins may use of the conversations that are open in this process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_CONVERSATION = "no conversation is open in this process, or several: pass its session_id"


class ModelAnswer(NamedTuple):
    """The answer of the model to a plugin."""

    text: str
    model: str
    usage: dict[str, int]


class PluginConversation(Protocol):
    """An open conversation, as plugins use it."""

    @property
    def session_id(self) -> str:
        """The session ID."""

    def inject(self, text: str) -> bool:
        """Give a text to the running turn; whether there is one that takes it."""

    def call_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool with the rights of the conversation."""

    def complete(self, messages: Sequence[Any], max_tokens: int | None) -> ModelAnswer:
        """Ask the model of the conversation; PluginError if it does not answer."""


class OpenConversations:
    """The conversations that are open in this process."""

    def __init__(self) -> None:
        self._open: list[PluginConversation] = []
        self._lock = threading.Lock()

    def add(self, conversation: PluginConversation) -> None:
        """Note that a conversation was opened."""
        with self._lock:
            self._open.append(conversation)

    def remove(self, conversation: PluginConversation) -> None:
        """Note that it was closed."""
        with self._lock:
            self._open = [item for item in self._open if item is not conversation]

    def find(self, session_id: str | None) -> PluginConversation | None:
        """The conversation with an ID; without one, the only one that is open."""
        with self._lock:
            found = [
                item for item in self._open if session_id is None or item.session_id == session_id
            ]
        return found[-1] if found and (session_id is not None or len(found) == 1) else None

    def get(self, session_id: str | None) -> PluginConversation:
        """The same; PluginError if there is none."""
        found = self.find(session_id)
        if found is None:
            raise PluginError(NO_CONVERSATION)
        return found


class PluginModel:
    """`ctx.llm`: the model of an open conversation, which counts the tokens."""

    def __init__(self, conversations: OpenConversations) -> None:
        self._conversations = conversations

    def complete(
        self,
        messages: str | Sequence[Any],
        *,
        max_tokens: int | None = None,
        session_id: str | None = None,
    ) -> ModelAnswer:
        """Ask the model, without tools; PluginError if it does not answer."""
        asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        return self._conversations.get(session_id).complete(asked, max_tokens)
