"""Which client sent which input: input that is returned goes back to its sender."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_conversation.pending_input import PromptInput

Client = TypeVar("Client")


class InputSenders(Generic[Client]):
    """The senders of input that waits for a turn; the owner guards it with a lock."""

    def __init__(self) -> None:
        self._sent: list[tuple[str, Client | None]] = []

    def add(self, text: str, client: Client | None) -> None:
        """A client has sent *text*."""
        self._sent.append((text, client))

    def split(
        self, items: Iterable[PromptInput], clients: Sequence[Client]
    ) -> dict[int, list[PromptInput]]:
        """*items* by the `id` of the client they return to.

        What a client sent that is not among *clients* goes to the last of them: one that has
        reconnected is there.
        """
        result: dict[int, list[PromptInput]] = {}
        for item in items:
            sender = self._pop(item.text)
            present = any(sender is client for client in clients)
            receiver = sender if present else next(reversed(clients), None)
            result.setdefault(id(receiver), []).append(item)
        return result

    def keep(self, texts: Sequence[str]) -> None:
        """Forget the senders of all input except *texts*."""
        self._sent = [sent for sent in self._sent if sent[0] in texts]

    def _pop(self, text: str) -> Client | None:
        for number, (sent, client) in enumerate(self._sent):
            if sent == text:
                del self._sent[number]
                return client
        return None
