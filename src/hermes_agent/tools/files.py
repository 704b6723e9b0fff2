"""`read_file` and `write_file`."""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
import threading
from typing import TYPE_CHECKING, Final, Protocol

from hermes_agent.tools import real_paths
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    always_reads,
    failure,
    number,
    parameter,
    reporting_errors,
    resolve_path,
    schema,
    success,
    text,
)
from hermes_agent.tools.text_diff import unified_diff
from hermes_agent.tools.text_encoding import (
    SNIFF_BYTES,
    decode,
    displayable_text,
    kind_of_binary,
)
from hermes_core.atomic_files import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from hermes_agent.tools.base import ToolContext
    from hermes_agent.tools.text_encoding import TextFile
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_core.media_store import MediaStore

    # The file of a whole output, by the path that a result names; None for other paths.
    KeptOutputPath = Callable[[Path], Path | None]


class LimitsFiles(Protocol):
    """Knows for which file a call was allowed."""

    def real_path(self, path: Path, context: ToolContext) -> Path:
        """The real path that was reviewed before the call, without symbolic links."""


TEMPORARY = "/tmp"  # noqa: S108 - not used
MISSING_TEMPORARY = (
    "No such file: {path}. What commands write to /tmp is visible to commands only: use `terminal`."
)
MAX_EDIT_BYTES = 20_000_000


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
    return decoded(path, read(path))


def read(path: Path) -> bytes:
    """The content of a file at a real path that is small enough to be edited."""
    handle = real_paths.open_file(path)
    if stat.S_ISDIR(os.fstat(handle).st_mode):  # which `fdopen` refuses without its name
        os.close(handle)
        raise ToolError(f"{path} is a folder.")
    with os.fdopen(handle, "rb") as file:
        if require_regular_file(path, os.fstat(handle)).st_size > MAX_EDIT_BYTES:
            raise ToolError(f"{path} is too large to edit; use `terminal`.")
        return file.read()


def decoded(path: Path, data: bytes) -> TextFile:
    """The text of a file; refused if it is none."""
    require_text(path, data[:SNIFF_BYTES])
    try:
        return decode(data)
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not valid UTF-16.") from None


ANY_WRITE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
HAS_EFFECTIVE_IDS: Final = os.access in os.supports_effective_ids
READ_ONLY: Final = "{path} is read-only ({mode}); change that with `chmod` first."


def replace_file(path: Path, data: bytes) -> os.stat_result | None:
    """Replace the file at a real path in one step; returns what it was, None if it is new.

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
    return before


def _existing(path: Path, folder: int) -> os.stat_result | None:
    """The file that is replaced, which a rename would do without a right to write it."""
    try:
        facts = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    require_regular_file(path, facts)
    is_writable = os.access(path.name, os.W_OK, dir_fd=folder, effective_ids=HAS_EFFECTIVE_IDS)
    if not is_writable or not facts.st_mode & ANY_WRITE:
        raise ToolError(READ_ONLY.format(path=path, mode=stat.filemode(facts.st_mode)))
    return facts


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


def file_tools(
    limits: LimitsFiles, media: MediaStore, seen: SeenFiles, kept_output: KeptOutputPath
) -> list[Tool]:
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
            reporting_errors(FileReader(limits, media, seen, kept_output).run),
            always_reads,
        ),
        Tool(
            "write_file",
            "Create a file, or replace one that you have read; creates missing folders.",
            schema("path content", path=parameter("string"), content=parameter("string")),
            reporting_errors(lambda arguments, context: _write(limits, seen, arguments, context)),
        ),
    ]


class FileReader:
    """The tool `read_file`."""

    def __init__(
        self, limits: LimitsFiles, media: MediaStore, seen: SeenFiles, kept_output: KeptOutputPath
    ) -> None:
        self._limits = limits
        self._kept_output = kept_output
        self._media = media
        self._seen = seen

    def run(self, arguments: JsonObject, context: ToolContext) -> str:
        """Read a page of a file, an image, or the names in a folder."""
        path = self._limits.real_path(resolve_path(text(arguments, "path"), context.cwd), context)
        first = number(arguments, "offset", 1, 1, 2**53)
        limit = number(arguments, "limit", DEFAULT_LINES, 1, MAX_LINES)
        try:
            handle = real_paths.open_file(self._kept_output(path) or path)
        except FileNotFoundError:
            if path.is_relative_to(TEMPORARY) and not path.is_relative_to(context.cwd):
                raise ToolError(MISSING_TEMPORARY.format(path=path)) from None
            raise
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            return _list(path, handle)
        with os.fdopen(handle, "rb") as file:
            return self._read(path, file, first, limit)

    def _read(self, path: Path, file: BinaryIO, first: int, limit: int) -> str:
        size = require_regular_file(path, os.fstat(file.fileno())).st_size
        start = file.read(SNIFF_BYTES)
        kind = kind_of_binary(start)
        file.seek(0)
        if kind in IMAGE_TYPES:
            return _image(path, file, kind, self._media)
        require_text(path, start)
        if size > MAX_EDIT_BYTES:
            return success(**_page(_lines(file), first, limit, size))
        data = file.read()
        self._seen.note(path, data)
        content = decoded(path, data)
        shown = displayable_text(content.text)
        lines = iter(shown.removesuffix("\n").split("\n") if shown else ())
        facts = _page(lines, first, limit, size)
        if content.name:
            facts["encoding"] = content.name
        return success(**facts)


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


def _lines(file: BinaryIO) -> Iterator[str]:
    """The lines of a large file one by one, without their ends, in little memory."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    while data := file.read(1 << 16):
        *whole, rest = (rest + decoder.decode(data)).split("\n")
        yield from whole
        if len(rest) > 1 << 20:
            rest = rest[: LINE_CHARACTERS + 1] + rest[-1:]
    rest += decoder.decode(b"", True)
    if rest:
        yield rest


