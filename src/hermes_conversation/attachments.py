"""Pictures attached to prompts."""

from __future__ import annotations

import base64
import mimetypes
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core import media_store
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_IMAGE_BYTES: Final = 25 * 1024 * 1024
DATA_URL: Final = re.compile(r"data:(?P<kind>[\w/+.-]+);base64,(?P<data>.+)", re.DOTALL)
IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Picture(NamedTuple):
    """A picture in a format that models accept."""

    name: str
    kind: str
    data: bytes

    def part(self) -> dict[str, Any]:
        """The picture as a part of a message."""
        text = base64.b64encode(self.data).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{self.kind};base64,{text}"}}


def read(path: Path) -> Picture:
    """Read a picture from a file; raise UsageError if it is not usable."""
    kind = mimetypes.guess_type(path.name)[0] or ""
    if kind not in IMAGE_TYPES:
        raise UsageError(f"{path} is not a supported image (PNG, JPEG, GIF or WebP).")
    try:
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise UsageError(f"{path} is larger than {MAX_IMAGE_BYTES // 1024 // 1024} MB.")
        return Picture(path.name, kind, path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def with_pictures(
    text: str, pictures: list[Picture], stored: Sequence[str] = ()
) -> str | list[dict[str, Any]]:
    """The content of a message with its pictures and references to *stored* ones."""
    if not pictures and not stored:
        return text
    parts = [{"type": "image_url", "image_url": {"url": item}} for item in stored]
    return [{"type": "text", "text": text}, *(picture.part() for picture in pictures), *parts]


def text_of(content: Any) -> str:
    """The text of a message, without its pictures."""
    if not isinstance(content, list):
        return str(content or "")
    return "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")


def pictures_of(content: Any) -> list[Picture]:
    """The pictures of a message whose data is available."""
    results: list[Picture] = []
    for part in content if isinstance(content, list) else ():
        url = (part.get("image_url") or {}).get("url", "") if isinstance(part, dict) else ""
        if str(url).startswith(media_store.REFERENCE_SCHEME):
            url = media_store.of_home().as_data(str(url)) or ""
        match = DATA_URL.fullmatch(str(url))
        if match:
            results.append(Picture("picture", match["kind"], base64.b64decode(match["data"])))
    return results
