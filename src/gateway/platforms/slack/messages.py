"""Slack events as message events, with their files."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiohttp import ClientError, ClientSession, ClientTimeout
from slack_sdk.errors import SlackApiError, SlackClientError

from gateway import config_values
from gateway.platforms import incoming_files
from gateway.platforms.base import ErrorKind, MessageEvent, MessageType
from gateway.platforms.deduplication import RecentItems
from gateway.platforms.names import Platform
from gateway.platforms.slack import mrkdwn, results
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from slack_sdk.web.async_client import AsyncWebClient

    from hermes_core.json_values import JsonObject
    from hermes_core.media_store import MediaStore, StoredFile


log = logging.getLogger(__name__)

DOWNLOAD_TIMEOUT_SECONDS: Final = 120.0
OWN_HOSTS: Final = ("slack.com", "slack-files.com")


class SlackFiles:
    """Downloads the files of messages."""

    def __init__(
        self,
        session: ClientSession,
        token: str,
        base_url: str,
        media: MediaStore,
        is_accepted: Callable[[MessageEvent], bool],
    ) -> None:
        self._session = session
        self._token = token
        self._base_url = base_url  # replaces the hosts of Slack
        self._media = media
        self._is_accepted = is_accepted

    async def add(self, event: MessageEvent, found: Any) -> None:
        """Attach files to an accepted message; a failed download is mentioned in the text."""
        files = list(map(config_values.mapping, found if isinstance(found, list) else []))
        if files and not await asyncio.to_thread(self._is_accepted, event):
            for facts in files:
                note = incoming_files.NOT_DOWNLOADED_NOTE
                incoming_files.add_note(event, _name_of(facts), note)
            return
        for facts in files:
            stored = await self._store(facts)
            if stored is None:
                incoming_files.add_note(event, _name_of(facts))
            else:
                incoming_files.attach(event, stored, _kind(facts, stored.mime))

    async def _store(self, facts: JsonObject) -> StoredFile | None:
        name, mime = (
            config_values.text(facts.get("name")),
            config_values.text(facts.get("mimetype")),
        )
        try:
            data = await self._download(facts, mime)
            return await asyncio.to_thread(self._media.keep, data, name, mime)
        except (ClientError, TimeoutError, UsageError, ValueError) as error:
            log.warning("file download failed: %s", results.describe_error(error))
            return None

    async def _download(self, facts: JsonObject, mime: str) -> bytes:
        url = config_values.text(facts.get("url_private_download") or facts.get("url_private"))
        if not self._is_own(url):
            raise UsageError("the file is not hosted by Slack")
        incoming_files.check_size(config_values.number(facts.get("size"), 0), self._media.max_bytes)
        headers = {"Authorization": f"Bearer {self._token}"}
        timeout = ClientTimeout(total=DOWNLOAD_TIMEOUT_SECONDS)
        async with self._session.get(
            url, headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise UsageError(f"Slack returned HTTP {response.status}")
            if response.content_type == "text/html" and mime != "text/html":
                raise UsageError("Slack requires a login: the bot needs the files:read scope")
            return await incoming_files.read_limited(response.content, self._media.max_bytes)

    def _is_own(self, url: str) -> bool:
        """Whether the token may be sent to a URL."""
        return incoming_files.is_hosted_by(url, OWN_HOSTS, self._base_url)


def _name_of(facts: JsonObject) -> str:
    name, file_id = (config_values.text(facts.get(field)) for field in ("name", "id"))
    return name or file_id or "file"


def _kind(facts: JsonObject, mime: str) -> MessageType:
    return (
        MessageType.VOICE
        if facts.get("subtype") == "slack_audio"
        else incoming_files.message_type_of(mime)
    )


USER_SUBTYPES: Final = frozenset({"", "file_share", "me_message", "thread_broadcast"})
CHAT_TYPES: Final = {"im": "dm", "mpim": "group", "channel": "channel", "group": "channel"}
SLACKBOT: Final = "USLACKBOT"
MAX_NAME_LOOKUPS: Final = 20  # per message
TEMPORARY_KINDS: Final = (ErrorKind.RATE_LIMITED, ErrorKind.TRANSIENT)


class SlackMessage(NamedTuple):
    """The message of an event and its channel."""

    message: JsonObject
    channel: str
    channel_type: str
    team: str
    is_edit: bool

    @property
    def ts(self) -> str:
        """The ID of the message in its channel."""
        return config_values.text(self.message.get("ts"))

    @property
    def user(self) -> str:
        """The sender."""
        return config_values.text(self.message.get("user"))

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for duplicates: Slack sends a message with a mention twice."""
        edited = (
            config_values.mapping(self.message.get("edited")).get("ts") if self.is_edit else None
        )
        return self.channel, self.ts, config_values.text(edited)


def message_in(payload: JsonObject) -> SlackMessage | None:
    """The user message of an event; None if there is none."""
    event = config_values.mapping(payload.get("event"))
    if event.get("type") not in {"message", "app_mention"}:
        return None
    is_edit = event.get("subtype") == "message_changed"
    message = config_values.mapping(event.get("message")) if is_edit else event
    if is_edit and message.get("text") == config_values.mapping(event.get("previous_message")).get(
        "text"
    ):
        return None  # e.g. a link preview was added
    sent = SlackMessage(
        message,
        config_values.text(event.get("channel")),
        config_values.text(event.get("channel_type")),
        config_values.text(payload.get("team_id") or event.get("team")),
        is_edit,
    )
    return sent if is_user_message(sent) else None


