"""Events of Slack made into messages of the gateway."""

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
    from slack_sdk.web.async_client import AsyncWebClient

    from hermes_core.media_store import MediaStore, StoredFile


log = logging.getLogger(__name__)

FETCH_SECONDS: Final = 120.0
OWN_HOSTS: Final = ("slack.com", "slack-files.com")


class SlackFiles:
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
                incoming_files.add_note(event, name)
            else:
                incoming_files.attach(event, kept, _kind(facts, kept.mime))

    async def _kept(self, facts: dict[str, Any]) -> StoredFile | None:
        name, mime = (
            config_values.text(facts.get("name")),
            config_values.text(facts.get("mimetype")),
        )
        try:
            data = await self._fetched(facts, mime)
            return await asyncio.to_thread(self._media.keep, data, name, mime)
        except (ClientError, TimeoutError, UsageError, ValueError) as error:
            log.warning("file download failed: %s", results.describe_error(error))
            return None

    async def _fetched(self, facts: dict[str, Any], mime: str) -> bytes:
        url = config_values.text(facts.get("url_private_download") or facts.get("url_private"))
        if not self._is_own(url):
            raise UsageError("the file is not hosted by Slack")
        incoming_files.check_size(config_values.number(facts.get("size"), 0), self._media.largest)
        headers = {"Authorization": f"Bearer {self._token}"}
        timeout = ClientTimeout(total=FETCH_SECONDS)
        async with self._session.get(
            url, headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise UsageError(f"Slack returned HTTP {response.status}")
            if response.content_type == "text/html" and mime != "text/html":
                raise UsageError("Slack requires a login: the bot needs the files:read scope")
            return await incoming_files.read_limited(response.content, self._media.largest)

    def _is_own(self, url: str) -> bool:
        """Whether an address may see the token."""
        return incoming_files.is_hosted_by(url, OWN_HOSTS, self._base_url)


def _kind(facts: dict[str, Any], mime: str) -> MessageType:
    return (
        MessageType.VOICE
        if facts.get("subtype") == "slack_audio"
        else incoming_files.message_type_of(mime)
    )


USER_SUBTYPES: Final = frozenset({"", "file_share", "me_message", "thread_broadcast"})
CHAT_TYPES: Final = {"im": "dm", "mpim": "group", "channel": "channel", "group": "channel"}
SLACKBOT: Final = "USLACKBOT"
MAX_NAME_LOOKUPS: Final = 20  # that are looked up for one message
TEMPORARY_KINDS: Final = (ErrorKind.RATE_LIMITED, ErrorKind.TRANSIENT)


class SlackMessage(NamedTuple):
    """What an event says: the message itself, and what is around it."""

    message: dict[str, Any]
    channel: str
    channel_type: str
    team: str
    is_edit: bool

    @property
    def ts(self) -> str:
        """The id of the message in its channel."""
        return config_values.text(self.message.get("ts"))

    @property
    def user(self) -> str:
        """Who wrote it."""
        return config_values.text(self.message.get("user"))

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for a message that comes twice, as one that names the bot does."""
        edited = (
            config_values.mapping(self.message.get("edited")).get("ts") if self.is_edit else None
        )
        return self.channel, self.ts, config_values.text(edited)


def message_in(payload: dict[str, Any]) -> SlackMessage | None:
    """The message in an event; None where there is none for us."""
    event = config_values.mapping(payload.get("event"))
    if event.get("type") not in {"message", "app_mention"}:
        return None
    is_edit = event.get("subtype") == "message_changed"
    message = config_values.mapping(event.get("message")) if is_edit else event
    if is_edit and message.get("text") == config_values.mapping(event.get("previous_message")).get(
        "text"
    ):
        return None  # a preview of a link was added, say
    said = SlackMessage(
        message,
        config_values.text(event.get("channel")),
        config_values.text(event.get("channel_type")),
        config_values.text(payload.get("team_id") or event.get("team")),
        is_edit,
    )
    return said if is_user_message(said) else None


def is_user_message(said: SlackMessage) -> bool:
    """Whether a message is one that a person wrote."""
    message = said.message
    is_bots = bool(message.get("bot_id")) or said.user in {"", SLACKBOT}
    is_kind = config_values.text(message.get("subtype")) in USER_SUBTYPES
    return is_kind and not is_bots and bool(said.channel and said.ts)


class SlackMessageReader:
    """Reads events for one account."""

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

    async def read(self, said: SlackMessage) -> MessageEvent | None:
        """A message, with its files; None where it is our own, or nothing is in it."""
        if said.user == self._me:
            return None
        written, is_named = mrkdwn.without_mention(
            config_values.text(said.message.get("text")), self._me
        )
        mentioned = list(dict.fromkeys(mrkdwn.MENTION_PATTERN.findall(written)))[:MAX_NAME_LOOKUPS]
        names = {one: await self._user(one) for one in mentioned}
        text = mrkdwn.plain_text(written, lambda one: names.get(one, one))
        source = await self._source(said)
        is_answer = said.message.get("parent_user_id") == self._me
        event = MessageEvent(
            text,
            MessageType.COMMAND if text.startswith("/") else MessageType.TEXT,
            source,
            message_id=said.ts,
            is_edit=said.is_edit,
            is_addressed=source.chat_type == "dm" or is_named or is_answer,
            timestamp=config_values.fraction(said.ts, 0.0),
            reply_to_message_id=source.thread_id if source.thread_id != said.ts else None,
        )
        await self._files.add(event, said.message.get("files"))
        return event if event.text or event.media_urls or is_named else None

    async def _source(self, said: SlackMessage) -> SessionSource:
        kind, name = await self._channel(said)
        thread = config_values.text(said.message.get("thread_ts"))
        thread = "" if thread == said.ts else thread
        if self._is_threading and kind == "channel":
            thread = thread or said.ts
        return SessionSource(
            Platform.SLACK,
            said.channel,
            chat_name=name,
            chat_type="thread" if thread and kind == "channel" else kind,
            user_id=said.user,
            user_name=await self._user(said.user),
            thread_id=thread or None,
            guild_id=said.team or None,
        )

    # What has to be asked for; what cannot be found out is called by its id

    async def _user(self, user: str) -> str:
        if user not in self._names:
            found = await self._asked("users.info", user=user)
            if found is None:
                return user
            facts = config_values.mapping(found.get("user"))
            profile = config_values.mapping(facts.get("profile"))
            told = (profile.get("display_name"), facts.get("real_name"), facts.get("name"))
            self._names.add(user, next((config_values.text(one) for one in told if one), user))
        return self._names.note_of(user) or user

    async def _channel(self, said: SlackMessage) -> tuple[str, str | None]:
        """The kind of a channel, and its name."""
        channel, kind = said.channel, CHAT_TYPES.get(said.channel_type, "")
        if kind == "dm" or channel.startswith("D"):
            return "dm", await self._user(said.user)
        if channel not in self._kinds:
            found = await self._asked("conversations.info", channel=channel)
            if found is None:
                return kind or "channel", None
            facts = config_values.mapping(found.get("channel"))
            self._kinds.add(channel, "group" if facts.get("is_mpim") else kind or "channel")
            self._names.add(channel, config_values.text(facts.get("name")))
        return kind or self._kinds.note_of(channel) or "channel", self._names.note_of(channel)

    async def _asked(self, method: str, **facts: str) -> dict[str, Any] | None:
        """An answer; empty where Slack refuses it, None where it may give it later."""
        try:
            answer = await self._web.api_call(method, params=facts, http_verb="GET")
        except SlackApiError as error:
            log.info("Slack %s failed: %s", method, results.describe_error(error))
            return None if results.failure(error).error_kind in TEMPORARY_KINDS else {}
        except (SlackClientError, ClientError, TimeoutError) as error:
            log.info("Slack %s failed: %s", method, results.describe_error(error))
            return None
        return config_values.mapping(answer.data)
