"""A live session: an open conversation and its running turn.

Attached clients receive its events. A turn continues without clients; the next client that
attaches receives its current state.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from hermes_agent import events
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.tools import files
from hermes_agent.tools.base import ToolError
from hermes_agent.tools.text_encoding import displayable_text
from hermes_conversation import agent_factory
from hermes_conversation.conversation import Conversation
from hermes_conversation.pending_input import (
    PendingInput,
    PromptInput,
    ReturnedInput,
    returned_input,
)
from hermes_conversation.tool_results import status_of
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.isolate import Failure, attempt
from hermes_core.json_values import text_in
from tui_gateway.frames import BUSY, RpcError
from tui_gateway.protocol import (
    InputWaiting,
    MessageAttached,
    MessageComplete,
    MessageDelta,
    MessageStart,
    OpenedState,
    ReasoningText,
    SessionInfo,
    StatusUpdate,
    SteerRead,
    StoredMessage,
    ToolComplete,
    ToolStart,
    ToolText,
)
from tui_gateway.questions import Questions
from tui_gateway.turn_view import TurnView, display_message, usage, usage_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hermes_conversation.agent_factory import ConversationOptions
    from hermes_conversation.slash_commands import CommandOutcome
    from hermes_core.json_values import JsonObject
    from hermes_state.store import SessionDB
    from tui_gateway.protocol import ClientEvent, DisplayedMessage


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


WRITE_TOOL: Final = "write_file"
MAX_TEXT_BYTES: Final = 500_000  # a longer text is not sent


def replaced_text(
    call: ToolStart, cwd: Path, is_hidden: Callable[[Path, Path], bool]
) -> str | None:
    """The current text of the file that a call replaces; None for a new one and other calls."""
    if call.name != WRITE_TOOL:
        return None
    try:
        arguments: JsonObject = json.loads(call.args_text)
        path = (cwd / Path(text_in(arguments, "path")).expanduser()).resolve()
        if is_hidden(path, cwd) or path.stat().st_size > MAX_TEXT_BYTES:
            return None
        return displayable_text(files.load(path).text)
    except (OSError, ValueError, AttributeError, RuntimeError, ToolError):
        return None  # there is no such file, or the tool reports what is wrong with it


STATUS_BY_END: Final = {
    events.TurnEnd.COMPLETE: "complete",
    events.TurnEnd.TOO_LONG: "complete",
    events.TurnEnd.INTERRUPTED: "interrupted",
    events.TurnEnd.FAILED: "error",
}


def client_event(event: events.Event) -> ClientEvent | None:
    """The event for clients, or None."""
    if isinstance(event, events.TextDelta):
        return MessageDelta(event.text)
    if isinstance(event, events.ReasoningDelta):
        return ReasoningText(event.text)
    if isinstance(event, events.ToolStarted | events.ToolOutput | events.ToolFinished):
        return _tool_event(event)
    if isinstance(event, events.Attached):
        return MessageAttached(list(event.items))
    return _status_event(event)


def _status_event(event: events.Event) -> ClientEvent | None:
    if isinstance(event, events.Retrying):
        text = with_command_name(event.description)
        return StatusUpdate("retrying", text, round(event.seconds, 1), event.drops_text)
    if isinstance(event, events.Notice):
        topic = "continued" if event.ends_answer else "status"
        return StatusUpdate(topic, with_command_name(event.text))
    return None


def _tool_event(
    event: events.ToolStarted | events.ToolOutput | events.ToolFinished,
) -> ClientEvent:
    if isinstance(event, events.ToolOutput):
        return ToolText(event.call_id, event.text)
    call = event.call
    if isinstance(event, events.ToolStarted):
        context = agent_factory.summarize_call(call.name, call.arguments)
        return ToolStart(call.id, call.name, context, call.arguments)
    status = status_of(call.name, event.result)
    return ToolComplete(call.id, call.name, event.result, round(event.seconds, 3), status)


def completion(finished: events.TurnFinished) -> MessageComplete:
    """The end of a turn."""
    return MessageComplete(
        text=finished.text,
        status=STATUS_BY_END[finished.end],
        error=with_command_name(finished.error) or None,
        usage=finished.usage._asdict(),
        problem=finished.problem or "",
        notice=with_command_name(finished.notice),
    )


def failure(error: BaseException) -> MessageComplete:
    """The end of a turn that raised an exception."""
    return MessageComplete("", "error", with_command_name(str(error)), {})


TURN_RUNNING = "a turn is running; wait for it, interrupt it, or steer it"
OPTIONS_REFUSED: Final = (
    "A turn is running in this conversation, so its model, effort, limits and MCP servers cannot "
    "change now. Wait for its end, or open the conversation without these options."
)
FOLDER_STAYS: Final = (
    "This conversation is in use, so its working folder stays {folder}. To work in another folder, "
    "start a new conversation there."
)


class SessionListener(Protocol):
    """A client attached to a conversation."""

    def event(self, session_id: str, event: ClientEvent) -> None:
        """Send an event to the client."""


class LiveSession:
    """An open conversation; its live ID differs from the stored session ID."""

    def __init__(self, db: SessionDB, options: ConversationOptions) -> None:
        self.id = os.urandom(4).hex()
        self.questions = Questions(self.emit)
        self.conversation = Conversation(db, self.questions, options)
        self.started_at = time.time()
        self.closes_when_alone = False
        self.alone_since: float | None = time.monotonic()
        self._listeners: list[SessionListener] = []
        self._is_running = False
        self._is_changing = False
        self._idle = threading.Event()
        self._idle.set()
        self._lock = threading.Lock()
        self._pending = PendingInput(self.conversation)
        self._senders: InputSenders[SessionListener] = InputSenders()
        self._shown_waiting: list[str] = []  # what clients show of the pending input
        self._waiting_lock = threading.Lock()  # they get the latest one last
        self._returned = self._pending.restore()  # input to return to the next client
        self._view = TurnView()
        self._notice = agent_factory.environment_notice(ConfigFile.of_home().settings(), options)

    # Clients

    def attach(self, listener: SessionListener) -> OpenedState:
        """Send events to *listener* from now on; returns the current state."""
        with self._lock:
            if listener not in self._listeners:
                self._listeners.append(listener)
            self.alone_since = None
            return self._opened()

    def _opened(self) -> OpenedState:
        messages = self.messages()
        returned, self._returned = self._returned, ReturnedInput()
        inflight = self._view.inflight(messages) if self._is_running else None
        if inflight is not None:
            questions, waiting = self.questions.pending(), self._pending.waiting()
            inflight = dataclasses.replace(inflight, questions=questions, waiting=waiting)
        return OpenedState(
            session_id=self.id,
            stored_session_id=self.conversation.session_id,
            message_count=len(messages),
            messages=messages,
            info=self.info(),
            running=self._is_running,
            started_at=self.started_at,
            inflight=inflight,
            unread=returned.text,
            unread_images=list(returned.images),
            notice=self._notice,
        )

    def detach(self, listener: SessionListener) -> None:
        """Stop sending events to *listener*."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
                if not self._listeners:
                    self.alone_since = time.monotonic()

    @property
    def is_alone(self) -> bool:
        """Whether no client is attached."""
        return self.alone_since is not None

    def has_only(self, listener: SessionListener) -> bool:
        """Whether this is the only client."""
        with self._lock:
            return self._listeners == [listener]

    def emit(self, event: ClientEvent, but: SessionListener | None = None) -> None:
        """Send an event to all clients except *but*."""
        with self._lock:
            listeners = list(self._listeners)
        self._send(listeners, event, but)

    def _send(
        self,
        listeners: list[SessionListener],
        event: ClientEvent,
        but: SessionListener | None = None,
    ) -> None:
        for listener in listeners:
            if listener is not but:
                listener.event(self.id, event)

    # State

    @property
    def is_running(self) -> bool:
        """Whether a turn is under way."""
        return self._is_running

    def status(self) -> str:
        """The status: idle, working, or waiting for an answer."""
        if not self._is_running:
            return "idle"
        return "waiting" if self.questions.pending() else "working"

    def info(self) -> SessionInfo:
        """The metadata that front ends show."""
        row, agent = self.conversation.row(), self.conversation.agent
        return SessionInfo(
            model=agent.model,
            window=agent.window,
            context_tokens=agent.context_tokens,
            cwd=str(agent.cwd),
            mode=self.conversation.mode,
            sandbox=find_sandbox().name,
            title=None if row is None else row.title,
            running=self.is_running,
            stored_session_id=self.conversation.session_id,
            message_count=0 if row is None else row.message_count,
            usage=usage(row),
        )

    def messages(self) -> list[DisplayedMessage]:
        """The messages of the conversation for display."""
        if not self.conversation.exists:
            return []
        db, session_id = self.conversation.db, self.conversation.session_id
        usage_of = db.usage.answers(session_id)
        rows = db.messages.shown(session_id)
        return [display_message(row, usage_of.get(row.id)) for row in rows]

    # Exclusive changes

    @contextlib.contextmanager
    def changing(self) -> Iterator[Conversation]:
        """Change the conversation while no turn runs; input typed meanwhile is submitted after."""
        with self._lock:
            if self._is_running or self._is_changing:
                raise RpcError(BUSY, TURN_RUNNING)
            self._is_changing = True
        self.questions.begin()
        try:
            yield self.conversation
        finally:
            with self._lock:
                self._is_changing = False
                following = self._pending.after_turn(is_complete=True).next_input
            if following.text:
                self._start(following)
                self._show_waiting()

    def use(self, asked: ConversationOptions) -> str:
        """Apply the options of a client that opens this conversation; a notice for the client.

        The working folder of a conversation that others use, or whose turn runs, stays.
        """
        conversation, notice = self.conversation, ""
        if asked.cwd is not None and not (self.is_alone and not self._is_running):
            folder = conversation.agent.cwd
            if agent_factory.working_folder(asked.cwd) != folder:
                notice = FOLDER_STAYS.format(folder=folder)
            asked = asked._replace(cwd=None)
        if not conversation.needs_other_agent(asked):
            conversation.use(asked)
        elif self._is_running:
            raise RpcError(BUSY, OPTIONS_REFUSED)
        else:
            with self.changing():
                conversation.use(asked)
        self.emit(self.info())
        return notice

    # The turn

    def submit(self, text: str) -> None:
        """Start a turn with a message; raises an error if one is running."""
        with self._lock:
            if self._is_running:
                raise RpcError(BUSY, TURN_RUNNING)
        self.send(text)

    def send(
        self, text: str, sender: SessionListener | None = None, images: Sequence[str] = ()
    ) -> bool:
        """Send a message now, or queue it; whether it was sent now.

        It owns the attached pictures and those in the files *images*.
        """
        return self._start(
            PromptInput(text, tuple(self.conversation.take_pictures(images))), sender
        )

    def _start(self, message: PromptInput, sender: SessionListener | None = None) -> bool:
        with self._lock:
            is_queued = self._is_running or self._is_changing
            if is_queued:
                self._pending.queue(*message)
                self._senders.add(message.text, sender)
            else:
                self._is_running = True
                self._idle.clear()
        if is_queued:
            self._show_waiting()
            return False
        threading.Thread(
            target=lambda: self._run(message), name=f"hermes-turn-{self.id}", daemon=True
        ).start()
        return True

    def steer(
        self, text: str, sender: SessionListener | None = None, images: Sequence[str] = ()
    ) -> bool:
        """Steer the running turn, or send the message now; whether it was sent now.

        A message with pictures waits for the end of the turn, which reads text only.
        """
        with self._lock:
            is_steering = self._is_running and not (images or self.conversation.pictures)
            if is_steering:
                self._pending.steer(text)
                self._senders.add(text, sender)
        if is_steering:
            self._show_waiting()
            return False
        return self.send(text, sender, images)

    def _show_waiting(self) -> None:
        """Send the waiting input to all clients if it has changed."""
        with self._waiting_lock:
            waiting = self._pending.waiting()
            if waiting != self._shown_waiting:
                self._shown_waiting = waiting
                self.emit(InputWaiting(waiting))

    def _run(self, message: PromptInput) -> None:
        try:
            while message.text:
                message = self._turn(message)
        finally:
            self._is_running = False
            self._idle.set()

    def _turn(self, message: PromptInput) -> PromptInput:
        """Run one turn; returns the next queued input."""
        self.questions.begin()
        with self._lock:
            self._view.begin(message.text)
            listeners = list(self._listeners)
        self._send(listeners, MessageStart(message.text, message.images))
        self._show_waiting()
        end = attempt("run a turn", lambda: self._run_agent(message))
        if isinstance(end, Failure):
            end = failure(end.error)
        with self._lock:
            after = self._pending.after_turn(is_complete=end.status == "complete")
            self._is_running = bool(after.next_input.text)
            self._view.end()
            listeners = list(self._listeners)
            returned = self._senders.split(after.returned, listeners)
            self._senders.keep(self._pending.waiting())
            if after.returned and not listeners:  # for the next client that attaches
                self._returned = returned_input(after.returned)
            pictures = [picture for item in after.returned for picture in item.pictures]
            kept = [picture for picture in pictures if not picture.is_in_file]
            self.conversation.pictures.extend(kept)  # clients cannot attach them again
        for listener in listeners:
            unread = returned_input(returned.get(id(listener), ()))
            own = dataclasses.replace(end, unread=unread.text, unread_images=list(unread.images))
            listener.event(self.id, own)
        if not after.next_input.text:
            self._show_waiting()
        attempt("send session info", lambda: self.emit(self.info()))
        return after.next_input

    def _run_agent(self, message: PromptInput) -> MessageComplete:
        end = failure(RuntimeError("the turn ended without a result"))
        has_begun = False
        self.conversation.on_review = self._announce_review
        self.conversation.titles.on_title = lambda: self.emit(self.info())
        for event in self.conversation.send(message.text, pictures=message.pictures):
            if isinstance(event, events.TurnFinished):
                end = completion(event)
            elif isinstance(event, events.MessageStored):
                self._on_stored(event, has_begun=has_begun)
                has_begun = True
            else:
                self._on_event(event)
        return end

    def _announce_review(self, text: str) -> None:
        """Announce the result of a memory review."""
        self.emit(StatusUpdate("review", text))

    def _on_stored(self, event: events.MessageStored, *, has_begun: bool) -> None:
        with self._lock:
            self._view.stored(event.role)
        is_steering = event.role == "user" and has_begun
        if is_steering:
            self._pending.mark_read()
            self.emit(SteerRead(event.text))
            self._show_waiting()
        self.emit(StoredMessage(event.row_id, event.role, usage_view(event.usage)))

    def _on_event(self, event: events.Event) -> None:
        mapped = client_event(event)
        if mapped is None:
            return
        if isinstance(mapped, ToolStart):  # the tool starts after this event was handled
            mapped = dataclasses.replace(mapped, before=self._text_before(mapped))
        with self._lock:  # a client that attaches later gets it from the view
            self._view.add(mapped)
            listeners = list(self._listeners)
        self._send(listeners, mapped)

    def _text_before(self, call: ToolStart) -> str | None:
        is_hidden = self.conversation.bundle.approvals.is_hidden
        return replaced_text(call, self.conversation.agent.cwd, is_hidden)

    def interrupt(self, instead: str = "") -> bool:
        """Interrupt the running turn, optionally to send *instead*; whether one ran."""
        with self._lock:
            was_running = self._is_running
            if was_running:
                pictures = self.conversation.take_pictures() if instead else ()
                self._pending.hold(instead, pictures)
        self.conversation.agent.interrupt()
        self.questions.cancel_all()
        return was_running

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the turn; whether it has ended."""
        return self._idle.wait(timeout=seconds)

    def follow(self, outcome: CommandOutcome, sender: SessionListener | None = None) -> bool:
        """Apply the effects of a command on the running turn; whether it was possible."""
        if outcome.answer:
            return self.questions.answer("", outcome.answer)
        if outcome.steer or outcome.queue:
            text = outcome.steer or outcome.queue
            _ = self.steer(text, sender) if outcome.steer else self.send(text, sender)
            return True
        return self.interrupt() if outcome.stop else True