def is_user_message(sent: SlackMessage) -> bool:
    """Whether a user wrote the message."""
    message = sent.message
    is_bots = bool(message.get("bot_id")) or sent.user in {"", SLACKBOT}
    is_kind = config_values.text(message.get("subtype")) in USER_SUBTYPES
    return is_kind and not is_bots and bool(sent.channel and sent.ts)


def deletion_in(payload: JsonObject) -> MessageEvent | None:
    """The deletion of a message that an event reports; None for other events."""
    event = config_values.mapping(payload.get("event"))
    if event.get("type") != "message" or event.get("subtype") != "message_deleted":
        return None
    channel, ts = (config_values.text(event.get(name)) for name in ("channel", "deleted_ts"))
    if not channel or not ts:
        return None
    source = SessionSource(Platform.SLACK, channel)
    return MessageEvent("", source=source, message_id=ts, is_deletion=True)


class SlackMessageReader:
    """Converts messages for one account."""

    def __init__(
        self,
        web: AsyncWebClient,
        team: str,
        me: str,
        files: SlackFiles,
        *,
        is_threading: bool = False,
    ) -> None:
        self._web = web
        self.team = team
        self._me = me
        self._files = files
        self._is_threading = is_threading
        self._names = RecentItems()
        self._kinds = RecentItems()

    async def read(self, sent: SlackMessage) -> MessageEvent | None:
        """The event of a message, with its files; None for own and empty messages."""
        if sent.user == self._me:
            return None
        written, is_named = mrkdwn.without_mention(
            config_values.text(sent.message.get("text")), self._me
        )
        mentioned = list(dict.fromkeys(mrkdwn.MENTION_PATTERN.findall(written)))[:MAX_NAME_LOOKUPS]
        names = {item: await self._user(item) for item in mentioned}
        text = mrkdwn.plain_text(written, lambda item: names.get(item, item))
        source = await self.source_of(sent)
        is_answer = sent.message.get("parent_user_id") == self._me
        event = MessageEvent(
            text,
            MessageType.COMMAND if text.startswith("/") else MessageType.TEXT,
            source,
            message_id=sent.ts,
            is_edit=sent.is_edit,
            is_addressed=source.chat_type == "dm" or is_named or is_answer,
            timestamp=config_values.fraction(sent.ts, 0.0),
            reply_to_message_id=source.thread_id if source.thread_id != sent.ts else None,
        )
        await self._files.add(event, sent.message.get("files"))
        return event if event.text or event.media_urls or is_named else None

    async def source_of(self, sent: SlackMessage) -> SessionSource:
        """The chat and the sender of a message."""
        kind, name = await self._channel(sent)
        thread = config_values.text(sent.message.get("thread_ts"))
        thread = "" if thread == sent.ts else thread
        if self._is_threading and kind == "channel":
            thread = thread or sent.ts
        return SessionSource(
            Platform.SLACK,
            sent.channel,
            chat_name=name,
            chat_type="thread" if thread and kind == "channel" else kind,
            user_id=sent.user,
            user_name=await self._user(sent.user),
            thread_id=thread or None,
            guild_id=sent.team or None,
        )

    # Lookups; without an answer the ID is used as the name

    async def _user(self, user: str) -> str:
        if user not in self._names:
            result = await self._call("users.info", user=user)
            if result is None:
                return user
            facts = config_values.mapping(result.get("user"))
            profile = config_values.mapping(facts.get("profile"))
            candidates = (profile.get("display_name"), facts.get("real_name"), facts.get("name"))
            self._names.add(
                user,
                next(
                    (config_values.text(candidate) for candidate in candidates if candidate), user
                ),
            )
        return self._names.note_of(user) or user

    async def _channel(self, sent: SlackMessage) -> tuple[str, str | None]:
        """The chat type and name of a channel."""
        channel, kind = sent.channel, CHAT_TYPES.get(sent.channel_type, "")
        if kind == "dm" or channel.startswith("D"):
            return "dm", await self._user(sent.user)
        if channel not in self._kinds:
            result = await self._call("conversations.info", channel=channel)
            if result is None:
                return kind or "channel", None
            facts = config_values.mapping(result.get("channel"))
            self._kinds.add(channel, "group" if facts.get("is_mpim") else kind or "channel")
            self._names.add(channel, config_values.text(facts.get("name")))
        return kind or self._kinds.note_of(channel) or "channel", self._names.note_of(channel)

    async def _call(self, method: str, **facts: str) -> JsonObject | None:
        """The response of a method; empty if Slack rejects it, None after a temporary error."""
        try:
            answer = await self._web.api_call(method, params=facts, http_verb="GET")
        except SlackApiError as error:
            log.info("Slack %s failed: %s", method, results.describe_error(error))
            return None if results.failure(error).error_kind in TEMPORARY_KINDS else {}
        except (SlackClientError, ClientError, TimeoutError) as error:
            log.info("Slack %s failed: %s", method, results.describe_error(error))
            return None
        return config_values.mapping(answer.data)
