"""An answer while it is written: the platform shows that somebody types, and how it grows.

What is shown is one message that is edited. Its id is noted, so that the answer, when it is
finished, takes its place: also when that happens after a restart.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from gateway.platforms.base import Edits, OutgoingMessage, Streams, Types
from hermes_core.isolate import attempt_async

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.config import StreamingConfig
    from gateway.platforms.base import Adapter, MessageEvent, SendResult
    from hermes_state import SessionDB

log = logging.getLogger(__name__)

TYPING_SECONDS: Final = 4.0  # platforms forget it after five or more
LETTING_GO_SECONDS: Final = 15.0
LEAST_SECONDS: Final = 0.2
STREAM_SECONDS: Final = 0.05


class Screen:
    """What is shown of one answer; written to by the thread of its turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = ""
        self._earlier = ""
        self.is_over = False

    def add(self, piece: str) -> None:
        """More of the answer."""
        with self._lock:
            self._text += piece

    def begin_again(self) -> None:
        """What comes now is another message of the model's."""
        with self._lock:
            self._earlier += f"{self._text}\n\n" if self._text else ""
            self._text = ""

    @property
    def text(self) -> str:
        """What there is to be shown."""
        with self._lock:
            return self._text

    @property
    def whole(self) -> tuple[str, str]:
        """What the messages before said, and what there is of the present one."""
        with self._lock:
            return self._earlier, self._text


class LiveReply:
    """Screens of all turns that run."""

    def __init__(
        self, db: SessionDB, adapters: Mapping[str, Adapter], config: StreamingConfig
    ) -> None:
        self._db = db
        self._adapters = adapters
        self._config = config
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Work in the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def of(self, inbox_id: int, event: MessageEvent) -> Iterator[Screen]:
        """Show a turn while it runs; called from its thread. After it nothing is shown any more."""
        screen = Screen()
        source = event.source
        adapter = self._adapters.get(source.platform.value) if source is not None else None
        if self._loop is None or source is None or adapter is None:
            yield screen
            return
        where = OutgoingMessage(
            source.chat_id, "", f"show:{inbox_id}", source.thread_id, event.message_id
        )
        player = _Player(self._db, adapter, self._config, inbox_id, where)
        showing = attempt_async("show an answer", player.run(screen))  # it harms no answer
        playing = asyncio.run_coroutine_threadsafe(showing, self._loop)
        try:
            yield screen
        finally:
            screen.is_over = True
            self._loop.call_soon_threadsafe(player.end)
            try:
                playing.result(LETTING_GO_SECONDS)
            except concurrent.futures.TimeoutError:
                playing.cancel()


class _Player:
    """Shows one screen on one platform."""

    def __init__(
        self,
        db: SessionDB,
        adapter: Adapter,
        config: StreamingConfig,
        inbox_id: int,
        where: OutgoingMessage,
    ) -> None:
        self._db = db
        self._adapter = adapter
        self._config = config
        self._inbox_id = inbox_id
        self._where = where
        self._receipt: str | None = None
        self._shown = ""
        self._typed_at = 0.0
        self._not_before = 0.0
        self._over = asyncio.Event()

    async def run(self, screen: Screen) -> None:
        """Until the turn is over."""
        abilities = self._adapter.abilities
        is_streaming = self._config.enabled and self._config.transport != "off" and abilities.edit
        pause = max(self._config.edit_interval, LEAST_SECONDS) if is_streaming else LEAST_SECONDS
        if is_streaming:
            self._receipt = await asyncio.to_thread(self._db.shown, self._inbox_id)
        elif isinstance(self._adapter, Streams):
            pause = STREAM_SECONDS
        while not screen.is_over:
            try:
                await self._type()
                await self._hand_on(screen)
                if is_streaming:
                    await self._show(screen.text)
            except OSError as error:
                log.info("an answer could not be shown while it is written: %s", error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), pause)

    def end(self) -> None:
        """The turn is over: there is nothing to wait for."""
        self._over.set()

    async def _hand_on(self, screen: Screen) -> None:
        if isinstance(self._adapter, Streams):
            earlier, text = screen.whole
            await self._adapter.piece(self._where._replace(text=text), earlier)

    async def _type(self) -> None:
        adapter, now = self._adapter, time.monotonic()
        if not isinstance(adapter, Types) or now - self._typed_at < TYPING_SECONDS:
            return
        self._typed_at = now
        await adapter.typing(self._where.chat_id, self._where.thread_id)

    async def _show(self, text: str) -> None:
        """Show what is new, if it is enough and the platform lets us."""
        adapter = self._adapter
        longest = adapter.abilities.longest_text - len(self._config.cursor)
        cut = text[:longest]
        is_new = len(cut) - len(self._shown) >= self._config.buffer_threshold
        is_other = not cut.startswith(self._shown) and bool(cut)
        if not (is_new or is_other) or time.monotonic() < self._not_before:
            return
        outgoing = self._where._replace(text=cut + self._config.cursor)
        if self._receipt is None:
            await self._begin(await adapter.send(outgoing), cut)
        elif isinstance(adapter, Edits):
            self._note(await adapter.edit(outgoing, self._receipt), cut)

    async def _begin(self, result: SendResult, text: str) -> None:
        self._note(result, text)
        if result.success and result.message_id:
            self._receipt = result.message_id
            await asyncio.to_thread(self._db.note_shown, self._inbox_id, self._receipt)

    def _note(self, result: SendResult, text: str) -> None:
        if result.success:
            self._shown = text
        else:  # the answer itself is sent in any case
            log.info("an answer could not be shown while it is written: %s", result.error)
            pause = result.retry_after or TYPING_SECONDS
            self._not_before = time.monotonic() + pause
