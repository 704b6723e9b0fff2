"""A small file that another process may change at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")


class SmallFile(Generic[T]):
    """The parsed content of a file, read again only after a change."""

    def __init__(self, path: Path, read: Callable[[bytes], T], missing: T) -> None:
        self.path = path
        self._read = read
        self._missing = missing
        self._cached: tuple[tuple[int, int, int], T] | None = None

    def value(self) -> T:
        """The current content, or *missing* if there is no file."""
        try:
            stat = self.path.stat()
            signature = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if self._cached is None or self._cached[0] != signature:
                self._cached = (signature, self._read(self.path.read_bytes()))
        except FileNotFoundError:
            return self._missing
        return self._cached[1]
