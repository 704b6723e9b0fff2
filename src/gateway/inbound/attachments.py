"""Attachments of a message in the form a model reads: images, transcripts, file paths.

A voice message that cannot be transcribed is mentioned to the model, never dropped.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_core.media_store import REFERENCE_SCHEME

if TYPE_CHECKING:
    from gateway.inbound.transcription import Transcriber
    from gateway.platforms.base import MessageEvent

log = logging.getLogger(__name__)

IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class ReadAttachments(NamedTuple):
    """The attachments of one message."""

    notes: list[str]  # lines for the model
    images: list[str]  # references to stored files


def read_attachments(event: MessageEvent, transcribe: Transcriber | None) -> ReadAttachments:
    """Make the files of a message readable for a model."""
    attachments = ReadAttachments([], [])
    for path, mime in zip(event.media_urls, event.media_types, strict=False):
        if mime in IMAGE_TYPES:
            stored = Path(path)
            attachments.images.append(f"{REFERENCE_SCHEME}{stored.parent.name}/{stored.name}")
        elif mime.startswith("audio/"):
            attachments.notes.append(_transcript(Path(path), mime, transcribe))
        else:
            attachments.notes.append(f"[Attached file: {path} ({mime})]")
    return attachments


def _transcript(path: Path, mime: str, transcribe: Transcriber | None) -> str:
    if transcribe is None:
        return f"[Attached voice message, transcription is not configured: {path} ({mime})]"
    try:
        return transcribe(path)
    except UsageError as error:
        log.warning("voice message transcription failed: %s", error)
        return f"[Attached voice message, transcription failed ({error}): {path}]"
