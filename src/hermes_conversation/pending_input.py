"""Input that arrives while a turn runs: steer the turn, queue for the next, or interrupt.

The agent reads steering after its next tool result. Steering it has not read when the turn
ends, and queued input, become the next turn, in order. After an interrupted or failed turn
they are returned to the user instead. Terminals keep them in the store until then, so that
a crash returns them too; chat messages are kept by the inbox. Pictures go with the queued
message that they were attached to, and return with it.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from hermes_core.json_values import list_in, text_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_agent.agent import AIAgent
    from hermes_conversation.attachments import Picture
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_state.store import SessionDB

META_KEY: Final = "hermes_unread:"  # released files have it; the session id follows

BusyMode = Literal["steer", "queue", "interrupt"]


class HasAgent(Protocol):
    """A conversation; its agent changes with its model."""

    db: SessionDB

    @property
    def agent(self) -> AIAgent: ...

    @property
    def session_id(self) -> str: ...


class PromptInput(NamedTuple):
    """A message for a later turn, with its pictures."""

    text: str = ""
    pictures: tuple[Picture, ...] = ()

    @property
    def images(self) -> list[str]:
        """The files of the pictures."""
        return [picture.path for picture in self.pictures if picture.is_in_file]

    def stored(self) -> JsonData:
        """The message in the store: its text, as in released files, or an object."""
        return {"text": self.text, "images": self.images} if self.images else self.text


class ReturnedInput(NamedTuple):
    """Input that is returned to the user: its text, and the files of its pictures."""

    text: str = ""
    images: tuple[str, ...] = ()


class AfterTurn(NamedTuple):
    """What a finished turn leaves: the next input, and the inputs returned to the user."""

    next_input: PromptInput = PromptInput()
    returned: tuple[PromptInput, ...] = ()


class PendingInput:
    """The pending input of one conversation; called by the turn's thread and by front ends."""

    def __init__(self, conversation: HasAgent) -> None:
        self._conversation = conversation
        self._steering: list[str] = []
        self._queued: list[PromptInput] = []
        self._replacement: list[PromptInput] = []
        self._is_interrupted = False
        self._is_stored = False
        self._lock = threading.Lock()

    def submit(self, text: str, mode: BusyMode) -> None:
        """Apply the configured mode to *text*."""
        if mode == "steer":
            self.steer(text)
        elif mode == "interrupt":
            self.interrupt(text)
        else:
            self.queue(text)

    def steer(self, text: str) -> None:
        """Give *text* to the running turn."""
        with self._lock:
            self._steering.append(text)
            self._store()
            self._conversation.agent.steer(text)

    def queue(self, text: str, pictures: Sequence[Picture] = ()) -> None:
        """Keep *text* with its pictures for after the turn."""
        with self._lock:
            self._queued.append(PromptInput(text, tuple(pictures)))
            self._store()

    def interrupt(self, replacement: str = "") -> None:
        """Stop the turn, and continue with *replacement* where it is given."""
        self.hold(replacement)
        self._conversation.agent.interrupt()

    def hold(self, replacement: str = "", pictures: Sequence[Picture] = ()) -> None:
        """Continue with nothing but *replacement* after the turn, which is about to be stopped."""
        with self._lock:
            self._is_interrupted = True
            if replacement:
                self._replacement.append(PromptInput(replacement, tuple(pictures)))
                self._store()

    def mark_read(self) -> None:
        """The agent has read steering; what it has been given since is still pending."""
        with self._lock:
            if self._steering:
                self._steering = self._conversation.agent.pending_steering()
                self._store()

    def waiting(self) -> list[str]:
        """The texts of all pending input, in order."""
        with self._lock:
            return [item.text for item in self._all()]

    def after_turn(self, *, is_complete: bool) -> AfterTurn:
        """Decide what follows the turn that has just ended."""
        unread = self._conversation.agent.pending_steering()
        self._conversation.agent.pop_steering()  # the unread part is kept here as well
        with self._lock:
            # Plugins steer the agent directly.
            self._steering += [text for text in unread if text not in self._steering]
            if is_complete and not self._is_interrupted:
                result = AfterTurn(self._next())
            else:
                returned = (*map(PromptInput, self._steering), *self._queued)
                result = AfterTurn(_joined(self._replacement), returned)
                self._steering, self._queued = [], []
            self._replacement, self._is_interrupted = [], False
            self._store()
            return result

    def restore(self) -> ReturnedInput:
        """The pending input of a process that crashed; it is returned once.

        Input of a turn that another process runs is left to that process.
        """
        conversation = self._conversation
        if conversation.db.leases.is_held_elsewhere(conversation.session_id):
            return ReturnedInput()
        with self._lock:
            key = META_KEY + conversation.session_id
            meta = conversation.db.meta.get_meta(key)
            if meta:
                conversation.db.meta.delete(key)
        return _restored(json.loads(meta)) if meta else ReturnedInput()

    def _next(self) -> PromptInput:
        if self._steering:
            steering, self._steering = self._steering, []
            return PromptInput(join_inputs(steering))
        return self._queued.pop(0) if self._queued else PromptInput()

    def _all(self) -> list[PromptInput]:
        return [*map(PromptInput, self._steering), *self._queued, *self._replacement]

    def _store(self) -> None:
        db, key = self._conversation.db, META_KEY + self._conversation.session_id
        waiting = self._all()
        if waiting:
            db.meta.set_meta(key, json.dumps([item.stored() for item in waiting]))
        elif self._is_stored:
            db.meta.delete(key)
        self._is_stored = bool(waiting)


def join_inputs(texts: Iterable[str]) -> str:
    """Inputs as one text."""
    return "\n\n".join(texts)


def returned_input(items: Iterable[PromptInput]) -> ReturnedInput:
    """Inputs as one, for the user."""
    joined = _joined(items)
    return ReturnedInput(joined.text, tuple(joined.images))


def _joined(items: Iterable[PromptInput]) -> PromptInput:
    items = list(items)
    pictures = tuple(picture for item in items for picture in item.pictures)
    return PromptInput(join_inputs(item.text for item in items), pictures)


def _restored(stored: list[str | JsonObject]) -> ReturnedInput:
    items: list[JsonObject] = [{"text": item} if isinstance(item, str) else item for item in stored]
    images = (str(path) for item in items for path in list_in(item, "images"))
    return ReturnedInput(join_inputs(text_in(item, "text") for item in items), tuple(images))


def submit_to_agent(agent: AIAgent, text: str, mode: BusyMode, uid: str) -> None:
    """Apply *mode* to a message that the inbox keeps; *uid* identifies it when it is read."""
    if mode == "interrupt":
        agent.interrupt("interrupted by another message")
    elif mode == "steer":
        agent.steer(text, uid)
