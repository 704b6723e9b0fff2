"""Attachments of a message in the form a model reads: images, transcripts, file paths.

A voice message that cannot be transcribed is mentioned to the model, never dropped.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import logging
import os
import stat
import unicodedata
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.inbound.prompt_format import INVISIBLE_CATEGORIES
from hermes_core.errors import UsageError
from hermes_core.media_store import REFERENCE_SCHEME, StoredFile
from hermes_core.paths import FILE_MODE, FOLDER_MODE, workspaces_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.platforms.base import MessageEvent
    from hermes_conversation.transcription import Transcriber

log = logging.getLogger(__name__)

ATTACHMENT_FOLDER: Final = "attachments"  # in a workspace of Hermes
CHOSEN_ATTACHMENT_FOLDER: Final = ".hermes-attachments"  # in a folder that the owner has chosen
GIT_IGNORE: Final = ".gitignore"
OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
READ_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_NAME_CHARS: Final = 80
MAX_EXTENSION_CHARS: Final = 10
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class ReadAttachments(NamedTuple):
    """The attachments of one message."""

    notes: list[str]  # lines for the model
    images: list[str]  # references to stored files


def read_attachments(
    event: MessageEvent, transcribe: Transcriber | None, workspace: Path | None = None
) -> ReadAttachments:
    """Make the files of a message readable for a model; for its tools by a copy in *workspace*."""
    attachments = ReadAttachments([], [])
    for file in _files_of(event):
        if file.mime in IMAGE_TYPES:
            parent, name = file.path.parent.name, file.path.name
            attachments.images.append(f"{REFERENCE_SCHEME}{parent}/{name}")
            if file.name:
                attachments.notes.append(f"[Attached image: {file.name}]")
        elif file.mime.startswith("audio/"):
            attachments.notes.append(_transcript(file, transcribe, workspace))
        else:
            attachments.notes.append(f"[Attached file: {_copy(file, workspace)} ({file.mime})]")
    return attachments


def _files_of(event: MessageEvent) -> Iterator[StoredFile]:
    """The stored files of a message, with names that are safe in a prompt and in a folder."""
    names = itertools.chain(event.media_names, itertools.repeat(""))
    for path, mime, name in zip(event.media_urls, event.media_types, names, strict=False):
        yield StoredFile(Path(path), mime, safe_name(name))


def safe_name(name: str) -> str:
    """A file name without folders, invisible characters, brackets and leading dots."""
    last = name.replace("\\", "/").rpartition("/")[2]
    visible = "".join(
        " " if unicodedata.category(item) in INVISIBLE_CATEGORIES or item in "[]" else item
        for item in last
    )
    stem, dot, extension = " ".join(visible.split()).lstrip(". ").rpartition(".")
    if not dot:
        return extension[:MAX_NAME_CHARS]
    return f"{stem[:MAX_NAME_CHARS]}.{extension[:MAX_EXTENSION_CHARS]}"


def _copy(file: StoredFile, workspace: Path | None) -> str:
    """Copy a stored file into a workspace; its path there.

    People write to their workspaces: no symbolic link there is followed.
    """
    stored, name = file.path, file.name or file.path.name
    if workspace is None:  # the tools of this conversation open no files
        return name
    is_chosen = not workspace.is_relative_to(workspaces_path())
    folder = CHOSEN_ATTACHMENT_FOLDER if is_chosen else ATTACHMENT_FOLDER
    try:
        with _opened_folder(workspace, folder) as handle:
            if is_chosen:
                _write_file(handle, GIT_IGNORE, b"*\n")
            name = _write_new(handle, name, stored.read_bytes())
    except OSError as error:
        log.warning("attachment not copied to %s: %s", workspace / folder, error)
        return f"{name}, not copied to the working folder: {error.strerror}"
    return f"{folder}/{name}"


@contextlib.contextmanager
def _opened_folder(workspace: Path, name: str) -> Iterator[int]:
    """A folder in a workspace, created if it is missing; OSError if it is a link."""
    parent = os.open(workspace, OPEN_FOLDER)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, FOLDER_MODE, dir_fd=parent)
        handle = os.open(name, OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        yield handle
    finally:
        os.close(handle)


def _write_new(folder: int, name: str, data: bytes) -> str:
    """Write a file unless it is there; its name, with a number if another file has that name."""
    path = PurePath(name)
    numbered = (f"{path.stem}-{number}{path.suffix}" for number in itertools.count(2))
    for candidate in itertools.chain([name], numbered):
        try:
            if _has_content(folder, candidate, data):
                return candidate
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ELOOP}:
                raise
            _write_file(folder, candidate, data)
            return candidate
    raise AssertionError("unreachable: the numbers do not end")


def _has_content(folder: int, name: str, data: bytes) -> bool:
    """Whether a file has this content; OSError if there is none or it is a link."""
    handle = os.open(name, READ_FILE, dir_fd=folder)
    try:
        facts = os.fstat(handle)
        is_file = stat.S_ISREG(facts.st_mode) and facts.st_size == len(data)
        with os.fdopen(os.dup(handle), "rb") if is_file else io.BytesIO() as file:
            return is_file and file.read() == data
    finally:
        os.close(handle)


def _write_file(folder: int, name: str, data: bytes) -> None:
    """Write a file; a link of this name is replaced."""
    temporary = f".{os.urandom(8).hex()}.tmp"
    with os.fdopen(os.open(temporary, CREATE_FILE, FILE_MODE, dir_fd=folder), "wb") as file:
        file.write(data)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _transcript(file: StoredFile, transcribe: Transcriber | None, workspace: Path | None) -> str:
    reason = "transcription is not configured"
    if transcribe is not None:
        try:
            return transcribe(file.path)
        except UsageError as error:
            log.warning("voice message transcription failed: %s", error)
            reason = f"transcription failed ({error})"
    return f"[Attached voice message, {reason}: {_copy(file, workspace)} ({file.mime})]"
