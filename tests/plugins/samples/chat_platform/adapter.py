"""Reads questions from files in a folder, and writes the answers beside them."""

import asyncio
import os
from datetime import datetime
from pathlib import Path

from gateway.config import Platform
from gateway.platforms.base import BasePlatformAdapter, MessageEvent, MessageType, SendResult
from gateway.platforms.helpers import MessageDeduplicator, strip_markdown


class SampleAdapter(BasePlatformAdapter):
    def __init__(self, config):
        super().__init__(config, Platform("samplechat"))
        self.folder = Path(config.extra["folder"])
        self.seen = MessageDeduplicator()
        self.task = None
        self.numbers = 0

    async def connect(self):
        if os.environ.get("SAMPLE_CHAT_TOKEN") == "revoked":
            self._set_fatal_error("token", "the token is revoked", retryable=False)
            return False
        if not self.folder.is_dir():
            return False
        self.task = asyncio.create_task(self.listen())
        self._mark_connected()
        return True

    async def disconnect(self):
        self._mark_disconnected()
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    async def listen(self):
        while True:
            for path in sorted(self.folder.glob("*.question")):
                if not self.seen.is_duplicate(path.name):
                    source = self.build_source(
                        chat_id=path.stem, chat_name="files", user_id="ada", user_name="Ada"
                    )
                    event = MessageEvent(
                        text=path.read_text() or None,
                        message_type=MessageType.TEXT,
                        source=source,
                        timestamp=datetime.now(),  # noqa: DTZ005 - as plugins do
                    )
                    try:
                        await self.handle_message(event)
                    except Exception as error:  # noqa: BLE001 - as plugins do
                        (self.folder / "log").write_text(f"error handling file: {error}")
            await asyncio.sleep(0.02)

    async def send(self, chat_id, content, reply_to=None, metadata=None):
        if chat_id == "broken":
            raise OSError("no route")
        if chat_id == "full":
            return SendResult(success=False, error="try again", retryable=True)
        self.numbers += 1
        with (self.folder / f"{chat_id}.answer").open("a") as file:
            file.write(f"{strip_markdown(content)}\n")
        return SendResult(success=True, message_id=str(self.numbers))

    async def send_typing(self, chat_id, metadata=None):
        (self.folder / f"{chat_id}.typing").touch()

    async def get_chat_info(self, chat_id):
        return {"name": chat_id, "type": "dm"}
