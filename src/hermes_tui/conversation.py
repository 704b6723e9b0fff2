"""The client side of a conversation, over a connection to the daemon or an in-process hub."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_core.json_values import objects_in, text_in
from tui_gateway.frames import RpcError
from tui_gateway.protocol import (
    CommandSummary,
    GatewayLeaving,
    MessageStart,
    OpenedState,
    SessionInfo,
    UsageView,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_core.json_values import JsonObject, JsonValue
    from tui_gateway.client import RpcClient
    from tui_gateway.protocol import ClientEvent, DisplayedMessage, InflightTurn

    EventCallback = Callable[[ClientEvent], object]
    Connect = Callable[[Callable[[str, ClientEvent], object]], RpcClient]

MAX_RECONNECTS: Final = 3
RECONNECT_WINDOW_SECONDS: Final = 60.0
CLOSE_WAIT_SECONDS: Final = 1.0
NO_INFO: Final = SessionInfo("", 0, 0, "", "", "", None, False, "", 0, UsageView())
SWITCHING_METHODS: Final = frozenset({"command.dispatch", "session.branch"})


class OpenRequest(NamedTuple):
    """Which conversation to open, and how."""

    cwd: str
    session: str = ""  # an ID, the beginning of an ID, or a title
    is_latest: bool = False
    model: str = ""
    source: str = "tui"
    mode: str = ""
    allow: str = ""  # permission rules, one on each line
    max_turns: int = 0
    max_output_tokens: int = 0
    effort: str = ""


class PendingCalls:
    """Counts pending calls, so that leaving waits for those just sent."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def count(self) -> Iterator[None]:
        """Count a call while it is pending."""
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def wait_for_calls(self) -> None:
        """Wait briefly for pending calls."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count, timeout=CLOSE_WAIT_SECONDS)


class ConversationClient:
    """An open conversation; every method may block."""

    def __init__(self, connect: Connect, request: OpenRequest) -> None:
        self._connect = connect
        self._request = request
        self._client: RpcClient | None = None
        self._on_event: EventCallback | None = None
        self._early_events: list[ClientEvent] = []
        self._lock = threading.Lock()
        self._reconnects: list[float] = []
        self.live_id = ""
        self.info = NO_INFO
        self.messages: list[DisplayedMessage] = []
        self.inflight: InflightTurn | None = None
        self.unread = ""
        self.unread_images: list[str] = []
        self.notice = ""  # about a new conversation
        self._is_daemon_stopped = False
        self._pending_calls = PendingCalls()
        self.commands: list[CommandSummary] = []
        self.notices: list[str] = []  # about the connection, to be shown once

    # Opening and closing

    def open(self) -> None:
        """Create or resume the conversation."""
        try:
            self._client = self._connect(self._receive)
            self._open_in(self._client)
            self._use_shared_keys(self._client)
        except (RpcError, UsageError) as error:
            if self._client is not None:
                self._client.close()
            raise UsageError(str(error)) from error

    def _open_in(self, client: RpcClient) -> None:
        request = self._request
        params: dict[str, JsonValue] = {
            "cwd": request.cwd,
            "model": request.model,
            "source": request.source,
            "mode": request.mode,
            "allow": request.allow,
            "max_turns": request.max_turns,
            "max_output_tokens": request.max_output_tokens,
            "effort": request.effort,
        }
        session = request.session or (self._latest() if request.is_latest else "")
        if session:
            opened = client.call("session.resume", session_id=session, **params)
        else:
            opened = client.call("session.create", **params)
        self._set_state(OpenedState.read(opened))
        self._load_commands(client)

    def _use_shared_keys(self, client: RpcClient) -> None:
        """Report keys that the daemon did not have; a conversation that was open uses them, too."""
        if not client.shared_keys:
            return
        names = ", ".join(client.shared_keys)
        verb = "was" if len(client.shared_keys) == 1 else "were"
        self.notices.append(
            f"{names} {verb} set or changed after the daemon was started. The daemon uses the new "
            "value from now on; it is kept in memory and not saved."
        )
        if self.exists and not self.is_running:
            self.rebuild()

    def _load_commands(self, client: RpcClient) -> None:
        commands = objects_in(client.call("commands.catalog", cwd=self.info.cwd), "commands")
        self.commands = [parse(CommandSummary, command) for command in commands]

    def rebuild(self) -> None:
        """Use the settings, the trusted files and the keys as they are now."""
        self.info = parse(SessionInfo, self.call("session.reload"))
        if self._client is not None:
            self._load_commands(self._client)

    def pop_notices(self) -> list[str]:
        """Return the notices about the connection, once."""
        notices, self.notices = self.notices, []
        return notices

    def _latest(self) -> str:
        latest = self.call("session.most_recent", cwd=self._request.cwd)
        session_id = text_in(latest, "session_id")
        if not session_id:
            raise UsageError(f"No conversation in {self._request.cwd} to continue.")
        return session_id

    def _set_state(self, state: OpenedState) -> None:
        self.live_id = state.session_id
        self.info = state.info
        self.messages = state.messages
        self.inflight = state.inflight
        self.unread = state.unread or self.unread
        self.unread_images = state.unread_images or self.unread_images
        self.notice = state.notice

    def pop_unread(self) -> tuple[str, list[str]]:
        """Return pending input that the agent has not read, and its pictures, once."""
        unread = self.unread, self.unread_images
        self.unread, self.unread_images = "", []
        return unread

    def reconnect(self) -> bool:
        """Reopen after a lost connection; False after too many attempts in a short time."""
        if self._is_daemon_stopped:
            self._is_daemon_stopped = False
            raise UsageError("The daemon was stopped. Send a message to start it again.")
        now = time.monotonic()
        self._reconnects = [at for at in self._reconnects if now - at < RECONNECT_WINDOW_SECONDS]
        if len(self._reconnects) >= MAX_RECONNECTS:
            return False
        self._reconnects.append(now)
        stored = self.session_id if self.exists else ""
        self._request = self._request._replace(session=stored, is_latest=False)
        self.open()
        return True

    def leave(self, *, is_over: bool) -> None:
        """Disconnect; closes the conversation if *is_over*, unless a turn is running."""
        if self._client is None:
            return
        self._pending_calls.wait_for_calls()
        if is_over and not self._client.is_here:
            # Without a connection, the daemon closes the conversation itself.
            with contextlib.suppress(RpcError):
                self.call("session.close", unless_running=True)
        self._client.close()

    # Events

    def listen(self, on_event: EventCallback) -> None:
        """Pass all events to *on_event*, including those received before."""
        with self._lock:
            self._on_event = on_event
            early_events, self._early_events = self._early_events, []
        for event in early_events:
            on_event(event)

    def _receive(self, session_id: str, event: ClientEvent) -> None:
        if session_id and self.live_id and session_id != self.live_id:
            return
        if isinstance(event, SessionInfo):
            self.info = event
        elif isinstance(event, GatewayLeaving):
            self._is_daemon_stopped = True
        elif isinstance(event, MessageStart):
            count = max(self.info.message_count, 1)
            self.info = dataclasses.replace(self.info, running=True, message_count=count)
        with self._lock:
            on_event = self._on_event
            if on_event is None:
                self._early_events.append(event)
        if on_event is not None:
            on_event(event)

    # Calls

    def call(self, method: str, **params: JsonValue) -> JsonObject:
        """Call a method, by default for this conversation."""
        if self._client is None:
            raise UsageError("The conversation is not open.")
        if self.live_id:
            params.setdefault("session_id", self.live_id)
        with self._pending_calls.count():
            result: JsonObject = self._client.call(method, **params)
        if method in SWITCHING_METHODS:  # may switch to another conversation
            self.live_id = text_in(result, "session_id", self.live_id)
        return result

    def reload(self) -> None:
        """Reload the messages."""
        self._set_state(OpenedState.read(self.call("session.activate")))

    @property
    def session_id(self) -> str:
        """The stored session ID."""
        return self.info.stored_session_id

    @property
    def folder(self) -> Path:
        """The working folder."""
        return Path(self.info.cwd or self._request.cwd)

    @property
    def continues_in_background(self) -> bool:
        """Whether a turn continues after disconnecting."""
        return self._client is not None and not self._client.is_here and self.is_running

    @property
    def exists(self) -> bool:
        """Whether the conversation has any messages."""
        return bool(self.info.message_count)

    @property
    def is_running(self) -> bool:
        """Whether a turn is running, as far as known here."""
        return self.info.running
