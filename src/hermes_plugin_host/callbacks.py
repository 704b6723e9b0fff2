"""Calling a plugin's code so that it can hurt nobody but itself.

Each callback runs in a thread of its own with a time limit. Whatever it raises, also an
attempt to exit, is its failure and nobody else's. A callback that does not return is left
behind; one that did so three times in a row is not called again in this process.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)

LIMIT_SECONDS: Final = 2.0
MAX_HANGS: Final = 3


class Outcome(NamedTuple):
    """What became of one call."""

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
    """One plugin's function for one hook, and how it has fared."""

    plugin: str
    hook: str
    function: Callable[..., Any]
    number: int = 1  # of the plugin's callbacks for this hook
    calls: int = 0
    hangs: int = 0
    last_error: str = ""
    last_seconds: float = 0.0

    @property
    def consumer(self) -> str:
        """The name under which deliveries to it are noted; the same in every process."""
        return f"{self.plugin}:{self.hook}:{self.number}"

    def call(self, facts: Mapping[str, Any], limit_seconds: float = LIMIT_SECONDS) -> Outcome:
        """Call it; never raises, and returns in time."""
        if self.hangs >= MAX_HANGS:
            return Outcome(self.plugin, self.hook, None, self._given_up(), 0.0)
        began = time.monotonic()
        run = _Run(self.function, facts, limit_seconds)
        thread = threading.Thread(target=run, name=f"plugin {self.plugin}", daemon=True)
        thread.start()
        thread.join(limit_seconds)
        error = run.error
        if thread.is_alive():
            error = f"did not return within {limit_seconds:g} s"
            self.hangs += 1
        else:
            self.hangs = 0
        self.calls += 1
        self.last_error, self.last_seconds = error, time.monotonic() - began
        if error:
            log.warning("plugin %s failed in %s: %s", self.plugin, self.hook, error)
        return Outcome(self.plugin, self.hook, run.result, error, self.last_seconds)

    def _given_up(self) -> str:
        return f"disabled after {MAX_HANGS} consecutive timeouts"


class _Run:
    """One call inside its thread."""

    def __init__(
        self, function: Callable[..., Any], facts: Mapping[str, Any], limit_seconds: float
    ) -> None:
        self._function = function
        self._facts = facts
        self._limit = limit_seconds
        self.result: Any = None
        self.error = ""

    def __call__(self) -> None:
        try:
            result = self._function(**self._facts)
            if inspect.isawaitable(result):
                result = asyncio.run(_awaited(result, self._limit))
            self.result = result
        except TimeoutError:
            self.error = f"did not return within {self._limit:g} s"
        except BaseException as error:
            self.error = f"{type(error).__name__}: {error}"
            log.debug("traceback of the failed callback", exc_info=error)


async def _awaited(result: Any, limit_seconds: float) -> Any:
    return await asyncio.wait_for(result, limit_seconds)
