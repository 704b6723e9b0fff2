"""Files that come in with messages: kept once each, by what is in them.

A message holds a reference, `media:ab/abcd….png`; what it stands for is put in its place
when a model reads the message.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.atomic_files import write_atomically
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home, private_folder

if TYPE_CHECKING:
    from pathlib import Path

SCHEME: Final = "media:"

MAX_FILE_BYTES: Final = 50 * 1024 * 1024
UNKNOWN_MIME: Final = "application/octet-stream"


class StoredFile(NamedTuple):
    """A file in the store."""

    path: Path
    mime: str


class MediaStore:
    """A folder of files named after the hash of their contents."""

    def __init__(self, folder: Path, largest: int = MAX_FILE_BYTES) -> None:
        self._folder = folder
        self.largest = largest  # bytes; adapters ask before they fetch

    def keep(self, data: bytes, name: str = "", mime: str = "") -> StoredFile:
        """Keep a file; the same contents are kept once, whoever sent them and how often."""
        if len(data) > self.largest:
            raise UsageError(f"the file is larger than {self.largest // 1024**2} MB")
        known = mime.partition(";")[0].strip() or mimetypes.guess_type(name)[0] or UNKNOWN_MIME
        digest = hashlib.sha256(data).hexdigest()
        ending = mimetypes.guess_extension(known) or ""
        path = self._folder / digest[:2] / f"{digest}{ending}"
        if not path.exists():
            private_folder(path.parent)
            write_atomically(path, data)
        return StoredFile(path, known)

    def reference(self, path: Path) -> str:
        """What a message holds of a kept file."""
        return SCHEME + path.relative_to(self._folder).as_posix()

    def path_of(self, reference: str) -> Path:
        """The file that a message refers to; it may be gone."""
        first, _, name = reference.removeprefix(SCHEME).partition("/")
        if not first.isalnum() or "/" in name or not name.startswith(first):
            raise UsageError(f"{reference} refers to no kept file")
        return self._folder / first / name

    def size_of(self, reference: str) -> int:
        """How large a kept file is; 0 when it is gone."""
        try:
            return self.path_of(reference).stat().st_size
        except FileNotFoundError:
            return 0

    def as_data(self, reference: str) -> str | None:
        """A kept file as a `data:` address; None when it is gone."""
        path = self.path_of(reference)
        try:
            text = base64.b64encode(path.read_bytes()).decode()
        except FileNotFoundError:
            return None
        return f"data:{mimetypes.guess_type(path.name)[0] or UNKNOWN_MIME};base64,{text}"


def of_home() -> MediaStore:
    """The files of this Hermes folder."""
    return MediaStore(hermes_home() / "media")


def is_reference(part: Any) -> bool:
    """Whether a part of a message refers to a kept picture."""
    return isinstance(part, dict) and url_of(part).startswith(SCHEME)


def url_of(part: dict[str, Any]) -> str:
    """The address in a part of a message; empty when it has none."""
    image = part.get("image_url")
    return str(image.get("url") or "") if isinstance(image, dict) else ""


def embedded(content: Any, store: MediaStore | None = None) -> Any:
    """A message's content with the pictures themselves in the place of references."""
    if not isinstance(content, list) or not any(map(is_reference, content)):
        return content
    store = store or of_home()
    return [_embedded(part, store) if is_reference(part) else part for part in content]


def _embedded(part: dict[str, Any], store: MediaStore) -> dict[str, Any]:
    data = store.as_data(url_of(part))
    if data is None:
        return {"type": "text", "text": "[a picture that is no longer there]"}
    return {**part, "image_url": {**part["image_url"], "url": data}}
