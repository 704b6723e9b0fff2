"""Files that come in from Slack. The token goes to Slack's own host and to no other."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout

from gateway import lenient
from gateway.platforms import slack_answers
from gateway.platforms.base import MessageEvent, MessageType
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from gateway.media import Kept, MediaStore

log = logging.getLogger(__name__)

FETCH_SECONDS: Final = 120.0
OWN_HOSTS: Final = ("slack.com", "slack-files.com")
KINDS: Final = {
    "image": MessageType.PHOTO,
    "audio": MessageType.AUDIO,
    "video": MessageType.VIDEO,
}


class Files:
    """Fetches files."""

    def __init__(
        self, session: ClientSession, token: str, base_url: str, media: MediaStore
    ) -> None:
        self._session = session
        self._token = token
        self._base_url = base_url  # where Slack is, when it is somewhere else
        self._media = media

    async def add(self, event: MessageEvent, files: Any) -> None:
        """Put files to a message; one that cannot be fetched leaves a note."""
        for file in files if isinstance(files, list) else []:
            facts = lenient.mapping(file)
            kept = await self._kept(facts)
            if kept is None:
                name = lenient.text(facts.get("name")) or lenient.text(facts.get("id")) or "file"
                note = f"[a file that could not be fetched: {name}]"
                event.text = f"{event.text}\n{note}".strip()
                continue
            event.media_urls.append(str(kept.path))
            event.media_types.append(kept.mime)
            if len(event.media_urls) == 1:
                event.message_type = _kind(facts, kept.mime)

    async def _kept(self, facts: dict[str, Any]) -> Kept | None:
        name, mime = lenient.text(facts.get("name")), lenient.text(facts.get("mimetype"))
        try:
            data = await self._fetched(facts, mime)
            return await asyncio.to_thread(self._media.keep, data, name, mime)
        except (ClientError, TimeoutError, UsageError, ValueError) as error:
            log.warning("a file was not fetched: %s", slack_answers.described(error))
            return None

    async def _fetched(self, facts: dict[str, Any], mime: str) -> bytes:
        url = lenient.text(facts.get("url_private_download") or facts.get("url_private"))
        largest = self._media.largest
        if not self._is_own(url):
            raise UsageError("it is not kept by Slack")
        if lenient.number(facts.get("size"), 0) > largest:
            raise UsageError(f"it is larger than {largest} bytes")
        headers = {"Authorization": f"Bearer {self._token}"}
        timeout = ClientTimeout(total=FETCH_SECONDS)
        parts: list[bytes] = []
        async with self._session.get(
            url, headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise UsageError(f"Slack answered with HTTP {response.status}")
            if response.content_type == "text/html" and mime != "text/html":
                raise UsageError("Slack wants to be logged in to: the bot needs files:read")
            async for part in response.content.iter_chunked(65536):
                parts.append(part)
                if sum(map(len, parts)) > largest:
                    raise UsageError(f"it is larger than {largest} bytes")
        return b"".join(parts)

    def _is_own(self, url: str) -> bool:
        """Whether an address may see the token."""
        place = urlsplit(url)
        if self._base_url:
            own = urlsplit(self._base_url)
            return (place.scheme, place.netloc) == (own.scheme, own.netloc)
        host = place.hostname or ""
        is_known = any(host == one or host.endswith(f".{one}") for one in OWN_HOSTS)
        return place.scheme == "https" and is_known and place.port in {None, 443}


def _kind(facts: dict[str, Any], mime: str) -> MessageType:
    if facts.get("subtype") == "slack_audio":
        return MessageType.VOICE
    return KINDS.get(mime.partition("/")[0], MessageType.DOCUMENT)
