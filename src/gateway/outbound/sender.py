"""Replies on their way to a platform: taken from the outbox, sent, settled or put off."""

from __future__ import annotations

import asyncio
import functools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway import store_retry
from gateway.platforms.base import Edits, ErrorKind, OutgoingMessage, SendResult
from hermes_core.isolate import Failure, attempt_async
from hermes_core.log_file import log_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.platforms.base import Adapter
    from hermes_state import SessionDB

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
# Why an answer cannot take the place of what was shown; by itself it may be sent.
NOT_IN_PLACE: Final = frozenset({ErrorKind.NOT_FOUND, ErrorKind.FORBIDDEN, ErrorKind.TOO_LONG})
AGAIN: Final = "(This may reach you twice: the first try was cut off.)\n\n"


class Sender:
    """Sends the replies of one platform, one after the other."""

    def __init__(
        self,
        db: SessionDB,
        platform: str,
        adapter: Adapter,
        note: Callable[[str, str], object] = lambda _platform, _outcome: None,
        is_connected: Callable[[], bool] = lambda: True,
    ) -> None:
        self._db = db
        self._platform = platform
        self._adapter = adapter
        self._note = note  # the platform, and what became of a try
        self._is_connected = is_connected  # a platform that is down uses up no tries
        self._wake = asyncio.Event()
        self._is_stopping = False

    def wake(self) -> None:
        """There is something to send."""
        self._wake.set()

    def stop(self) -> None:
        """Stop when everything that is due has been sent."""
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Send until told to stop."""
        while True:
            self._wake.clear()
            reply = None
            if self._is_connected():
                reply = await store_retry.asked(self._claim, "look for replies")
            if reply is not None:
                await self._send(reply)
                continue
            if self._is_stopping:
                return
            try:
                await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)
            except TimeoutError:
                continue

    async def _send(self, reply: dict[str, Any]) -> None:
        result = await self._tried(reply)
        self._note(self._platform, _outcome(result))
        if result.success:
            log.info("a reply is sent", extra=self._facts(reply, receipt=result.message_id))
            settle = functools.partial(self._db.settle_reply, reply["outbox_id"], result.message_id)
            await store_retry.written(settle, "note that a reply was sent")
            return
        log.warning("a reply was not sent: %s", result.error, extra=self._facts(reply))
        postpone = functools.partial(
            self._db.postpone_reply,
            reply["outbox_id"],
            result.error or "it was not sent",
            may_have_arrived=result.may_have_arrived,
            after_seconds=result.retry_after,
            is_hopeless=not result.retryable and not result.may_have_arrived,
        )
        await store_retry.written(postpone, "put a reply off")

    def _claim(self) -> dict[str, Any] | None:
        return self._db.claim_reply(self._platform)

    def _facts(self, reply: dict[str, Any], **more: Any) -> dict[str, Any]:
        return log_fields(
            outbox_id=reply["outbox_id"],
            inbox_id=reply["inbox_id"],
            platform=self._platform,
            attempts=reply["attempts"],
            **more,
        )

    async def _tried(self, reply: dict[str, Any]) -> SendResult:
        target, text = reply["target"], str(reply["payload"]["text"])
        payload = reply["payload"]
        is_safe = self._adapter.abilities.idempotent or payload.get("in_place_of")
        if reply["was_ambiguous"] and not is_safe:
            text = AGAIN + text
        outgoing = OutgoingMessage(
            str(target["chat_id"]),
            text,
            reply["idempotency_key"],
            target.get("thread_id"),
            payload.get("reply_to"),
            Path(payload["file"]) if payload.get("file") else None,
        )
        sending = self._sent(outgoing, payload.get("in_place_of"))
        result = await attempt_async(f"send on {self._platform}", sending)
        if isinstance(result, Failure):  # whatever an adapter does, the next reply is sent
            return SendResult(
                False,
                error=f"{type(result.error).__name__}: {result.error}",
                error_kind=ErrorKind.UNKNOWN,
                may_have_arrived=True,
            )
        return result

    async def _sent(self, outgoing: OutgoingMessage, shown: str | None) -> SendResult:
        """Send, or finish what is being shown; where that is gone, it is sent after all."""
        adapter = self._adapter
        if not shown or not isinstance(adapter, Edits):
            return await adapter.send(outgoing)
        result = await adapter.edit(outgoing, shown)
        return await adapter.send(outgoing) if result.error_kind in NOT_IN_PLACE else result


def _outcome(result: SendResult) -> str:
    if result.success:
        return "sent"
    if result.may_have_arrived:
        return "ambiguous"
    return result.error_kind.value if result.error_kind else "failed"
