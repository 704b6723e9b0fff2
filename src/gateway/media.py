"""Files that come in with messages: kept once each, by what is in them."""

from __future__ import annotations

import hashlib
import mimetypes
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import write_atomically
from hermes_core.errors import UsageError
from hermes_core.paths import private_folder

if TYPE_CHECKING:
    from pathlib import Path

LARGEST: Final = 50 * 1024 * 1024
UNKNOWN: Final = "application/octet-stream"


class Kept(NamedTuple):
    """A file in the store."""

    path: Path
    mime: str


class MediaStore:
    """A folder of files named after the hash of their contents."""

    def __init__(self, folder: Path, largest: int = LARGEST) -> None:
        self._folder = folder
        self.largest = largest  # bytes; adapters ask before they fetch

    def keep(self, data: bytes, name: str = "", mime: str = "") -> Kept:
        """Keep a file; the same contents are kept once, whoever sent them and how often."""
        if len(data) > self.largest:
            raise UsageError(f"the file is larger than {self.largest // 1024**2} MB")
        known = mime.partition(";")[0].strip() or mimetypes.guess_type(name)[0] or UNKNOWN
        digest = hashlib.sha256(data).hexdigest()
        ending = mimetypes.guess_extension(known) or ""
        path = self._folder / digest[:2] / f"{digest}{ending}"
        if not path.exists():
            private_folder(path.parent)
            write_atomically(path, data)
        return Kept(path, known)
