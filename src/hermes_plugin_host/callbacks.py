"""Isolated calls of plugin callbacks.

Each callback runs in its own thread with a timeout. Every exception, including SystemExit, is
contained and reported as a failure. A callback that does not return is abandoned; after three
timeouts in a row it is disabled in this process, unless its hook decides.
"""

from __future__ import annotations

import inspect
import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

log = logging.getLogger(__name__)

CALLBACK_TIMEOUT_SECONDS: Final = 2.0
MAX_HANGS: Final = 3


class CallbackResult(NamedTuple):
    """The result of one call."""

    plugin: str
    hook: str
    result: Any
    error: str
    seconds: float

    @property
    def is_failure(self) -> bool:
        """Whether the call failed or did not return in time."""
        return bool(self.error)


@dataclass
class Callback:
    """The function of a plugin for one hook, and the statistics of its calls."""

    plugin: str
    hook: str
    function: Callable[..., Any]
    number: int = 1  # among the plugin's callbacks for this hook
    calls: int = 0
    hangs: int = 0
    is_disabled_by_hangs: bool = True
    last_error: str = ""
    last_seconds: float = 0.0

    @property
    def consumer(self) -> str:
        """The name under which deliveries are recorded; the same in every process."""
        return f"{self.plugin}:{self.hook}:{self.number}"

    def call(
        self, facts: Mapping[str, Any], timeout_seconds: float = CALLBACK_TIMEOUT_SECONDS
    ) -> CallbackResult:
        """Call the function; never raises, and returns within the timeout."""
        if self.is_disabled_by_hangs and self.hangs >= MAX_HANGS:
            return CallbackResult(self.plugin, self.hook, None, self._disabled_text(), 0.0)
        began = time.monotonic()
        run = _CallbackRun(self.function, facts, timeout_seconds)
        thread = threading.Thread(target=run, name=f"plugin {self.plugin}", daemon=True)
        thread.start()
        thread.join(timeout_seconds)
        error = run.error
        if thread.is_alive():
            error = f"did not return within {timeout_seconds:g} s"
            self.hangs += 1
        else:
            self.hangs = 0
        self.calls += 1
        self.last_error, self.last_seconds = error, time.monotonic() - began
        if error:
            log.warning("plugin %s failed in %s: %s", self.plugin, self.hook, error)
        return CallbackResult(self.plugin, self.hook, run.result, error, self.last_seconds)

    def _disabled_text(self) -> str:
        return f"disabled after {MAX_HANGS} consecutive timeouts"


class _CallbackRun:
    """One call, executed in its thread."""

    def __init__(
        self, function: Callable[..., Any], facts: Mapping[str, Any], timeout_seconds: float
    ) -> None:
        self._function = function
        self._facts = facts
        self._timeout_seconds = timeout_seconds
        self.result: Any = None
        self.error = ""

    def __call__(self) -> None:
        try:
            result = self._function(**self._facts)
            if inspect.isawaitable(result):
                result = _result_of(result, self._timeout_seconds)
            self.result = result
        except TimeoutError:
            self.error = f"did not return within {self._timeout_seconds:g} s"
        except BaseException as error:
            self.error = f"{type(error).__name__}: {error}"
            log.debug("traceback of the failed callback", exc_info=error)


def _result_of(awaitable: Awaitable[Any], timeout_seconds: float) -> Any:
    import asyncio  # noqa: PLC0415 - most callbacks are plain functions

    async def awaited() -> Any:
        return await asyncio.wait_for(awaitable, timeout_seconds)

    return asyncio.run(awaited())
