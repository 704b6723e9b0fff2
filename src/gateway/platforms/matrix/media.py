"""Files to and from a Matrix server."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlparse

from aiohttp import ClientError
from nio import Api  # type: ignore[import-untyped] # it has no types

from gateway.platforms import incoming_files
from gateway.platforms.matrix import results
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from nio import AsyncClient

    from gateway.platforms.matrix.events import File
    from hermes_core.media_store import Kept, MediaStore

log = logging.getLogger(__name__)

FETCH_SECONDS: Final = 120.0
UNKNOWN: Final = "application/octet-stream"


async def kept(client: AsyncClient, store: MediaStore, file: File) -> Kept | None:
    """Fetch a file and keep it; None where that cannot be."""
    try:
        data = await _fetched(client, file, store.largest)
        return await asyncio.to_thread(store.keep, data, file.name, file.mime)
    except (ClientError, TimeoutError, UsageError) as error:
        log.warning("a file was not fetched: %s", results.in_words(error))
        return None


async def _fetched(client: AsyncClient, file: File, largest: int) -> bytes:
    """The bytes of a file, read no further than is allowed."""
    if not file.url.startswith("mxc://"):
        raise UsageError("it is encrypted, or has no address")
    incoming_files.check(file.size, largest)
    place = urlparse(file.url)
    method, path = Api.download(place.netloc, place.path.strip("/"), access_token="-")  # noqa: S106
    headers = {"Authorization": f"Bearer {client.access_token}"}
    path = path.partition("?")[0]
    response: Any = await client.send(method, path, None, headers, None, FETCH_SECONDS)
    async with response:
        if response.status != 200:
            raise UsageError(f"the homeserver answered with HTTP {response.status}")
        return await incoming_files.read(response.content, largest)


async def uploaded(client: AsyncClient, path: Path) -> tuple[Any, str, int]:
    """Upload a file: the server's answer, its kind, its size."""
    data = await asyncio.to_thread(path.read_bytes)
    mime = mimetypes.guess_type(path.name)[0] or UNKNOWN

    def give(_limits: int, _timeouts: int) -> bytes:
        return data

    async with asyncio.timeout(FETCH_SECONDS):
        answer, _keys = await client.upload(give, mime, path.name, filesize=len(data))
    return answer, mime, len(data)
