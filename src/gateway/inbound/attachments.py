"""Attachments of a message in the form a model reads: images, transcripts, file paths.

A voice message that cannot be transcribed is mentioned to the model, never dropped.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import write_atomically
from hermes_core.errors import UsageError
from hermes_core.media_store import REFERENCE_SCHEME
from hermes_core.paths import private_folder

if TYPE_CHECKING:
    from gateway.inbound.transcription import Transcriber
    from gateway.platforms.base import MessageEvent

log = logging.getLogger(__name__)

ATTACHMENT_FOLDER: Final = "attachments"  # in the workspace
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
        if mime in IMAGE_TYPES:
            stored = Path(path)
            attachments.images.append(f"{REFERENCE_SCHEME}{stored.parent.name}/{stored.name}")
        elif mime.startswith("audio/"):
            attachments.notes.append(_transcript(Path(path), mime, transcribe))
        else:
            shown = path if workspace is None else _copy(Path(path), workspace)
            attachments.notes.append(f"[Attached file: {shown} ({mime})]")
    return attachments


def _copy(stored: Path, workspace: Path) -> str:
    """Copy a stored file into a workspace; its path there. The name is a hash of the content."""
    target = workspace / ATTACHMENT_FOLDER / stored.name
    try:
        if not target.exists():
            private_folder(target.parent)
            write_atomically(target, stored.read_bytes())
    except OSError as error:
        log.warning("attachment not copied to %s: %s", target.parent, error)
    return f"{ATTACHMENT_FOLDER}/{stored.name}"


def _transcript(path: Path, mime: str, transcribe: Transcriber | None) -> str:
    if transcribe is None:
        return f"[Attached voice message, transcription is not configured: {path} ({mime})]"
    try:
        return transcribe(path)
    except UsageError as error:
        log.warning("voice message transcription failed: %s", error)
        return f"[Attached voice message, transcription failed ({error}): {path}]"
