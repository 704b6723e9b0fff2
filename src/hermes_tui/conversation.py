"""The client side of a conversation, over a connection to the daemon or an in-process hub."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.errors import UsageError
from tui_gateway.frames import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_gateway.client import RpcClient

    EventCallback = Callable[[str, dict[str, Any]], object]
    Connect = Callable[[Callable[[str, str, dict[str, Any]], object]], RpcClient]

MAX_RECONNECTS: Final = 3
RECONNECT_WINDOW_SECONDS: Final = 60.0
CLOSE_WAIT_SECONDS: Final = 1.0
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
        self._early_events: list[tuple[str, dict[str, Any]]] = []
        self._lock = threading.Lock()
        self._reconnects: list[float] = []
        self.live_id = ""
        self.info: dict[str, Any] = {}
        self.messages: list[dict[str, Any]] = []
        self.inflight: dict[str, Any] | None = None
        self.unread = ""
        self._is_daemon_stopped = False
        self._pending_calls = PendingCalls()
        self.commands: list[dict[str, Any]] = []

    # Opening and closing

    def open(self) -> None:
        """Create or resume the conversation."""
        try:
            self._client = self._connect(self._receive)
            self._open_in(self._client)
        except (RpcError, UsageError) as error:
            if self._client is not None:
                self._client.close()
            raise UsageError(str(error)) from error

    def _open_in(self, client: RpcClient) -> None:
        request = self._request
        params = {
            "cwd": request.cwd,
            "model": request.model,
            "source": request.source,
            "mode": request.mode,
            "allow": request.allow,
        }
        session = request.session or (self._latest() if request.is_latest else "")
        if session:
            self._set_state(client.call("session.resume", session_id=session, **params))
        else:
            self._set_state(client.call("session.create", **params))
        self.commands = client.call("commands.catalog")["commands"]

    def _latest(self) -> str:
        session_id = self.call("session.most_recent", cwd=self._request.cwd)["session_id"]
        if not session_id:
            raise UsageError(f"No conversation in {self._request.cwd} to continue.")
        return str(session_id)

    def _set_state(self, state: dict[str, Any]) -> None:
        self.live_id = state["session_id"]
        self.info = state["info"]
        self.messages = state["messages"]
        self.inflight = state["inflight"]
        self.unread = state["unread"] or self.unread

    def pop_unread(self) -> str:
        """Return pending input that the agent has not read, once."""
        unread, self.unread = self.unread, ""
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
        for kind, payload in early_events:
            on_event(kind, payload)

    def _receive(self, kind: str, session_id: str, payload: dict[str, Any]) -> None:
        if session_id and self.live_id and session_id != self.live_id:
            return
        if kind == "session.info":
            self.info = payload
        elif kind == "gateway.leaving":
            self._is_daemon_stopped = True
        elif kind == "message.start":
            count = max(self.info.get("message_count", 0), 1)
            self.info = {**self.info, "running": True, "message_count": count}
        with self._lock:
            on_event = self._on_event
            if on_event is None:
                self._early_events.append((kind, payload))
        if on_event is not None:
            on_event(kind, payload)

    # Calls

    def call(self, method: str, **params: Any) -> Any:
        """Call a method, by default for this conversation."""
        if self._client is None:
            raise UsageError("The conversation is not open.")
        if self.live_id:
            params.setdefault("session_id", self.live_id)
        with self._pending_calls.count():
            result = self._client.call(method, **params)
        if method in SWITCHING_METHODS:  # may switch to another conversation
            self.live_id = result["session_id"]
        return result

    def reload(self) -> None:
        """Reload the messages."""
        self._set_state(self.call("session.activate"))

    @property
    def session_id(self) -> str:
        """The stored session ID."""
        return str(self.info["stored_session_id"])

    @property
    def continues_in_background(self) -> bool:
        """Whether a turn continues after disconnecting."""
        return self._client is not None and not self._client.is_here and self.is_running

    @property
    def exists(self) -> bool:
        """Whether the conversation has any messages."""
        return bool(self.info["message_count"])

    @property
    def is_running(self) -> bool:
        """Whether a turn is running, as far as known here."""
        return bool(self.info["running"])
