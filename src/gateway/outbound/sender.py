"""Claims replies from the outbox, sends them, and settles or postpones them."""

from __future__ import annotations

import asyncio
import functools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway import supervision
from gateway.platforms.base import Button, Edits, ErrorKind, OutgoingMessage, SendResult
from hermes_core.atomic_files import write_atomically
from hermes_core.isolate import Failure, attempt_async
from hermes_core.log_file import log_fields
from hermes_core.paths import hermes_home, private_folder
from hermes_state.files import media_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.platforms.base import Adapter
    from hermes_state.delivery.outbox import StoredReply
    from hermes_state.delivery.rows import ReplyPayload
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
# Reasons why a reply cannot replace its live reply and is sent as a new message.
NOT_EDITABLE_KINDS: Final = frozenset(
    {ErrorKind.NOT_FOUND, ErrorKind.FORBIDDEN, ErrorKind.TOO_LONG}
)
DUPLICATE_NOTE: Final = (
    "(This message may be a duplicate: its first delivery was not confirmed.)\n\n"
)


class OutboxSender:
    """Sends the replies of one platform, one after another."""

    def __init__(
        self,
        db: SessionDB,
        platform: str,
        adapter: Adapter,
        on_attempt: Callable[[str, str], object] = lambda _platform, _outcome: None,
        is_connected: Callable[[], bool] = lambda: True,
    ) -> None:
        self._db = db
        self._platform = platform
        self._adapter = adapter
        self._on_attempt = on_attempt  # gets the platform and the outcome
        self._is_connected = is_connected  # no attempt is used up while the platform is down
        self._wakes = asyncio.Semaphore(0)
        self._is_stopping = False

    def wake(self) -> None:
        """Look at the outbox now, in one of the tasks that wait."""
        if self._wakes.locked():
            self._wakes.release()

    def stop(self) -> None:
        """Stop once all due replies are sent."""
        self._is_stopping = True
        self.wake()

    async def run(self) -> None:
        """Send replies until stopped; several tasks may run this."""
        has_more = False
        while True:
            reply = None
            if self._is_connected():
                claim = functools.partial(self._db.outbox.claim, self._platform, has_more=has_more)
                reply = await supervision.read_or_none(claim, "outbox claim")
            has_more = reply is not None and reply.has_more
            if has_more:
                self.wake()
            if reply is not None:
                await self._send(reply)
                # At the end of the process, too, the next reply of the chat is due now.
                has_more = has_more or self._is_stopping
                if has_more:
                    continue
            if self._is_stopping:
                self.wake()  # the others stop, too
                return
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wakes.acquire()
            except TimeoutError:
                continue

    async def _send(self, reply: StoredReply) -> None:
        result = await attempt_async(f"send on {self._platform}", self._try(reply))
        if isinstance(result, Failure):  # a faulty adapter does not stop the sender
            result = SendResult(
                False,
                error=f"{type(result.error).__name__}: {result.error}",
                error_kind=ErrorKind.UNKNOWN,
                may_have_arrived=True,
            )
        self._on_attempt(self._platform, _outcome(result))
        if result.success:
            log.info("reply sent", extra=self._fields(reply, receipt=result.message_id))
            self._db.outbox.settle(reply.outbox_id, result.message_id)
            return
        log.warning("reply not sent: %s", result.error, extra=self._fields(reply))
        postpone = functools.partial(
            self._db.outbox.postpone,
            reply.outbox_id,
            result.error or "not sent",
            may_have_arrived=result.may_have_arrived,
            after_seconds=result.retry_after,
            is_hopeless=not result.retryable and not result.may_have_arrived,
        )
        await supervision.write_with_retry(postpone, "outbox postponement")

    def _fields(self, reply: StoredReply, **more: Any) -> dict[str, Any]:
        return log_fields(
            outbox_id=reply.outbox_id,
            inbox_id=reply.inbox_id,
            platform=self._platform,
            attempts=reply.attempts,
            **more,
        )

    async def _try(self, reply: StoredReply) -> SendResult:
        target, text = reply.target, str(reply.payload["text"])
        payload = reply.payload
        abilities = self._adapter.abilities
        if payload.get("file") and not abilities.files:
            text = f"{self._platform} cannot send files"
            return SendResult(False, error=text, error_kind=ErrorKind.FORBIDDEN)
        is_remembered = self._db.clock.now() - reply.created_at <= abilities.idempotent_seconds
        is_safe = (abilities.idempotent and is_remembered) or payload.get("in_place_of")
        if reply.was_ambiguous and not is_safe:
            text = DUPLICATE_NOTE + text
        outgoing = OutgoingMessage(
            str(target["chat_id"]),
            text,
            reply.idempotency_key,
            target.get("thread_id"),
            payload.get("reply_to"),
            await self._fetch_file(payload),
            tuple(Button(*item) for item in payload.get("buttons") or ()),
            payload.get("usage"),
            payload.get("failure"),
            reply.session_id,
            reply.inbox_id,
            payload.get("problem", ""),
        )
        return await self._send_or_edit(outgoing, payload.get("in_place_of"))

    async def _fetch_file(self, payload: ReplyPayload) -> Path | None:
        """The file to send, if any; the adapter reports one that is missing."""
        if not payload.get("file"):
            return None
        local = await attempt_async("fetch a file", asyncio.to_thread(self._local_file, payload))
        return Path(str(payload["file"])) if isinstance(local, Failure) else local

    def _local_file(self, payload: ReplyPayload) -> Path:
        """The path of a file to send; its content is fetched if it is on another node."""
        path, content = Path(str(payload["file"])), payload.get("media")
        if path.exists() or not content:
            return path
        stored = media_of(self._db).local_path(Path(str(content)))
        named = hermes_home() / "media" / "sent" / stored.stem / path.name
        if stored.exists() and not named.exists():
            private_folder(named.parent)
            write_atomically(named, stored.read_bytes())
        return named

    async def _send_or_edit(self, outgoing: OutgoingMessage, shown: str | None) -> SendResult:
        """Replace the live reply, or send a new message if there is none or it cannot be edited."""
        adapter = self._adapter
        if not shown or not isinstance(adapter, Edits):
            return await adapter.send(outgoing)
        result = await adapter.edit(outgoing, shown)
        return await adapter.send(outgoing) if result.error_kind in NOT_EDITABLE_KINDS else result


def _outcome(result: SendResult) -> str:
    if result.success:
        return "sent"
    if result.may_have_arrived:
        return "ambiguous"
    return result.error_kind.value if result.error_kind else "failed"
