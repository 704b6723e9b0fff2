"""Named steps whose errors are logged with a traceback instead of raised.

A database server that cannot be reached is not logged here: the store does, once.

This is the only module that may catch every exception. Work that must continue after a
failed part is a list of named steps. KeyboardInterrupt and SystemExit are not caught.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hermes_core.errors import StoreUnreachableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

T = TypeVar("T")

log = logging.getLogger(__name__)


class Step(NamedTuple):
    """A function with its name for the log."""

    name: str
    run: Callable[[], object]


class Failure(NamedTuple):
    """The name of a failed step, and its exception."""

    step: str
    error: Exception

    @property
    def reason(self) -> str:
        """The exception for a person."""
        return f"{type(self.error).__name__}: {self.error}"


def _log_failure(name: str, error: Exception) -> None:
    if isinstance(error, StoreUnreachableError):
        log.debug("%s failed: %s", name, error)
    else:
        log.warning("%s failed: %s", name, error, exc_info=error)


def attempt(name: str, call: Callable[[], T]) -> T | Failure:
    """Call *call*; return its failure instead of raising it."""
    try:
        return call()
    except Exception as error:
        _log_failure(name, error)
        return Failure(name, error)


def attempt_each(name: str, items: Iterable[T]) -> Iterator[T | Failure]:
    """Yield each of *items*; a failure is yielded instead of raised and is the last one."""
    iterator = iter(items)
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            _log_failure(name, error)
            yield Failure(name, error)
            return
        yield item


async def attempt_async(name: str, work: Awaitable[T]) -> T | Failure:
    """Await *work*; return its failure instead of raising it."""
    try:
        return await work
    except Exception as error:
        _log_failure(name, error)
        return Failure(name, error)


def run_all(steps: Iterable[Step]) -> list[Failure]:
    """Run all steps in order, even after failures; returns the failures."""
    results = [attempt(step.name, step.run) for step in steps]
    return [result for result in results if isinstance(result, Failure)]
