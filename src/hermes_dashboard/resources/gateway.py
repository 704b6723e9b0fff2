"""The chat gateway: state, queues and approved users."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from fastapi import HTTPException, Response
from pydantic import BaseModel, BeforeValidator, Field

from gateway import status
from gateway.outbound import direct_send
from gateway.platforms.registry import PlatformRegistry
from gateway.process.config_loader import (
    Secrets,
    config_of_home,
    enabled_platforms,
    unavailable_platforms,
)
from hermes_core import log_file, paths
from hermes_core.errors import UsageError
from hermes_dashboard.caches import CachedValue
from hermes_dashboard.models.text import (
    MAX_ROW_ID,
    OptionalTimestamp,
    Text,
    View,
    problems,
    timestamp_of,
)
from hermes_dashboard.resources.logs import last_lines
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.outbound.direct_send import Channel
    from hermes_core.config.platform_spec import PlatformSpec
    from hermes_dashboard.context import DashboardContext
    from hermes_state.delivery.rows import FailedMessage
    from hermes_state.store import SessionDB

MAX_CHATS: Final = 200
MAX_ERRORS: Final = 50
MAX_UNSENT: Final = 50
MAX_CONTENT_CHARACTERS: Final = 4000
SHOWN_LOG_LEVELS: Final = frozenset({"warning", "error", "critical"})
KEEP_SECONDS: Final = 10.0
IS_CHANGING: Final = "The gateway is being started or stopped. Try again when that is done."
GatewayAction = Literal["start", "stop", "restart"]
JsonText = Annotated[Text, BeforeValidator(partial(json.dumps, ensure_ascii=False))]
RowNumber = Annotated[int, Field(ge=1, le=MAX_ROW_ID)]


class PlatformView(BaseModel):
    """A chat platform and its state."""

    name: Text
    state: Text
    detail: Text = ""
    account: Text | None = None
    since: OptionalTimestamp = None


class Queue(BaseModel):
    """Messages that are not settled."""

    waiting: int
    handling: int
    owed: int
    ambiguous: int
    failed: int
    oldest_waiting_at: float | None


class Chat(BaseModel):
    """A place and its conversation."""

    key: Text
    platform: Text
    name: Text
    kind: Text
    session_id: Text
    title: Text | None
    last_active: OptionalTimestamp


class LoggedError(BaseModel):
    """An error."""

    at: float
    level: Text
    logger: Text
    message: Text


class Unsent(View):
    """A reply that failed permanently, or that may have arrived."""

    id: int = Field(validation_alias="outbox_id")
    platform: Text
    target: JsonText
    state: Text
    error: Text | None
    attempts: int
    created_at: float


class Quarantined(BaseModel):
    """A message or update that could not be handled; an update cannot be retried."""

    id: int
    platform: Text
    content: Text
    error: Text | None
    received_at: float
    can_retry: bool


class GatewayChange(BaseModel):
    """The result of starting, stopping or restarting the gateway."""

    message: Text


class Asking(View):
    """A user with a pending code."""

    platform: Text
    user_id: Text
    user_name: Text
    asked_at: float = Field(validation_alias="created_at")


class Allowed(View):
    """An approved user."""

    platform: Text
    user_id: Text
    user_name: Text
    since: float = Field(validation_alias="allowed_at")


class GatewayState(BaseModel):
    """The gateway: state, pending messages, users."""

    is_running: bool
    pid: int | None
    started_at: OptionalTimestamp
    version: Text | None
    platforms: list[PlatformView]
    problems: list[Text]
    queue: Queue
    chats: list[Chat]
    errors: list[LoggedError]
    unsent: list[Unsent]
    quarantined: list[Quarantined]
    asking: list[Asking]
    allowed: list[Allowed]


class NodeView(BaseModel):
    """A process that uses the history, on this or another machine."""

    name: Text
    pid: int
    is_alive: bool
    platforms: list[Text]
    turns: int
    claims: int
    seconds_since_seen: float


class GatewayStatus(NamedTuple):
    """The state of the gateway's process and of each platform."""

    is_running: bool = False
    pid: int | None = None
    started_at: float | None = None
    version: str | None = None
    platforms: Sequence[PlatformView] = ()
    problems: Sequence[str] = ()


