"""A value that is expensive to find and may be some seconds old."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from hermes_core.config.version import config_version

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class KeptValue(Generic[T]):
    """Found again after a change of the configuration, or after a while.

    Of several requests at the same time, one finds it and the others wait.
    """

    def __init__(self, find: Callable[[], T], seconds: float) -> None:
        self._find = find
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: tuple[T, object, float] | None = None

    def get(self) -> T:
        """The value."""
        with self._lock:
            version, now = config_version(), time.monotonic()
            if self._kept is not None:
                value, of_version, at = self._kept
                if of_version == version and now - at < self._seconds:
                    return value
            value = self._find()
            self._kept = (value, version, time.monotonic())
            return value
