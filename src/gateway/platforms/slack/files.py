"""Files that come in from Slack. The token goes to Slack's own host and to no other."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout

from gateway import config_values
from gateway.platforms import incoming_files
from gateway.platforms.base import MessageEvent, MessageType
from gateway.platforms.slack import results
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_core.media_store import Kept, MediaStore

log = logging.getLogger(__name__)

FETCH_SECONDS: Final = 120.0
OWN_HOSTS: Final = ("slack.com", "slack-files.com")


class Files:
    """Fetches files."""

    def __init__(
        self, session: ClientSession, token: str, base_url: str, media: MediaStore
    ) -> None:
        self._session = session
        self._token = token
        self._base_url = base_url  # where Slack is, when it is somewhere else
        self._media = media

    async def add(self, event: MessageEvent, found: Any) -> None:
        """Put files to a message; one that cannot be fetched leaves a note."""
        for file in found if isinstance(found, list) else []:
            facts = config_values.mapping(file)
            kept = await self._kept(facts)
            if kept is None:
                name = (
                    config_values.text(facts.get("name"))
                    or config_values.text(facts.get("id"))
                    or "file"
                )
                incoming_files.leave_note(event, name)
            else:
                incoming_files.attach(event, kept, _kind(facts, kept.mime))

    async def _kept(self, facts: dict[str, Any]) -> Kept | None:
        name, mime = (
            config_values.text(facts.get("name")),
            config_values.text(facts.get("mimetype")),
        )
        try:
            data = await self._fetched(facts, mime)
            return await asyncio.to_thread(self._media.keep, data, name, mime)
        except (ClientError, TimeoutError, UsageError, ValueError) as error:
            log.warning("a file was not fetched: %s", results.described(error))
            return None

    async def _fetched(self, facts: dict[str, Any], mime: str) -> bytes:
        url = config_values.text(facts.get("url_private_download") or facts.get("url_private"))
        if not self._is_own(url):
            raise UsageError("it is not kept by Slack")
        incoming_files.check(config_values.number(facts.get("size"), 0), self._media.largest)
        headers = {"Authorization": f"Bearer {self._token}"}
        timeout = ClientTimeout(total=FETCH_SECONDS)
        async with self._session.get(
            url, headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise UsageError(f"Slack answered with HTTP {response.status}")
            if response.content_type == "text/html" and mime != "text/html":
                raise UsageError("Slack wants to be logged in to: the bot needs files:read")
            return await incoming_files.read(response.content, self._media.largest)

    def _is_own(self, url: str) -> bool:
        """Whether an address may see the token."""
        return incoming_files.is_at(url, OWN_HOSTS, self._base_url)


def _kind(facts: dict[str, Any], mime: str) -> MessageType:
    return (
        MessageType.VOICE if facts.get("subtype") == "slack_audio" else incoming_files.kind_of(mime)
    )
