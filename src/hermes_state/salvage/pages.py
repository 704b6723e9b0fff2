"""Reads pages and records of an SQLite file that SQLite itself may refuse to open.

The format is documented at https://sqlite.org/fileformat.html. Pages that are not valid are
skipped; nothing here raises for damaged content.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    Value = int | float | str | bytes | None

MAGIC: Final = b"SQLite format 3\0"
HEADER_BYTES: Final = 100
DEFAULT_PAGE_BYTES: Final = 4096
WAL_HEADER_BYTES: Final = 32
FRAME_HEADER_BYTES: Final = 24
INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 0x02, 0x05, 0x0A, 0x0D
PAGE_KINDS: Final = frozenset({INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF})
INTEGER_SIZES: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
MAX_PAYLOAD_BYTES: Final = 1 << 30


class Record(NamedTuple):
    """A row: its ID (None in an index) and its values in stored order."""

    rowid: int | None
    values: tuple[Value, ...]


class PageFile:
    """The pages of a database file, with the committed pages of its write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb")
        header = self._file.read(HEADER_BYTES)
        self.has_header = header.startswith(MAGIC) and len(header) == HEADER_BYTES
        stored = struct.unpack(">H", header[16:18])[0] if self.has_header else 0
        self.page_bytes = 65536 if stored == 1 else stored or DEFAULT_PAGE_BYTES
        self.usable = self.page_bytes - (header[20] if self.has_header else 0)
        wal = path.with_name(f"{path.name}-wal")
        self._wal: BinaryIO | None = wal.open("rb") if wal.exists() else None
        self._frames = dict(self._committed_frames())
        size = path.stat().st_size // self.page_bytes
        self.count = max([size, *self._frames])

    def close(self) -> None:
        self._file.close()
        if self._wal is not None:
            self._wal.close()

    def page(self, number: int) -> bytes:
        """A page; empty if it is not in the file."""
        if not 1 <= number <= self.count:
            return b""
        if number in self._frames and self._wal is not None:
            self._wal.seek(self._frames[number])
            return self._wal.read(self.page_bytes)
        self._file.seek((number - 1) * self.page_bytes)
        data = self._file.read(self.page_bytes)
        return data if len(data) == self.page_bytes else b""

    def _committed_frames(self) -> Iterator[tuple[int, int]]:
        """The position in the log of the newest committed version of each page."""
        if self._wal is None:
            return
        header = self._wal.read(WAL_HEADER_BYTES)
        if header[8:12] != struct.pack(">I", self.page_bytes):
            return
        pending: dict[int, int] = {}
        position = WAL_HEADER_BYTES
        while len(frame := self._wal.read(FRAME_HEADER_BYTES)) == FRAME_HEADER_BYTES:
            number, commit = struct.unpack(">II", frame[:8])
            is_whole = len(self._wal.read(self.page_bytes)) == self.page_bytes
            if frame[8:16] != header[16:24] or not is_whole:  # of an earlier log, or torn
                return
            pending[number] = position + FRAME_HEADER_BYTES
            position += FRAME_HEADER_BYTES + self.page_bytes
            if commit:
                yield from pending.items()
                pending = {}

    def free_pages(self) -> set[int]:
        """Pages of deleted rows."""
        free: set[int] = set()
        trunk = struct.unpack(">I", self.page(1)[32:36])[0] if self.has_header else 0
        while trunk and trunk not in free and (data := self.page(trunk)):
            free.add(trunk)
            following, count = struct.unpack(">II", data[:8])
            count = min(count, (self.usable - 8) // 4)
            free.update(struct.unpack(f">{count}I", data[8 : 8 + 4 * count]))
            trunk = following
        return free

    def kind(self, number: int) -> int | None:
        """The kind of a tree page; None for any other page."""
        data = self.page(number)
        start = HEADER_BYTES if number == 1 else 0
        return data[start] if len(data) > start and data[start] in PAGE_KINDS else None

    def tree_pages(self, root: int) -> Iterator[int]:
        """The pages of a tree, as far as they can be reached."""
        seen: set[int] = set()
        waiting = [root]
        while waiting:
            number = waiting.pop()
            kind = self.kind(number)
            if number in seen or kind is None:
                continue
            seen.add(number)
            yield number
            if kind in {TABLE_INTERIOR, INDEX_INTERIOR}:
                waiting += reversed(list(self._children(number)))

    def _children(self, number: int) -> Iterator[int]:
        data = self.page(number)
        start = HEADER_BYTES if number == 1 else 0
        for offset in self._cells(number):
            if offset + 4 <= len(data):
                yield struct.unpack(">I", data[offset : offset + 4])[0]
        yield struct.unpack(">I", data[start + 8 : start + 12])[0]

    def _cells(self, number: int) -> tuple[int, ...]:
        data = self.page(number)
        start = HEADER_BYTES if number == 1 else 0
        first = start + (12 if data[start] in {TABLE_INTERIOR, INDEX_INTERIOR} else 8)
        count = struct.unpack(">H", data[start + 3 : start + 5])[0]
        count = min(count, (len(data) - first) // 2)
        return struct.unpack(f">{count}H", data[first : first + 2 * count])

    def records(self, number: int) -> Iterator[Record]:
        """The rows on a page; damaged ones are left out."""
        kind = self.kind(number)
        if kind is None or kind == TABLE_INTERIOR:
            return
        data = self.page(number)
        for offset in self._cells(number):
            record = self._record(data, offset + (4 if kind == INDEX_INTERIOR else 0), kind)
            if record is not None:
                yield record

    def _record(self, data: bytes, offset: int, kind: int) -> Record | None:
        try:
            size, offset = varint(data, offset)
            rowid = None
            if kind == TABLE_LEAF:
                rowid, offset = varint(data, offset)
            payload = self._payload(data, offset, size, is_table=kind == TABLE_LEAF)
            return None if payload is None else Record(rowid, decode_record(payload))
        except (IndexError, ValueError, struct.error):
            return None

    def _payload(self, data: bytes, offset: int, size: int, *, is_table: bool) -> bytes | None:
        """The bytes of a record, which may continue on overflow pages."""
        if size > MAX_PAYLOAD_BYTES:
            return None
        limit = self.usable - 35 if is_table else (self.usable - 12) * 64 // 255 - 23
        if size <= limit:
            result = data[offset : offset + size]
            return result if len(result) == size else None
        minimum = (self.usable - 12) * 32 // 255 - 23
        local = minimum + (size - minimum) % (self.usable - 4)
        local = local if local <= limit else minimum
        parts = [data[offset : offset + local]]
        following = struct.unpack(">I", data[offset + local : offset + local + 4])[0]
        missing = size - local
        while missing > 0:
            page = self.page(following)
            if not page:
                return None
            parts.append(page[4 : 4 + min(missing, self.usable - 4)])
            missing -= self.usable - 4
            following = struct.unpack(">I", page[:4])[0]
        return b"".join(parts)


def varint(data: bytes, offset: int) -> tuple[int, int]:
    """A variable-length integer, and the offset after it."""
    result = 0
    for index in range(8):
        byte = data[offset + index]
        result = (result << 7) | (byte & 0x7F)
        if byte < 0x80:
            return result, offset + index + 1
    result = (result << 8) | data[offset + 8]
    return result - (1 << 64) if result >= 1 << 63 else result, offset + 9


def decode_record(payload: bytes) -> tuple[Value, ...]:
    """The values of a record; ValueError if its sizes do not fit."""
    header_size, offset = varint(payload, 0)
    position = header_size
    values: list[Value] = []
    while offset < header_size:
        code, offset = varint(payload, offset)
        value, length = _value(payload, position, code)
        values.append(value)
        position += length
    if position != len(payload) or offset != header_size:
        raise ValueError("the sizes of a record do not fit")
    return tuple(values)


def _value(payload: bytes, position: int, code: int) -> tuple[Value, int]:
    if code in INTEGER_SIZES:
        size = INTEGER_SIZES[code]
        return int.from_bytes(payload[position : position + size], "big", signed=True), size
    if code == 7:
        return struct.unpack(">d", payload[position : position + 8])[0], 8
    if code < 12:
        if code in {10, 11}:
            raise ValueError("unused type")
        return {0: None, 8: 0, 9: 1}[code], 0
    size = (code - 12) // 2
    raw = payload[position : position + size]
    if len(raw) != size:
        raise ValueError("a value is longer than its record")
    return (raw.decode("utf-8", "replace") if code % 2 else raw), size
