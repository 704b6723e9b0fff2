"""The one place that may catch everything: it names the step and keeps the traceback.

Work that must go on whatever happens to a part of it is a list of named steps.
KeyboardInterrupt and SystemExit are orders, not failures, and pass through.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

T = TypeVar("T")

log = logging.getLogger(__name__)


class Step(NamedTuple):
    """A piece of work with the name it has in the log."""

    name: str
    run: Callable[[], object]


class Failure(NamedTuple):
    """A step that raised, and what it raised."""

    step: str
    error: Exception


def attempt(step: Step) -> Failure | None:
    """Run one step; report its failure instead of raising it."""
    try:
        step.run()
    except Exception as error:
        log.warning("%s failed: %s", step.name, error, exc_info=error)
        return Failure(step.name, error)
    return None


async def attempt_async(name: str, work: Awaitable[T]) -> T | Failure:
    """Wait for one piece of work; report its failure instead of raising it."""
    try:
        return await work
    except Exception as error:
        log.warning("%s failed: %s", name, error, exc_info=error)
        return Failure(name, error)


def run_all(steps: Iterable[Step]) -> list[Failure]:
    """Run every step in order, whatever happens to the others; return the failures."""
    failures = (attempt(step) for step in steps)
    return [failure for failure in failures if failure is not None]
