"""Reads JSON lines that another program may be writing: in bytes, from a position.

A last line without an end is read if it is complete JSON; otherwise it is left for the next
time. Lines that are not JSON are counted.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator
    from io import BufferedIOBase
    from pathlib import Path

    from hermes_core.json_values import JsonObject
    from hermes_state.imports.rows import UnitState

    Line = bytes | bytearray

CHUNK_BYTES: Final = 1 << 17  # fits into the cache of a processor
HEAD_BYTES: Final = 256
NEVER_MATCHING: Final = re.compile(rb"(?!)")
HEAD_KEY: Final = "head"  # of the digest in the state of a unit
ZSTD_SUFFIX: Final = ".zst"
GZIP_SUFFIX: Final = ".gz"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
UNREADABLE: Final = "(not JSON)"
MAX_LINE_BYTES: Final = 1 << 27
TOO_LONG: Final = "(line over 128 MiB)"


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed; it is then read as a whole."""
    return path.suffix in {ZSTD_SUFFIX, GZIP_SUFFIX}


@contextmanager
def open_bytes(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file, decompressing it if its name ends like that of a compressed one."""
    if path.suffix == GZIP_SUFFIX:
        with gzip.open(path) as file:
            yield file
    elif path.suffix == ZSTD_SUFFIX:
        from hermes_import.zstd import open_zstd  # noqa: PLC0415 - rarely needed

        with open_zstd(path) as file:
            yield file
    else:
        with path.open("rb") as file:
            yield file


def head_of(data: bytes) -> str:
    """A digest of the first bytes of a file, to notice that it was replaced."""
    return hashlib.blake2b(data[:HEAD_BYTES], digest_size=8).hexdigest()


class LongLine:
    """A line whose end was not read yet; one that is too long is not kept.

    It grows in place, and `take` leaves nothing behind: a line may fill much of the memory.
    """

    def __init__(self) -> None:
        self.size = 0
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        """Add what was read of it."""
        self.size += len(chunk)
        if self.size <= MAX_LINE_BYTES:
            self._data += chunk
        else:
            self._data = bytearray()

    def peek(self) -> bytearray:
        """The line so far; empty if it is too long."""
        return self._data

    def take(self) -> bytearray:
        """The line; empty if it is too long."""
        data, self._data, self.size = self._data, bytearray(), 0
        return data


class JsonLines:
    """The lines of a file after those that were read before.

    `position` is behind the last line, `line_position` where it begins, `head` the digest of
    the first bytes.
    """

    def __init__(self, path: Path, unknown: Counter[str], start: UnitState) -> None:
        self._path = path
        self._unknown = unknown
        self.position = 0 if is_compressed(path) else start.position
        self.line_position = self.position
        self.head = str(start.state.get(HEAD_KEY, ""))

    def raw(self, skipped: re.Pattern[bytes] | None = None) -> Iterator[Line]:
        """The lines without their ends, except empty ones and those that match *skipped*."""
        rest, is_skipped = LongLine(), (skipped or NEVER_MATCHING).match
        with open_bytes(self._path) as file:
            file.seek(self.position)
            while chunk := file.read(CHUNK_BYTES):
                if not self.head:
                    self.head = head_of(chunk)
                lines = chunk.split(b"\n")
                last = lines.pop()
                if lines and rest.size:
                    rest.add(lines.pop(0))
                    if self._is_read(rest, is_skipped):
                        yield rest.take()
                    rest = LongLine()
                start = self.position
                ends = accumulate(map(len, lines), initial=start)
                for number, (line, at) in enumerate(zip(lines, ends, strict=False)):
                    if line and not is_skipped(line):
                        self.line_position = at + number
                        yield line
                self.position = start + sum(map(len, lines)) + len(lines)
                rest.add(last)
        if rest.size and _is_json(rest.peek()):
            self.line_position = self.position
            self.position += rest.size
            yield rest.take()

    def _is_read(self, line: LongLine, is_skipped: Callable[[Line], object]) -> bool:
        """Whether a line that began in an earlier chunk is read; one too long is counted."""
        self.line_position = self.position
        self.position += line.size + 1
        if line.size > MAX_LINE_BYTES:
            self._unknown[TOO_LONG] += 1
            return False
        return not is_skipped(line.peek())

    def parse(self, line: Line) -> JsonObject | None:
        """The object of a line; None if it is not one, which is counted."""
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            if not line.strip():
                return None  # an empty line with another line end
            value = _lenient(line.removeprefix(BYTE_ORDER_MARK))
        if isinstance(value, dict):
            return value
        self._unknown[UNREADABLE] += 1
        return None

    def __iter__(self) -> Iterator[JsonObject]:
        for line in self.raw():
            value = self.parse(line)
            if value is not None:
                yield value


def parsed_object(data: bytes) -> JsonObject:
    """The object in JSON data; an empty one if there is none."""
    value = _lenient(data)
    return value if isinstance(value, dict) else {}


def _lenient(line: Line) -> object:
    """The value of a line with invalid UTF-8 or lone surrogates; None if it is not JSON.

    None, too, for values that are nested too deeply to be read.
    """
    import json  # noqa: PLC0415 - rarely needed

    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _is_json(line: Line) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
