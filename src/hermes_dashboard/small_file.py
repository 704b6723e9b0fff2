"""A small file that another process may change at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")


class SmallFile(Generic[T]):
    """What is in a file, read again only when it was replaced."""

    def __init__(self, path: Path, read: Callable[[bytes], T], missing: T) -> None:
        self.path = path
        self._read = read
        self._missing = missing
        self._seen: tuple[tuple[int, int, int], T] | None = None

    def value(self) -> T:
        """What it says now; what stands for a missing one where there is none."""
        try:
            state = self.path.stat()
            signature = (state.st_ino, state.st_mtime_ns, state.st_size)
            if self._seen is None or self._seen[0] != signature:
                self._seen = (signature, self._read(self.path.read_bytes()))
        except FileNotFoundError:
            return self._missing
        return self._seen[1]
