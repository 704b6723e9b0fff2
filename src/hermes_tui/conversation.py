"""The conversation as the screen sees it: asked through a link, wherever its hub runs."""

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

    Hear = Callable[[str, dict[str, Any]], object]
    Connect = Callable[[Callable[[str, str, dict[str, Any]], object]], RpcClient]

MAX_RETURNS: Final = 3
RETURN_SECONDS: Final = 60.0
LEAVE_SECONDS: Final = 1.0
MOVING: Final = frozenset({"command.dispatch", "session.branch"})


class Opening(NamedTuple):
    """Which conversation is wanted."""

    cwd: str
    session: str = ""  # an id, the beginning of one, or a title
    is_latest: bool = False
    model: str = ""
    source: str = "tui"


class Calls:
    """Requests under way; what was just sent is not cut off by leaving."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """While a request is under way."""
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def wait_for_calls(self) -> None:
        """Give them a moment to be answered."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count, timeout=LEAVE_SECONDS)


class ConversationClient:
    """One open conversation; every method may wait for an answer."""

    def __init__(self, connect: Connect, opening: Opening) -> None:
        self._connect = connect
        self._opening = opening
        self._link: RpcClient | None = None
        self._hear: Hear | None = None
        self._early: list[tuple[str, dict[str, Any]]] = []
        self._lock = threading.Lock()
        self._returns: list[float] = []
        self.live_id = ""
        self.info: dict[str, Any] = {}
        self.messages: list[dict[str, Any]] = []
        self.inflight: dict[str, Any] | None = None
        self.unread = ""
        self._was_left = False
        self._let_go = Calls()
        self.commands: list[dict[str, Any]] = []

    # Coming and going

    def open(self) -> None:
        """Begin it, or take it up again."""
        try:
            self._link = self._connect(self._take)
            self._open_in(self._link)
        except (RpcError, UsageError) as error:
            if self._link is not None:
                self._link.close()
            raise UsageError(str(error)) from error

    def _open_in(self, link: RpcClient) -> None:
        wish = self._opening
        facts = {"cwd": wish.cwd, "model": wish.model, "source": wish.source}
        session = wish.session or (self._latest() if wish.is_latest else "")
        if session:
            self._opened(link.call("session.resume", session_id=session, **facts))
        else:
            self._opened(link.call("session.create", **facts))
        self.commands = link.call("commands.catalog")["commands"]

    def _latest(self) -> str:
        found = self.call("session.most_recent", cwd=self._opening.cwd)["session_id"]
        if not found:
            raise UsageError(f"No conversation in {self._opening.cwd} to continue.")
        return str(found)

    def _opened(self, found: dict[str, Any]) -> None:
        self.live_id = found["session_id"]
        self.info = found["info"]
        self.messages = found["messages"]
        self.inflight = found["inflight"]
        self.unread = found["unread"] or self.unread

    def take_unread(self) -> str:
        """Words that were typed and that nobody has read; they are taken back now."""
        found, self.unread = self.unread, ""
        return found

    def come_back(self) -> bool:
        """The connection was lost: open it anew, unless that has been tried too often."""
        if self._was_left:
            self._was_left = False
            raise UsageError("the daemon was stopped; send a message to start it again")
        now = time.monotonic()
        self._returns = [one for one in self._returns if now - one < RETURN_SECONDS]
        if len(self._returns) >= MAX_RETURNS:
            return False
        self._returns.append(now)
        stored = self.session_id if self.exists else ""
        self._opening = self._opening._replace(session=stored, is_latest=False)
        self.open()
        return True

    def leave(self, *, is_over: bool) -> None:
        """Let go; what *is_over* is ended, unless a turn is at work in it."""
        if self._link is None:
            return
        self._let_go.wait_for_calls()
        if is_over and not self._link.is_here:
            # Where the other end is gone, it looks after its conversations itself.
            with contextlib.suppress(RpcError):
                self.call("session.close", unless_running=True)
        self._link.close()

    # Hearing

    def listen(self, hear: Hear) -> None:
        """Tell *hear* what happens, from what has happened already on."""
        with self._lock:
            self._hear = hear
            early, self._early = self._early, []
        for kind, payload in early:
            hear(kind, payload)

    def _take(self, kind: str, session_id: str, payload: dict[str, Any]) -> None:
        if session_id and self.live_id and session_id != self.live_id:
            return
        if kind == "session.info":
            self.info = payload
        elif kind == "gateway.leaving":
            self._was_left = True
        elif kind == "message.start":
            count = max(self.info.get("message_count", 0), 1)
            self.info = {**self.info, "running": True, "message_count": count}
        with self._lock:
            hear = self._hear
            if hear is None:
                self._early.append((kind, payload))
        if hear is not None:
            hear(kind, payload)

    # Asking

    def call(self, method: str, **params: Any) -> Any:
        """Ask something about this conversation, or at large."""
        if self._link is None:
            raise UsageError("the conversation is not open")
        if self.live_id:
            params.setdefault("session_id", self.live_id)
        with self._let_go.calling():
            found = self._link.call(method, **params)
        if method in MOVING:  # to another conversation, perhaps
            self.live_id = found["session_id"]
        return found

    def reload(self) -> None:
        """See anew what was said."""
        self._opened(self.call("session.activate"))

    @property
    def session_id(self) -> str:
        """The id it is stored under."""
        return str(self.info["stored_session_id"])

    @property
    def goes_on(self) -> bool:
        """Whether a turn goes on in it when nobody looks any more."""
        return self._link is not None and not self._link.is_here and self.is_running

    @property
    def exists(self) -> bool:
        """Whether anything was said yet."""
        return bool(self.info["message_count"])

    @property
    def is_running(self) -> bool:
        """Whether a turn is at work in it, as far as is known here."""
        return bool(self.info["running"])
