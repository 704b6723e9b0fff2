"""Writes the archive of a backup in parts that survive a kill.

A file is compressed in parts of fixed size, each independent of the others. Deflate allows
this: parts that end at a byte boundary form one stream when they are written one after the
other. A finished part is kept in the work folder under the SHA-256 of its content, so that a
later run compresses only what it does not find there.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Final

from hermes_core.atomic_files import sync_folder
from hermes_core.errors import PortableFileError
from hermes_core.paths import FILE_MODE, FOLDER_MODE, private_folder
from hermes_state.portable.backup.archive_format import (
    CHUNK_BYTES,
    EXECUTABLE_BIT,
    MANIFEST_NAME,
    BackupManifest,
    open_archive,
    private_file,
    read_manifest,
)

try:  # several times faster; there are processors without a wheel
    from isal import isal_zlib as deflate
except ImportError:
    import zlib as deflate  # type: ignore[no-redef]

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_state.portable.backup.archive_format import FileFacts

COMPRESSION_LEVEL: Final = 1
DEFLATE_ERROR: Final[type[Exception]] = deflate.error  # type: ignore[assignment]
PART_BYTES: Final = 16 << 20
RAW_DEFLATE: Final = -zlib.MAX_WBITS
LAST_BLOCK: Final = b"\x03\x00"  # an empty block with the mark of the last one
PART_HEADER: Final = struct.Struct("<I")  # the CRC-32 of the compressed data
LOCAL_HEADER: Final = struct.Struct("<26xHH")  # ends with the lengths of name and extra field


class ArchiveWriter:
    """Writes one archive; `step` is called with the bytes done so far and may raise."""

    def __init__(self, work: Path, step: Callable[[int], object]) -> None:
        self._work = work
        self._parts = private_folder(work / "parts")
        self._step = step
        self._done_bytes = 0
        self.reused_bytes = 0

    def write(self, path: Path, files: dict[str, Path], manifest: BackupManifest) -> None:
        """Write the files and the manifest to *path*, which appears only when it is complete."""
        temporary = self._work / "archive"
        temporary.unlink(missing_ok=True)
        with private_file(temporary) as raw:
            with zipfile.ZipFile(raw, "w") as archive:
                for name, source in files.items():
                    manifest.files[name] = self._add(archive, raw, name, source)
                info = zipfile.ZipInfo(MANIFEST_NAME)
                info.external_attr = FILE_MODE << 16
                archive.writestr(info, manifest.to_json())
            raw.flush()
            os.fsync(raw.fileno())
        self._check(temporary)
        _publish(temporary, path)
        sync_folder(path.parent)

    def _add(self, archive: zipfile.ZipFile, raw: IO[bytes], name: str, source: Path) -> FileFacts:
        """Append a compressed file; returns its facts for the manifest.

        `zipfile` cannot append compressed data, so the data is written here, and `zipfile`
        writes the headers.
        """
        info = zipfile.ZipInfo.from_file(source, name)
        info.compress_type = zipfile.ZIP_DEFLATED
        is_executable = info.external_attr >> 16 & EXECUTABLE_BIT
        info.external_attr = (FOLDER_MODE if is_executable else FILE_MODE) << 16
        info.header_offset = raw.tell()
        info.file_size = info.compress_size = info.CRC = 0
        raw.write(info.FileHeader(zip64=True))
        digest = hashlib.sha256()
        with source.open("rb", buffering=0) as reading:
            while content := _read_part(reading):
                digest.update(content)
                info.CRC = deflate.crc32(content, info.CRC)
                info.file_size += len(content)
                info.compress_size += raw.write(self._compressed(content))
                self._report(len(content))
        info.compress_size += raw.write(LAST_BLOCK)
        archive.start_dir = raw.tell()
        raw.seek(info.header_offset)
        raw.write(info.FileHeader(zip64=True))
        raw.seek(archive.start_dir)
        archive.filelist.append(info)
        archive.NameToInfo[name] = info
        return {"bytes": info.file_size, "sha256": digest.hexdigest()}

    def _compressed(self, content: bytes) -> bytes:
        """The compressed content: of an earlier run, or compressed now and kept."""
        if len(content) < PART_BYTES:
            return _compress(content)
        part = self._parts / hashlib.sha256(content).hexdigest()
        kept = _read_kept(part)
        if kept is not None:
            self.reused_bytes += len(content)
            return kept
        data = _compress(content)
        part.unlink(missing_ok=True)
        with private_file(part) as file:
            file.write(PART_HEADER.pack(deflate.crc32(data)))
            file.write(data)
        return data

    def _check(self, path: Path) -> None:
        """Read the archive back and compare every file with its size and checksum."""
        with open_archive(path) as archive, path.open("rb") as raw:
            manifest = read_manifest(archive, path)
            for name, facts in manifest.files.items():
                info = archive.getinfo(name)
                size, crc = self._inflate(raw, info)
                if (size, crc) != (facts["bytes"], info.CRC):
                    raise PortableFileError(
                        f"the backup was not written correctly: {name} in it is damaged. Check "
                        "the disk, and try again."
                    )

    def _inflate(self, raw: IO[bytes], info: zipfile.ZipInfo) -> tuple[int, int]:
        """Size and CRC-32 of a file in the archive; -1 for a stream without an end."""
        raw.seek(info.header_offset)
        raw.seek(sum(LOCAL_HEADER.unpack(raw.read(LOCAL_HEADER.size))), os.SEEK_CUR)
        stream = deflate.decompressobj(RAW_DEFLATE)
        size = crc = 0
        left = info.compress_size
        try:
            while left > 0 and (data := raw.read(min(CHUNK_BYTES, left))):
                left -= len(data)
                content = stream.decompress(data)
                crc = deflate.crc32(content, crc)
                size += len(content)
                self._report(len(content))
        except DEFLATE_ERROR:
            return -1, 0
        return (size, crc) if stream.eof and not left else (-1, 0)

    def _report(self, count: int) -> None:
        self._done_bytes += count
        self._step(self._done_bytes)


def _read_part(reading: IO[bytes]) -> bytes:
    """The next part; shorter at the end of the file only."""
    pieces, left = [], PART_BYTES
    while left and (piece := reading.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _compress(content: bytes) -> bytes:
    stream = deflate.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, RAW_DEFLATE)
    return stream.compress(content) + stream.flush(zlib.Z_FULL_FLUSH)


def _read_kept(part: Path) -> bytes | None:
    """A part of an earlier run; None if there is none, or a power failure damaged it."""
    try:
        data = part.read_bytes()
    except FileNotFoundError:
        return None
    header, content = data[: PART_HEADER.size], data[PART_HEADER.size :]
    is_whole = bool(content) and header == PART_HEADER.pack(deflate.crc32(content))
    return content if is_whole else None


def _publish(temporary: Path, path: Path) -> None:
    """Move a file to *path* without overwriting an existing file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(17, "File exists", str(path)) from None
        temporary.replace(path)
