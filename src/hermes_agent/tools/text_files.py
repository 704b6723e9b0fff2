"""Text in files: what encoding it has, what is no text, and writing it back whole."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.tools.arguments import ToolError
from hermes_core.atomic_files import sync_folder

if TYPE_CHECKING:
    from pathlib import Path

SNIFFED_BYTES = 8_192
EDITABLE_BYTES = 20_000_000
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF_8_MARK = b"\xef\xbb\xbf"
PICTURES = {
    b"\x89PNG\r\n": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"BM": "BMP image",
    b"%PDF-": "PDF document",
    b"PK\x03\x04": "ZIP archive",
    b"\x1f\x8b": "gzip archive",
    b"\x7fELF": "program",
    b"SQLite format 3": "SQLite database",
}


class TextFile(NamedTuple):
    """The text of a file; bytes that are no valid UTF-8 are kept in it as surrogates."""

    text: str
    encoding: str

    def encoded(self, text: str) -> bytes:
        """Another text in the same encoding."""
        return text.encode(self.encoding, errors="surrogateescape")


def kind_of_binary(start: bytes) -> str | None:
    """What a file is that begins like this, if it is no text."""
    if start.startswith(UTF_16_MARKS):
        return None
    is_binary = b"\0" in start
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "WebP image"
    for mark, name in PICTURES.items():
        if start.startswith(mark) and (is_binary or len(mark) > 2):
            return name
    return "binary file" if is_binary else None


def encoding_of(start: bytes) -> str:
    """The encoding of a text that begins like this; the mark of UTF-16 stays in the text."""
    if start.startswith(UTF_16_MARKS):
        return "utf-16-le" if start[:1] == b"\xff" else "utf-16-be"
    return "utf-8-sig" if start.startswith(UTF_8_MARK) else "utf-8"


def must_be_text(path: Path, start: bytes) -> None:
    """Refuse what is no text, and say what it is."""
    kind = kind_of_binary(start)
    if kind is not None:
        article = "an" if kind[0] in "aeiou" else "a"
        raise ToolError(f"{path} is {article} {kind}; this tool handles text only.")


def must_be_file(path: Path) -> os.stat_result:
    """Refuse what cannot be read to its end: devices, pipes, sockets."""
    facts = path.stat()
    if stat.S_ISDIR(facts.st_mode):
        raise ToolError(f"{path} is a folder.")
    if not stat.S_ISREG(facts.st_mode):
        raise ToolError(f"{path} is no regular file.")
    return facts


def load(path: Path) -> TextFile:
    """The whole text of a file, such that it can be written back byte for byte."""
    if must_be_file(path).st_size > EDITABLE_BYTES:
        raise ToolError(f"{path} is too large to edit; use `terminal`.")
    data = path.read_bytes()
    must_be_text(path, data[:SNIFFED_BYTES])
    encoding = encoding_of(data)
    if encoding.startswith("utf-16"):
        try:
            return TextFile(data.decode(encoding), encoding)
        except UnicodeDecodeError:
            raise ToolError(f"{path} is no valid UTF-16.") from None
    return TextFile(data.decode(encoding, errors="surrogateescape"), encoding)


def presentable(text: str) -> str:
    """A text that can be shown and stored: bytes that are no UTF-8 become question marks."""
    return text.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")


def write_whole(path: Path, data: bytes) -> bool:
    """Replace a file in one step; whether it is new.

    The permissions and, where we may, the owner stay; a new file gets what the umask
    leaves. A symbolic link stays one: the file that it points to is replaced.
    """
    target = path.resolve() if path.is_symlink() else path
    before = must_be_file(target) if target.exists() else None
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{target.name[:100]}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        _write_synced(temporary, data, before)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)
    return before is None


def _write_synced(temporary: Path, data: bytes, before: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
        file.write(data)
        if before is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
        file.flush()
        os.fsync(file.fileno())