def _page(lines: Iterator[str], first: int, limit: int, size: int) -> dict[str, JsonData]:
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
    return facts


def _numbered(line_number: int, line: str) -> str:
    line = line.removesuffix("\r").removeprefix("\ufeff")
    if len(line) > LINE_CHARACTERS:
        line = f"{line[:LINE_CHARACTERS]} [… line cut …]"
    return f"{line_number}|{line}"


def _list(path: Path, handle: int) -> str:
    try:
        with os.scandir(handle) as found:
            entries = sorted(found, key=lambda entry: entry.name)
            names = [f"{entry.name}/" if _is_folder(entry) else entry.name for entry in entries]
    finally:
        os.close(handle)
    facts: dict[str, JsonData] = {
        "folder": str(path),
        "entries": [displayable_text(name) for name in names[:MAX_LISTED_ENTRIES]],
    }
    if len(names) > MAX_LISTED_ENTRIES:
        facts["not_listed"] = len(names) - MAX_LISTED_ENTRIES
    return success(**facts)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a symbolic link that leads to itself
        return False


NEVER_READ: Final = "{path} exists and was not read. Read it, or repeat this call to replace it."
CHANGED_SINCE: Final = "{path} has changed since it was read. Repeat this call to replace it."
HARD_LINKS: Final = "The file had other names (hard links); these keep the old content."
MAX_SEEN_FILES: Final = 200
MAX_KEPT_BYTES: Final = 200_000  # of a file whose earlier content is compared
MAX_STALE_DIFF: Final = 4_000  # characters


class SeenFiles:
    """The files of a conversation as its agent has last seen them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[Path, tuple[int, bytes]] = {}  # the hash of a content, and a short one

    def note(self, path: Path, data: bytes) -> None:
        """Note what the agent has read at a real path, or written there."""
        with self._lock:
            self._seen.pop(path, None)
            self._seen[path] = hash(data), data if len(data) <= MAX_KEPT_BYTES else b""
            if len(self._seen) > MAX_SEEN_FILES:
                self._seen.pop(next(iter(self._seen)))

    def note_edit(self, path: Path, before: bytes, after: bytes) -> None:
        """Note what the agent has made of a content; the rest of it may be unknown to it."""
        with self._lock:
            known = self._seen.get(path)
        if known is not None and known[0] == hash(before):
            self.note(path, after)

    def refusal(self, path: Path, data: bytes) -> str:
        """The answer to replacing a content that the agent has not seen, once; otherwise empty."""
        with self._lock:
            known = self._seen.get(path)
        if known is not None and known[0] == hash(data):
            return ""
        self.note(path, data)
        if known is None:
            return failure(NEVER_READ.format(path=path))
        before, after = known[1].decode(errors="replace"), data.decode(errors="replace")
        diff = unified_diff(before, after, path.name, MAX_STALE_DIFF) if before else ""
        return failure(CHANGED_SINCE.format(path=path), **({"changes": diff} if diff else {}))


def _write(
    limits: LimitsFiles, seen: SeenFiles, arguments: JsonObject, context: ToolContext
) -> str:
    path = limits.real_path(resolve_path(text(arguments, "path"), context.cwd), context)
    content = text(arguments, "content")
    try:
        before = read(path)
    except FileNotFoundError:
        data, encoding = content.encode(), ""
    else:
        refusal = seen.refusal(path, before) if before else ""
        if refusal:
            return refusal
        data, encoding = _in_style_of(before, content)
    context.before_edit(path)
    replaced = replace_file(path, data)
    seen.note(path, data)
    facts: dict[str, JsonData] = {"path": str(path), "bytes": len(data), "new": replaced is None}
    return success(**facts, **({"encoding": encoding} if encoding else {}), **notes_of(replaced))


def _in_style_of(before: bytes, content: str) -> tuple[bytes, str]:
    """The new content of a file with the line ends and the encoding of the old one.

    Returns the name of the encoding, too, if it is not one of Unicode.
    """
    try:
        old = decode(before)
    except UnicodeDecodeError:
        return content.encode(), ""
    if kind_of_binary(before[:SNIFF_BYTES]) is not None:
        return content.encode(), ""
    content = old.restyled(content)
    try:
        return old.encoded(content), old.name
    except ToolError:
        return content.encode(), f"UTF-8; it was {old.name}"


def notes_of(replaced: os.stat_result | None) -> dict[str, JsonData]:
    """What to say about the file that was replaced."""
    return {"note": HARD_LINKS} if replaced is not None and replaced.st_nlink > 1 else {}
