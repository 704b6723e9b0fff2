"""Attachments of a message in the form a model reads: images, transcripts, file paths.

A voice message that cannot be transcribed is mentioned to the model, never dropped.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_core.media_store import REFERENCE_SCHEME
from hermes_core.paths import FILE_MODE, FOLDER_MODE, workspaces_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.inbound.transcription import Transcriber
    from gateway.platforms.base import MessageEvent

log = logging.getLogger(__name__)

ATTACHMENT_FOLDER: Final = "attachments"  # in a workspace of Hermes
CHOSEN_ATTACHMENT_FOLDER: Final = ".hermes-attachments"  # in a folder that the owner has chosen
GIT_IGNORE: Final = ".gitignore"
OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
CREATE_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
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
    for path, mime in zip(event.media_urls, event.media_types, strict=False):
        stored = Path(path)
        if mime in IMAGE_TYPES:
            attachments.images.append(f"{REFERENCE_SCHEME}{stored.parent.name}/{stored.name}")
        elif mime.startswith("audio/"):
            attachments.notes.append(_transcript(stored, mime, transcribe, workspace))
        else:
            attachments.notes.append(f"[Attached file: {_copy(stored, workspace)} ({mime})]")
    return attachments


def _copy(stored: Path, workspace: Path | None) -> str:
    """Copy a stored file into a workspace; its path there. The name is a hash of the content.

    People write to their workspaces: no symbolic link there is followed.
    """
    if workspace is None:  # the tools of this conversation open no files
        return stored.name
    is_chosen = not workspace.is_relative_to(workspaces_path())
    folder = CHOSEN_ATTACHMENT_FOLDER if is_chosen else ATTACHMENT_FOLDER
    try:
        with _opened_folder(workspace, folder) as handle:
            if is_chosen:
                _write_file(handle, GIT_IGNORE, b"*\n")
            _write_file(handle, stored.name, stored.read_bytes())
    except OSError as error:
        log.warning("attachment not copied to %s: %s", workspace / folder, error)
        return f"{stored.name}, not copied to the working folder: {error.strerror}"
    return f"{folder}/{stored.name}"


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


def _write_file(folder: int, name: str, data: bytes) -> None:
    """Write a file; a link of this name is replaced."""
    temporary = f".{os.urandom(8).hex()}.tmp"
    with os.fdopen(os.open(temporary, CREATE_FILE, FILE_MODE, dir_fd=folder), "wb") as file:
        file.write(data)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _transcript(
    path: Path, mime: str, transcribe: Transcriber | None, workspace: Path | None
) -> str:
    reason = "transcription is not configured"
    if transcribe is not None:
        try:
            return transcribe(path)
        except UsageError as error:
            log.warning("voice message transcription failed: %s", error)
            reason = f"transcription failed ({error})"
    return f"[Attached voice message, {reason}: {_copy(path, workspace)} ({mime})]"
