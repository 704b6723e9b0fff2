"""`read_file` and `write_file`."""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hermes_agent.tools import real_paths
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    always_reads,
    number,
    parameter,
    reporting_errors,
    resolve_path,
    schema,
    success,
    text,
)
from hermes_core.atomic_files import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from hermes_agent.tools.base import ToolContext
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_core.media_store import MediaStore


class LimitsFiles(Protocol):
    """Knows for which file a call was allowed."""

    def real_path(self, path: Path, context: ToolContext) -> Path:
        """The real path that was reviewed before the call, without symbolic links."""


TEMPORARY = "/tmp"  # noqa: S108 - not used
MISSING_TEMPORARY = (
    "No such file: {path}. What commands write to /tmp is visible to commands only: use `terminal`."
)
SNIFF_BYTES = 8_192
MAX_EDIT_BYTES = 20_000_000
UTF_16_BOMS = (b"\xff\xfe", b"\xfe\xff")
UTF_8_BOM = b"\xef\xbb\xbf"
MAGIC_BYTES = {
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
    """The text of a file; bytes that are not valid UTF-8 are kept in it as surrogates."""

    text: str
    encoding: str

    def encoded(self, text: str) -> bytes:
        """Another text in the same encoding."""
        return text.encode(self.encoding, errors="surrogateescape")


def kind_of_binary(start: bytes) -> str | None:
    """The kind of a file that begins like this, if it is not text."""
    if start.startswith(UTF_16_BOMS):
        return None
    is_binary = b"\0" in start
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "WebP image"
    for mark, name in MAGIC_BYTES.items():
        if start.startswith(mark) and (is_binary or len(mark) > 2):
            return name
    return "binary file" if is_binary else None


def encoding_of(start: bytes) -> str:
    """The encoding of a text that begins like this; the mark of UTF-16 stays in the text."""
    if start.startswith(UTF_16_BOMS):
        return "utf-16-le" if start[:1] == b"\xff" else "utf-16-be"
    return "utf-8-sig" if start.startswith(UTF_8_BOM) else "utf-8"


def require_text(path: Path, start: bytes) -> None:
    """Refuse what is not text; the error names its kind."""
    kind = kind_of_binary(start)
    if kind is not None:
        article = "an" if kind[0] in "aeiou" else "a"
        raise ToolError(f"{path} is {article} {kind}; this tool handles text only.")


def require_regular_file(path: Path, facts: os.stat_result) -> os.stat_result:
    """Refuse what cannot be read to its end: devices, pipes, sockets."""
    if stat.S_ISDIR(facts.st_mode):
        raise ToolError(f"{path} is a folder.")
    if not stat.S_ISREG(facts.st_mode):
        raise ToolError(f"{path} is not a regular file.")
    return facts


def load(path: Path) -> TextFile:
    """The whole text at a real path, such that it can be written back byte for byte."""
    with os.fdopen(real_paths.open_file(path), "rb") as file:
        if require_regular_file(path, os.fstat(file.fileno())).st_size > MAX_EDIT_BYTES:
            raise ToolError(f"{path} is too large to edit; use `terminal`.")
        data = file.read()
    require_text(path, data[:SNIFF_BYTES])
    encoding = encoding_of(data)
    if encoding.startswith("utf-16"):
        try:
            return TextFile(data.decode(encoding), encoding)
        except UnicodeDecodeError:
            raise ToolError(f"{path} is not valid UTF-16.") from None
    return TextFile(data.decode(encoding, errors="surrogateescape"), encoding)


def displayable_text(text: str) -> str:
    """A text that can be shown and stored: bytes that are not UTF-8 become question marks."""
    return text.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")


def replace_file(path: Path, data: bytes) -> bool:
    """Replace the file at a real path in one step; whether it is new.

    The permissions and, where we may, the owner stay; a new file gets what the umask leaves.
    """
    with real_paths.open_parent(path, creates=True) as folder:
        before = _existing(path, folder)
        temporary = f".{path.name[:100]}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
        try:
            _write_synced(temporary, folder, data, before)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
    sync_folder(path.parent)
    return before is None


def _existing(path: Path, folder: int) -> os.stat_result | None:
    try:
        facts = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return require_regular_file(path, facts)


def _write_synced(temporary: str, folder: int, data: bytes, before: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
        file.write(data)
        if before is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
        file.flush()
        os.fsync(file.fileno())


DEFAULT_LINES = 500
MAX_LINES = 2_000
LINE_CHARACTERS = 2_000
PAGE_CHARACTERS = 60_000
MAX_COUNTED_BYTES = 50_000_000
MAX_LISTED_ENTRIES = 300
MAX_IMAGE_BYTES = 3_700_000  # 5 MB in a request, the limit of some providers
IMAGE_TAIL_BYTES = 1_000  # programs append metadata after the end
IMAGE_TYPES = {  # the MIME type, and what the end of a complete file contains
    "PNG image": ("image/png", b"IEND"),
    "JPEG image": ("image/jpeg", b"\xff\xd9"),
    "GIF image": ("image/gif", b";"),
    "WebP image": ("image/webp", b""),
}


def file_tools(limits: LimitsFiles, media: MediaStore) -> list[Tool]:
    """Reading and writing whole files; *media* keeps the images that are read."""
    return [
        Tool(
            "read_file",
            "Read a text file (lines are `N|text`), view an image, or list a folder.",
            schema(
                "path",
                path=parameter("string"),
                offset=parameter("integer", "first line, from 1"),
                limit=parameter("integer", "lines, default 500"),
            ),
            reporting_errors(lambda arguments, context: _read(limits, media, arguments, context)),
            always_reads,
        ),
        Tool(
            "write_file",
            "Create a file or replace its content; creates missing folders.",
            schema("path content", path=parameter("string"), content=parameter("string")),
            reporting_errors(lambda arguments, context: _write(limits, arguments, context)),
        ),
    ]


def _read(
    limits: LimitsFiles, media: MediaStore, arguments: JsonObject, context: ToolContext
) -> str:
    path = limits.real_path(resolve_path(text(arguments, "path"), context.cwd), context)
    first = number(arguments, "offset", 1, 1, 2**53)
    limit = number(arguments, "limit", DEFAULT_LINES, 1, MAX_LINES)
    try:
        handle = real_paths.open_file(path)
    except FileNotFoundError:
        if path.is_relative_to(TEMPORARY) and not path.is_relative_to(context.cwd):
            raise ToolError(MISSING_TEMPORARY.format(path=path)) from None
        raise
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        return _list(path, handle)
    with os.fdopen(handle, "rb") as file:
        size = require_regular_file(path, os.fstat(handle)).st_size
        start = file.read(SNIFF_BYTES)
        kind = kind_of_binary(start)
        file.seek(0)
        if kind in IMAGE_TYPES:
            return _image(path, file, kind, media)
        require_text(path, start)
        return _page(_lines(file, encoding_of(start)), first, limit, size)


def _image(path: Path, file: BinaryIO, kind: str, media: MediaStore) -> str:
    """Keep an image and refer to it; the model gets it with the next request.

    A damaged one is refused: a provider would reject every later request of the conversation.
    """
    data = file.read(MAX_IMAGE_BYTES + 1)
    if len(data) > MAX_IMAGE_BYTES:
        limit = MAX_IMAGE_BYTES // 1_000_000
        raise ToolError(f"{path} is an image of more than {limit} MB; make it smaller first.")
    mime, ending = IMAGE_TYPES[kind]
    if ending not in data[-IMAGE_TAIL_BYTES:]:
        raise ToolError(f"{path} is a damaged {kind}: its end is missing.")
    stored = media.keep(data, path.name, mime)
    return success(image=media.reference(stored.path), type=mime, bytes=len(data))


def _lines(file: BinaryIO, encoding: str) -> Iterator[str]:
    """Its lines one by one, without their ends; memory stays small whatever the file holds."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    rest = ""
    while data := file.read(1 << 16):
        *whole, rest = (rest + decoder.decode(data)).split("\n")
        yield from whole
        if len(rest) > 1 << 20:
            rest = rest[: LINE_CHARACTERS + 1] + rest[-1:]
    rest += decoder.decode(b"", True)
    if rest:
        yield rest


def _page(lines: Iterator[str], first: int, limit: int, size: int) -> str:
    shown: list[str] = []
    total = length = 0
    more = False
    for total, line in enumerate(lines, 1):
        if total < first:
            continue
        if len(shown) >= limit or length > PAGE_CHARACTERS:
            more = True
            if size > MAX_COUNTED_BYTES:
                break
            continue
        shown.append(_numbered(total, line))
        length += len(shown[-1])
    if total and not shown:
        raise ToolError(f"The file has {total} lines only.")
    facts: dict[str, JsonData] = {"content": "\n".join(shown), "lines": total}
    if more:
        facts["next_offset"] = first + len(shown)
        if size > MAX_COUNTED_BYTES:
            facts["lines"] = f"more than {total}"
    return success(**facts)


def _numbered(line_number: int, line: str) -> str:
    line = line.removesuffix("\r").removeprefix("\ufeff")
    if len(line) > LINE_CHARACTERS:
        line = f"{line[:LINE_CHARACTERS]} [… line cut …]"
    return f"{line_number}|{line}"


def _list(path: Path, handle: int) -> str:
    try:
        with os.scandir(handle) as found:
            entries = sorted(found, key=lambda entry: entry.name)
            names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    finally:
        os.close(handle)
    facts: dict[str, JsonData] = {
        "folder": str(path),
        "entries": [displayable_text(name) for name in names[:MAX_LISTED_ENTRIES]],
    }
    if len(names) > MAX_LISTED_ENTRIES:
        facts["not_listed"] = len(names) - MAX_LISTED_ENTRIES
    return success(**facts)


def _write(limits: LimitsFiles, arguments: JsonObject, context: ToolContext) -> str:
    path = limits.real_path(resolve_path(text(arguments, "path"), context.cwd), context)
    data = text(arguments, "content").encode()
    is_new = replace_file(path, data)
    return success(path=str(path), bytes=len(data), new=is_new)
