"""The end of the server, told to those whose connections would never end by themselves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Farewell:
    """Said once, from any thread; whoever listens lets go."""

    def __init__(self) -> None:
        self.is_said = False
        self._listeners: dict[Callable[[], object], asyncio.AbstractEventLoop] = {}

    def say(self) -> None:
        """The server is about to end."""
        self.is_said = True
        for listener, loop in list(self._listeners.items()):
            loop.call_soon_threadsafe(listener)

    def hear(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call *listener* then, in the loop of whoever asks; returns how to stop listening."""
        self._listeners[listener] = asyncio.get_running_loop()

        def forget() -> None:
            self._listeners.pop(listener, None)

        return forget

    async def wait(self) -> None:
        """Until it is said."""
        said = asyncio.Event()
        forget = self.hear(said.set)
        try:
            if not self.is_said:
                await said.wait()
        finally:
            forget()