class GatewayAccess:
    """The gateway, which runs in another process: its files, its chats, and its commands."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._configured = CachedValue(_configured_platforms, KEEP_SECONDS)
        self._lock = threading.Lock()

    def state(self) -> GatewayStatus:
        """Whether the gateway is running, since when, and the state of each platform."""
        pid = status.running_pid()
        if pid is None:
            return GatewayStatus(platforms=self._configured.get())
        found = status.read_runtime_status() or {}
        platforms = [
            PlatformView(
                name=name,
                state=item.get("state") or "",
                detail=item.get("error_message") or "",
                account=item.get("account"),
                since=timestamp_of(item.get("updated_at")),
            )
            for name, item in found.get("platforms", {}).items()
        ]
        problems = status.live_problems(found, time.time())
        return GatewayStatus(
            True, pid, found.get("start_time"), found.get("version"), platforms, problems
        )

    def errors(self, limit: int) -> list[LoggedError]:
        """Recent errors, newest first."""
        return list(deque(_logged_errors(), maxlen=max(limit, 0)))[::-1]

    def chats(self, limit: int) -> list[Channel]:
        """The chats with a conversation, latest first."""
        known = direct_send.list_channels(self._db, config_of_home())
        return [channel for channel in known if channel.session_id][:limit]

    def change(self, action: GatewayAction) -> str:
        """Run one `hermes gateway` command to its end; its output, or UsageError with the reason.

        A command in a process of its own: the gateway must not be a child of the dashboard.
        """
        if not self._lock.acquire(blocking=False):
            raise UsageError(IS_CHANGING)
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "hermes_cli", "gateway", action],
                env=paths.environment() | {"NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            self._lock.release()
        if done.returncode:
            raise UsageError((done.stderr or done.stdout).strip() or f"Exit code {done.returncode}")
        return " ".join((done.stdout + done.stderr).split())


def _configured_platforms() -> list[PlatformView]:
    """The platforms that the gateway would connect, and what is missing for them."""
    registry = PlatformRegistry.of_home()
    entries = enabled_platforms(config_of_home(), registry, Secrets())
    found = [
        PlatformView(name=entry.name, state="stopped", detail=missing_text(entry))
        for entry in entries
    ]
    return found + [
        PlatformView(name=name, state="unavailable", detail=reason)
        for name, reason in unavailable_platforms(registry).items()
    ]


def missing_text(entry: PlatformSpec) -> str:
    """What a platform lacks; empty if nothing."""
    if not entry.is_usable:
        return f"The library is not installed. Run `hermes gateway add {entry.name}`."
    secrets = Secrets()
    missing = [name for name in entry.secrets if not secrets(name)]
    return f"Not set: {', '.join(missing)}" if missing else ""


def _logged_errors() -> Iterator[LoggedError]:
    """The warnings and errors at the end of the gateway log."""
    path = paths.logs_path() / log_file.GATEWAY_LOG_NAME
    for line in last_lines(path) if path.exists() else ():
        try:
            entry = log_file.parse_line(line)
            at = datetime.fromisoformat(entry.at).timestamp()
        except ValueError:
            continue  # foreign or truncated line
        if entry.level in SHOWN_LOG_LEVELS:
            yield LoggedError(at=at, level=entry.level, logger=entry.logger, message=entry.message)


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of the gateway."""
    routes = ResourceRouter("/api/gateway", tag="gateway")
    db = context.db

    @routes.get("", responses=problems(503))
    def show_gateway() -> GatewayState:
        """Platforms, chats, the queue, errors, approved users and pending requests."""
        chats = [
            Chat(
                **chat._asdict(),
                key=chat.session_key or "",
                title=db.titles.get_session_title(chat.session_id or ""),
            )
            for chat in context.gateway.chats(MAX_CHATS)
        ]
        return GatewayState.model_validate(
            {
                **context.gateway.state()._asdict(),
                "queue": queue_of(db),
                "chats": chats,
                "errors": context.gateway.errors(MAX_ERRORS),
                "unsent": db.chats.unsent_replies(MAX_UNSENT),
                "quarantined": [_quarantined(each) for each in db.inbox.failed(MAX_UNSENT)],
                "asking": db.pairings.pending(),
                "allowed": db.pairings.allowed(),
            }
        )

    @routes.get("/nodes", responses=problems(503))
    def list_nodes() -> list[NodeView]:
        """The processes that use the history, on all machines: what each holds, when seen."""
        return [NodeView(**node._asdict()) for node in db.nodes.all()]

    _add_control(routes, context)
    _add_retries(routes, db)
    return routes


