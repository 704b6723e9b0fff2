"""Live replies: the typing indicator, and a message that is edited while the reply is written.

The ID of the edited message is stored, so that the finished reply replaces it, also after a
restart.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from gateway.platforms.base import Edits, OutgoingMessage, Streams, Types
from hermes_core.isolate import attempt_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gateway.config import StreamingConfig
    from gateway.platforms.base import Adapter, MessageEvent, SendResult
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

TYPING_SECONDS: Final = 4.0  # platforms hide the indicator after five seconds or more
STOP_TIMEOUT_SECONDS: Final = 15.0
MIN_EDIT_SECONDS: Final = 0.2
STREAM_SECONDS: Final = 0.05
START_SECONDS: Final = 0.05  # a faster reply is not shown before it is complete


class ReplyBuffer:
    """The text of a reply so far; written by the thread of the turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = ""
        self._earlier = ""
        self._stop: Callable[[], object] | None = None
        self.is_finished = False
        self.message_id: str | None = None  # the platform message that shows the text

    def stop_with(self, stop: Callable[[], object]) -> bool:
        """Set what ends the showing; False if the reply is finished already."""
        with self._lock:
            if not self.is_finished:
                self._stop = stop
            return not self.is_finished

    def finish(self) -> str | None:
        """End the showing; returns the ID of the message that shows the text."""
        with self._lock:
            self.is_finished = True
            stop, self._stop = self._stop, None
        if stop is not None:
            stop()
        return self.message_id

    def append(self, text: str) -> None:
        """Add text to the current message."""
        with self._lock:
            self._text += text

    def start_message(self) -> None:
        """Start another message of the model, after a tool call."""
        with self._lock:
            self._earlier += f"{self._text}\n\n" if self._text else ""
            self._text = ""

    @property
    def text(self) -> str:
        """The current message."""
        with self._lock:
            return self._text

    @property
    def parts(self) -> tuple[str, str]:
        """The earlier messages of the turn and the current one."""
        with self._lock:
            return self._earlier, self._text


class LiveReplies:
    """Shows the replies of all running turns."""

    def __init__(
        self, db: SessionDB, adapters: Mapping[str, Adapter], config: StreamingConfig
    ) -> None:
        self._db = db
        self._adapters = adapters
        self._config = config
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Use the running event loop."""
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def show(
        self, inbox_id: int, event: MessageEvent, *, is_retry: bool = True
    ) -> Iterator[ReplyBuffer]:
        """Show the reply of a turn until the block ends; called from the turn's thread.

        If this is a retry, an earlier attempt may have shown a part of the reply.
        """
        buffer = ReplyBuffer()
        source = event.source
        adapter = self._adapters.get(source.platform.value) if source is not None else None
        if self._loop is None or source is None or adapter is None:
            yield buffer
            return
        target = OutgoingMessage(
            source.chat_id, "", f"show:{inbox_id}", source.thread_id, event.message_id
        )
        if is_retry:
            buffer.message_id = self._db.chats.shown(inbox_id)
        reply = _LiveReply(self._db, adapter, self._config, inbox_id, target)
        start = functools.partial(self._start, reply, buffer)
        self._loop.call_soon_threadsafe(self._loop.call_later, START_SECONDS, start)
        try:
            yield buffer
        finally:
            buffer.finish()

    def _start(self, reply: _LiveReply, buffer: ReplyBuffer) -> None:
        """Start to show a reply that takes a while; called from the event loop."""
        loop = self._loop
        if loop is None:
            return
        ended: concurrent.futures.Future[None] = concurrent.futures.Future()

        def stop() -> None:
            loop.call_soon_threadsafe(reply.stop)
            try:
                ended.result(STOP_TIMEOUT_SECONDS)
            except concurrent.futures.TimeoutError:
                loop.call_soon_threadsafe(task.cancel)

        if buffer.stop_with(stop):
            # A failure to show the reply must not fail the turn.
            task = loop.create_task(attempt_async("show live reply", reply.run(buffer)))
            task.add_done_callback(lambda _task: ended.set_result(None))


class _LiveReply:
    """Shows one reply on one platform."""

    def __init__(
        self,
        db: SessionDB,
        adapter: Adapter,
        config: StreamingConfig,
        inbox_id: int,
        target: OutgoingMessage,
    ) -> None:
        self._db = db
        self._adapter = adapter
        self._config = config
        self._inbox_id = inbox_id
        self._target = target
        self._shown = ""
        self._typed_at = 0.0
        self._not_before = 0.0
        self._stopped = asyncio.Event()

    async def run(self, buffer: ReplyBuffer) -> None:
        """Show the reply until the turn is finished."""
        abilities = self._adapter.abilities
        is_editing = self._config.enabled and self._config.transport != "off" and abilities.edit
        pause = (
            max(self._config.edit_interval, MIN_EDIT_SECONDS) if is_editing else MIN_EDIT_SECONDS
        )
        if not is_editing and isinstance(self._adapter, Streams):
            pause = STREAM_SECONDS
        while not buffer.is_finished:
            try:
                await self._type()
                await self._stream(buffer)
                if is_editing:
                    await self._show(buffer)
            except OSError as error:
                log.info("live reply not updated: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopped.wait()
        await self._stream(buffer)  # what came after the last look, also before a tool call

    def stop(self) -> None:
        """End the current pause: the turn is finished."""
        self._stopped.set()

    async def _stream(self, buffer: ReplyBuffer) -> None:
        if isinstance(self._adapter, Streams):
            earlier, text = buffer.parts
            await self._adapter.piece(self._target._replace(text=text), earlier)

    async def _type(self) -> None:
        adapter, now = self._adapter, time.monotonic()
        if not isinstance(adapter, Types) or now - self._typed_at < TYPING_SECONDS:
            return
        self._typed_at = now
        await adapter.typing(self._target.chat_id, self._target.thread_id)

    async def _show(self, buffer: ReplyBuffer) -> None:
        """Show new text if there is enough of it and the platform allows another request."""
        adapter, text = self._adapter, buffer.text
        max_chars = adapter.abilities.longest_text - len(self._config.cursor)
        visible = text[:max_chars]
        is_longer = len(visible) - len(self._shown) >= self._config.buffer_threshold
        is_other = not visible.startswith(self._shown) and bool(visible)
        if not (is_longer or is_other) or time.monotonic() < self._not_before:
            return
        outgoing = self._target._replace(text=visible + self._config.cursor)
        if buffer.message_id is None:
            result = await adapter.send(outgoing)
            self._record(result, visible)
            if result.success and result.message_id:
                buffer.message_id = result.message_id
                note = self._db.chats.note_shown
                await asyncio.to_thread(note, self._inbox_id, result.message_id)
        elif isinstance(adapter, Edits):
            self._record(await adapter.edit(outgoing, buffer.message_id), visible)

    def _record(self, result: SendResult, text: str) -> None:
        if result.success:
            self._shown = text
        else:  # the finished reply is sent in any case
            log.info("live reply not updated: %s", result.error)
            pause = result.retry_after or TYPING_SECONDS
            self._not_before = time.monotonic() + pause
