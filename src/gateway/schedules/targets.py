"""Where the results of scheduled jobs go: a chat, the owner's chat, or nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.config import find_platform
from gateway.outbound import direct_send
from gateway.outbound.direct_send import Channel
from hermes_conversation.scheduled_jobs import OWNER_TARGET
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from gateway.config import GatewayConfig
    from gateway.inbound.access_control import AccessControl
    from hermes_state.delivery.rows import JobTarget
    from hermes_state.store import SessionDB

NOT_FOUND = (
    "No direct chat of the owner{place} is known. Send the agent a message there first, or set "
    "`home_channel`."
)


class JobTargets:
    """Finds the chats of targets, as they are now."""

    def __init__(self, db: SessionDB, config: GatewayConfig, access: AccessControl) -> None:
        self._db = db
        self._config = config
        self._access = access

    def parse(self, text: str) -> JobTarget:
        """The target of `telegram:42`, `telegram:me`, `me`, or the name of a chat."""
        platform, _, chat = text.partition(":")
        if text == OWNER_TARGET:
            return {}
        if chat == OWNER_TARGET:
            if find_platform(platform.lower()) is None:
                raise UsageError(f"unknown platform {platform!r}")
            return {"platform": platform.lower()}
        channel = direct_send.find_channel(self._db, self._config, text)
        return {
            "platform": channel.platform,
            "chat_id": channel.chat_id,
            "thread_id": channel.thread_id,
        }

    def find(self, target: JobTarget | None) -> Channel | None:
        """The chat of a target; None for nowhere. UsageError if the owner has no chat."""
        if target is None:
            return None
        platform, chat_id = target.get("platform"), target.get("chat_id")
        if chat_id is not None:
            return self._chat(str(platform), str(chat_id), target.get("thread_id"))
        return self._owners_chat(str(platform) if platform else "")

    def _chat(self, platform: str, chat_id: str, thread_id: str | None) -> Channel:
        thread = thread_id or None
        known = direct_send.list_channels(self._db, self._config)
        found = [item for item in known if item[:3] == (platform, chat_id, thread)]
        return found[0] if found else Channel(platform, chat_id, thread, chat_id, "dm")

    def _owners_chat(self, platform: str) -> Channel:
        """The chat of `gateway.notify`, the home channel, else the owner's latest direct chat."""
        channels = [
            *self._notified(),
            *(item for item in self._homes() if item.chat_id),
            *self._direct_chats(),
        ]
        for channel in channels:
            if platform in {"", channel.platform}:
                return channel
        raise UsageError(NOT_FOUND.format(place=f" on {platform}" if platform else ""))

    def _notified(self) -> list[Channel]:
        channels = []
        for name in ConfigFile.of_home().settings().get_list("gateway.notify"):
            try:
                channels.append(direct_send.find_channel(self._db, self._config, name))
            except UsageError:
                continue  # `gateway.notify` reports it
        return channels

    def _homes(self) -> list[Channel]:
        channels = direct_send.list_channels(self._db, self._config)
        homes = {
            (platform.value, configured.home_channel.chat_id)
            for platform, configured in self._config.platforms.items()
            if configured.home_channel is not None
        }
        return [item for item in channels if (item.platform, item.chat_id) in homes]

    def _direct_chats(self) -> list[Channel]:
        """Direct chats in which the owner has written, the latest first."""
        routes = sorted(self._db.routes.all(), key=lambda route: route.updated_at, reverse=True)
        channels = []
        for route in routes:
            source = direct_send.origin_of(route.entry)
            if source is not None and self._access.has_all_history(source):
                channels.append(self._chat(source.platform.value, source.chat_id, source.thread_id))
        return channels