def _add_control(routes: ResourceRouter, context: DashboardContext) -> None:
    def change(action: GatewayAction) -> GatewayChange:
        return GatewayChange(message=context.gateway.change(action))

    @routes.post("/start", responses=problems(400))
    def start() -> GatewayChange:
        """Start the gateway in the background."""
        return change("start")

    @routes.post("/stop", responses=problems(400))
    def stop() -> GatewayChange:
        """Stop the gateway after its current turns; pending messages are kept."""
        return change("stop")

    @routes.post("/restart", responses=problems(400))
    def restart() -> GatewayChange:
        """Restart the gateway after its current turns."""
        return change("restart")


def _add_retries(routes: ResourceRouter, db: SessionDB) -> None:
    def report(is_done: bool, text: str) -> None:
        if not is_done:
            raise HTTPException(404, text)

    @routes.post(
        "/messages/{number}/retry",
        status_code=204,
        response_class=Response,
        responses=problems(404, 503),
    )
    def retry_message(number: RowNumber) -> None:
        """Let a message that could not be handled be handled again."""
        report(db.inbox.retry_failed(number), f"No message {number} that can be retried.")

    @routes.remove("/messages/{number}", 404, 503)
    def skip_message(number: RowNumber) -> None:
        """Delete a message or update that could not be handled."""
        report(db.inbox.delete_failed(number), f"No message {number} in the quarantine.")

    @routes.post(
        "/replies/{number}/retry",
        status_code=204,
        response_class=Response,
        responses=problems(404, 503),
    )
    def retry_reply(number: RowNumber) -> None:
        """Send a reply again that failed or may have arrived."""
        report(db.outbox.retry_unsent(number), f"No undelivered reply {number}.")

    @routes.remove("/replies/{number}", 404, 503)
    def skip_reply(number: RowNumber) -> None:
        """Give up a reply that failed or may have arrived."""
        report(db.outbox.delete_unsent(number), f"No undelivered reply {number}.")


def queue_of(db: SessionDB) -> Queue:
    """The number of messages by state."""
    counts = db.chats.mail_counts()

    def number(box: str, *states: str) -> int:
        return sum(count for (_, state), count in counts[box].items() if state in states)

    return Queue(
        waiting=number("inbox", "waiting"),
        handling=number("inbox", "claimed"),
        owed=number("outbox", "waiting", "sending"),
        ambiguous=number("outbox", "ambiguous"),
        failed=sum(reply.state == "failed" for reply in db.chats.unsent_replies(MAX_UNSENT)),
        oldest_waiting_at=db.chats.oldest_waiting(),
    )


def _quarantined(message: FailedMessage) -> Quarantined:
    message = message._replace(content=message.content[:MAX_CONTENT_CHARACTERS])
    can_retry = bool(message.chat_id)
    return Quarantined(**message._asdict(), id=message.inbox_id, can_retry=can_retry)
