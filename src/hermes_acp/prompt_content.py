"""The content of a prompt: text, images, embedded resources and links to them."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from acp import RequestError
from hermes_conversation.attachments import IMAGE_TYPES
from tui_gateway.frames import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from acp.schema import AudioContentBlock

    PromptBlock = (
        TextContentBlock
        | ImageContentBlock
        | AudioContentBlock
        | ResourceContentBlock
        | EmbeddedResourceContentBlock
    )

MAX_TEXT_BYTES: Final = 8_000_000
MAX_ENCODED_BYTES: Final = MAX_FRAME_BYTES - 100_000  # with JSON escapes, next to other fields
NO_TEXT: Final = "Please look at the attached image."
INVALID_PARAMS: Final = -32602


class PromptImage(NamedTuple):
    """An image of a prompt."""

    suffix: str
    data: bytes


class PromptContent(NamedTuple):
    """The text for the model, and its images."""

    text: str
    images: list[PromptImage]


def parse_prompt(blocks: Sequence[PromptBlock], cwd: Path) -> PromptContent:
    """The content of the blocks of a prompt; RequestError if one cannot be used."""
    texts: list[str] = []
    images: list[PromptImage] = []
    for block in blocks:
        if isinstance(block, TextContentBlock):
            texts.append(block.text)
        elif isinstance(block, ImageContentBlock):
            images.append(_image(block.data, block.mime_type))
        elif isinstance(block, ResourceContentBlock):
            texts.append(_link(block, cwd))
        elif isinstance(block, EmbeddedResourceContentBlock):
            _add_resource(block, cwd, texts, images)
        else:
            raise invalid("Audio cannot be used in a prompt.")
    text = "".join(texts).strip()
    if not text and not images:
        raise invalid("The prompt is empty.")
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_TEXT_BYTES or len(json.dumps(text)) > MAX_ENCODED_BYTES:
        limit = f"{MAX_TEXT_BYTES:,} bytes, or fewer with many special characters"
        raise invalid(f"The prompt is too large ({limit}). Link large files.")
    return PromptContent(text or NO_TEXT, images)


@contextlib.contextmanager
def attached_files(images: list[PromptImage]) -> Iterator[list[str]]:
    """The images as files for the daemon, in a private folder that is removed afterwards."""
    if not images:
        yield []
        return
    with TemporaryDirectory(prefix="hermes-acp-") as folder:
        paths: list[str] = []
        for number, image in enumerate(images, 1):
            path = Path(folder) / f"image-{number}.{image.suffix}"
            path.write_bytes(image.data)
            paths.append(str(path))
        yield paths


def _image(data: str, mime_type: str) -> PromptImage:
    if mime_type not in IMAGE_TYPES:
        raise invalid(f"{mime_type} is not a supported image type (PNG, JPEG, GIF or WebP).")
    try:
        return PromptImage(mime_type.partition("/")[2], base64.b64decode(data, validate=True))
    except binascii.Error as error:
        raise invalid("The data of an image is not valid Base64.") from error


def _link(block: ResourceContentBlock, cwd: Path) -> str:
    """A link as the model reads it: the path of a file, else the URI."""
    name = shown_uri(block.uri, cwd)
    title = block.title or block.name
    return f"`{name}`" if title in {name, Path(name).name} else f"{title} (`{name}`)"


def _add_resource(
    block: EmbeddedResourceContentBlock, cwd: Path, texts: list[str], images: list[PromptImage]
) -> None:
    resource = block.resource
    name = shown_uri(resource.uri, cwd)
    if isinstance(resource, BlobResourceContents):
        if resource.mime_type not in IMAGE_TYPES:
            raise invalid(f"{name} is neither text nor a supported image.")
        images.append(_image(resource.blob, resource.mime_type or ""))
        texts.append(f"`{name}`")
        return
    fence = _fence(resource.text)
    texts.append(f"\n\n{name}:\n{fence}\n{resource.text.rstrip()}\n{fence}\n")


def shown_uri(uri: str, cwd: Path) -> str:
    """The path of a `file:` URI, relative to the working folder where it is in it."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise invalid(f"{uri!r} is not a URI.") from None
    if parts.scheme != "file":
        return uri
    path = Path(unquote(parts.path))
    shown = str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
    lines = parts.fragment  # of a selection, such as L10:20
    return f"{shown}#{lines}" if lines else shown


def _fence(text: str) -> str:
    """Backquotes that do not occur in *text*."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


def invalid(message: str) -> RequestError:
    """The error for parameters that cannot be used."""
    return RequestError(INVALID_PARAMS, message)
