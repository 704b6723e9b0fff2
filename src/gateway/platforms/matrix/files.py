"""Files of messages: download and upload, encrypted in encrypted rooms."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlparse

from aiohttp import ClientError
from nio import Api, EncryptionError  # type: ignore[import-untyped] # it has no types
from nio.crypto import (  # type: ignore[import-untyped]
    decrypt_attachment,
    encrypt_attachment,
)

from gateway import config_values
from gateway.platforms import incoming_files
from gateway.platforms.matrix import results
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.platforms.matrix.client import MatrixClient
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_core.media_store import MediaStore, StoredFile

log = logging.getLogger(__name__)

DOWNLOAD_TIMEOUT_SECONDS: Final = 120.0
DEFAULT_MIME: Final = "application/octet-stream"
UNNAMED: Final = "file"


class MatrixFile(NamedTuple):
    """The file of a message."""

    url: str
    name: str
    mime: str
    size: int
    keys: JsonObject  # that decrypt it; empty if it is not encrypted


class UploadedFile(NamedTuple):
    """An uploaded file, as an event refers to it."""

    answer: Any
    mime: str
    size: int
    keys: dict[str, JsonData] | None  # None if it is not encrypted

    def reference(self) -> dict[str, JsonData]:
        """The field of the event content with the URL."""
        url = str(self.answer.content_uri)
        return {"url": url} if self.keys is None else {"file": {**self.keys, "url": url}}


def file_in(content: JsonObject) -> MatrixFile:
    """The file of a message."""
    info = config_values.mapping(content.get("info"))
    encrypted = config_values.mapping(content.get("file"))
    name = config_values.text(content.get("filename")) or config_values.text(content.get("body"))
    return MatrixFile(
        config_values.text(encrypted.get("url") or content.get("url")),
        name or UNNAMED,
        config_values.text(info.get("mimetype")),
        config_values.number(info.get("size"), 0),
        encrypted,
    )


async def store_file(
    client: MatrixClient, store: MediaStore, file: MatrixFile
) -> StoredFile | None:
    """Download and store a file; None if that fails."""
    try:
        data = await _download(client, file, store.max_bytes)
        if file.keys:
            data = await asyncio.to_thread(_decrypt, data, file.keys)
        return await asyncio.to_thread(store.keep, data, file.name, file.mime)
    except (ClientError, TimeoutError, UsageError) as error:
        log.warning("file download failed: %s", results.describe_exception(error))
        return None


def _decrypt(data: bytes, keys: JsonObject) -> bytes:
    key = config_values.text(config_values.mapping(keys.get("key")).get("k"))
    digest = config_values.text(config_values.mapping(keys.get("hashes")).get("sha256"))
    try:
        return bytes(decrypt_attachment(data, key, digest, config_values.text(keys.get("iv"))))
    except (EncryptionError, ValueError) as error:
        raise UsageError(f"the file cannot be decrypted: {error}") from error


async def _download(client: MatrixClient, file: MatrixFile, largest: int) -> bytes:
    """The bytes of a file, read up to the limit."""
    if not file.url.startswith("mxc://"):
        raise UsageError("the file has no URL")
    incoming_files.check_size(file.size, largest)
    place = urlparse(file.url)
    method, path = Api.download(place.netloc, place.path.strip("/"), access_token="-")  # noqa: S106
    headers = {"Authorization": f"Bearer {client.access_token}"}
    path = path.partition("?")[0]
    response: Any = await client.send(method, path, None, headers, None, DOWNLOAD_TIMEOUT_SECONDS)
    async with response:
        if response.status != 200:
            raise UsageError(f"the homeserver returned HTTP {response.status}")
        return await incoming_files.read_limited(response.content, largest)


async def upload_file(client: MatrixClient, path: Path, *, is_encrypted: bool) -> UploadedFile:
    """Upload a file; an encrypted one without its name and type."""
    data = await asyncio.to_thread(path.read_bytes)
    mime = mimetypes.guess_type(path.name)[0] or DEFAULT_MIME
    size = len(data)
    keys: dict[str, JsonData] | None = None
    name, sent_mime = path.name, mime
    if is_encrypted:
        data, keys = await asyncio.to_thread(encrypt_attachment, data)
        name, sent_mime = UNNAMED, DEFAULT_MIME

    def provide(_limits: int, _timeouts: int) -> bytes:
        return data

    async with asyncio.timeout(DOWNLOAD_TIMEOUT_SECONDS):
        answer, _keys = await client.upload(provide, sent_mime, name, filesize=len(data))
    return UploadedFile(answer, mime, size, keys)
