"""Media files of messages, stored once by content hash.

A message contains a reference, `media:ab/abcd….png`, which is replaced by the file when
the message is sent to a model.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from hermes_core.atomic_files import write_atomically
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home, private_folder

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE_SCHEME: Final = "media:"

MAX_FILE_BYTES: Final = 50 * 1024 * 1024
REMOTE_PREFIX: Final = "media/"
UNKNOWN_MIME: Final = "application/octet-stream"


class StoredFile(NamedTuple):
    """A file in the store."""

    path: Path
    mime: str
    name: str = ""  # as its sender called it


class RemoteFiles(Protocol):
    """Where nodes share files."""

    def get(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""

    def add(self, name: str, content: bytes) -> None:
        """Store a file that never changes."""


class MediaStore:
    """A folder of files named by the hash of their content, and a remote copy if nodes share it."""

    def __init__(
        self, folder: Path, max_bytes: int = MAX_FILE_BYTES, remote: RemoteFiles | None = None
    ) -> None:
        self._folder = folder
        self._remote = remote
        self.max_bytes = max_bytes  # bytes; adapters check it before they download

    def keep(self, data: bytes, name: str = "", mime: str = "") -> StoredFile:
        """Store a file; the same content is stored once."""
        if len(data) > self.max_bytes:
            raise UsageError(f"the file is larger than {self.max_bytes // 1024**2} MB")
        mime_type = mime.partition(";")[0].strip() or mimetypes.guess_type(name)[0] or UNKNOWN_MIME
        digest = hashlib.sha256(data).hexdigest()
        extension = mimetypes.guess_extension(mime_type) or ""
        path = self._folder / digest[:2] / f"{digest}{extension}"
        if path.exists():
            os.utime(path)  # the oldest files are deleted first
        else:
            private_folder(path.parent)
            write_atomically(path, data)
        if self._remote is not None:
            self._remote.add(REMOTE_PREFIX + path.name, data)
        return StoredFile(path, mime_type, name)

    def local_path(self, path: Path) -> Path:
        """A stored file in this folder, fetched if it was stored on another node."""
        local = self._folder / path.name[:2] / path.name
        if local.exists() or self._remote is None:
            return local if local.exists() else path
        data = self._remote.get(REMOTE_PREFIX + path.name)
        if data is None:
            return path
        private_folder(local.parent)
        write_atomically(local, data)
        return local

    def reference(self, path: Path) -> str:
        """The reference to a stored file."""
        return REFERENCE_SCHEME + path.relative_to(self._folder).as_posix()

    def path_of(self, reference: str) -> Path:
        """The path of a reference; the file may be missing."""
        first, _, name = reference.removeprefix(REFERENCE_SCHEME).partition("/")
        if not first.isalnum() or "/" in name or not name.startswith(first):
            raise UsageError(f"{reference} refers to no kept file")
        return self._folder / first / name

    def size_of(self, reference: str) -> int:
        """Size of a stored file; 0 if it is missing."""
        try:
            return self.path_of(reference).stat().st_size
        except FileNotFoundError:
            return 0

    def as_data(self, reference: str) -> str | None:
        """A stored file as a `data:` URL; None if it is missing."""
        path = self.local_path(self.path_of(reference))
        try:
            text = base64.b64encode(path.read_bytes()).decode()
        except FileNotFoundError:
            return None
        return f"data:{mimetypes.guess_type(path.name)[0] or UNKNOWN_MIME};base64,{text}"


def of_home() -> MediaStore:
    """The media store of the home."""
    return MediaStore(hermes_home() / "media")


def is_reference(part: Any) -> bool:
    """Whether a part of a message is a reference to a stored image."""
    return isinstance(part, dict) and url_of(part).startswith(REFERENCE_SCHEME)


def url_of(part: dict[str, Any]) -> str:
    """The image URL of a part of a message, or ''."""
    image = part.get("image_url")
    return str(image.get("url") or "") if isinstance(image, dict) else ""


def embed_media(content: Any, store: MediaStore | None = None) -> Any:
    """A message's content with references replaced by the images."""
    if not isinstance(content, list) or not any(map(is_reference, content)):
        return content
    store = store or of_home()
    return [_embed_part(part, store) if is_reference(part) else part for part in content]


def _embed_part(part: dict[str, Any], store: MediaStore) -> dict[str, Any]:
    data = store.as_data(url_of(part))
    if data is None:
        return {"type": "text", "text": "[an image that no longer exists]"}
    return {**part, "image_url": {**part["image_url"], "url": data}}
