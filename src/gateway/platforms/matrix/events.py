"""Events of Matrix rooms as messages of the gateway; nothing here asks the server."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from gateway import config_values
from gateway.platforms.base import MessageType

MEDIA: Final = {
    "m.image": MessageType.PHOTO,
    "m.video": MessageType.VIDEO,
    "m.audio": MessageType.AUDIO,
    "m.file": MessageType.DOCUMENT,
    "m.location": MessageType.LOCATION,
}
FILES: Final = frozenset(MEDIA.values()) - {MessageType.LOCATION} | {MessageType.VOICE}
VOICE: Final = ("org.matrix.msc3245.voice", "m.voice")
TEXTS: Final = ("m.text", "m.emote")
QUOTED: Final = re.compile(r"\A(?:>.*(?:\n|\Z))+\n?")


class File(NamedTuple):
    """A file that a message names."""

    url: str  # empty where it is encrypted
    name: str
    mime: str
    size: int


class Said(NamedTuple):
    """What an event says."""

    text: str
    kind: MessageType
    message_id: str
    thread_id: str | None
    reply_to: str | None
    is_edit: bool
    file: File | None
    mentioned: frozenset[str]


def read(event: dict[str, Any]) -> Said | None:
    """What a message says; None where it is no message for a bot."""
    content = config_values.mapping(event.get("content"))
    relation = config_values.mapping(content.get("m.relates_to"))
    is_edit = relation.get("rel_type") == "m.replace"
    if is_edit:
        new = config_values.mapping(content.get("m.new_content"))
        content = {**new, "m.mentions": content.get("m.mentions") or new.get("m.mentions")}
    kind = _kind(content)
    if event.get("type") != "m.room.message" or kind is None:
        return None
    found = file_in(content) if kind in FILES else None
    reply = _answered(relation)
    text = _caption(content) if found else _body(content)
    return Said(
        QUOTED.sub("", text) if reply else text,
        kind,
        config_values.text(relation.get("event_id") if is_edit else event.get("event_id")),
        config_values.text(relation.get("event_id")) or None if _is_thread(relation) else None,
        reply,
        is_edit,
        found,
        _mentioned(content),
    )


def _body(content: dict[str, Any]) -> str:
    """The text of a message; a place on earth is said with its coordinates."""
    parts = (config_values.text(content.get(name)) for name in ("body", "geo_uri"))
    return "\n".join(one for one in parts if one)


def _kind(content: dict[str, Any]) -> MessageType | None:
    name = config_values.text(content.get("msgtype"))
    if name == "m.audio" and any(one in content for one in VOICE):
        return MessageType.VOICE
    return MessageType.TEXT if name in TEXTS else MEDIA.get(name)


def _is_thread(relation: dict[str, Any]) -> bool:
    return relation.get("rel_type") == "m.thread"


def _answered(relation: dict[str, Any]) -> str | None:
    """The message that is answered; in a thread the last one is named for old clients only."""
    if _is_thread(relation) and relation.get("is_falling_back"):
        return None
    answered = config_values.mapping(relation.get("m.in_reply_to"))
    return config_values.text(answered.get("event_id")) or None


def _mentioned(content: dict[str, Any]) -> frozenset[str]:
    users = config_values.mapping(content.get("m.mentions")).get("user_ids")
    return frozenset(map(str, users)) if isinstance(users, list) else frozenset()


def file_in(content: dict[str, Any]) -> File:
    """The file of a message."""
    info = config_values.mapping(content.get("info"))
    name = config_values.text(content.get("filename")) or config_values.text(content.get("body"))
    return File(
        config_values.text(content.get("url")),
        name or "file",
        config_values.text(info.get("mimetype")),
        config_values.number(info.get("size"), 0),
    )


def _caption(content: dict[str, Any]) -> str:
    """The text beside a file; a body that only names the file is none."""
    name, body = (
        config_values.text(content.get("filename")),
        config_values.text(content.get("body")),
    )
    return body if name and body != name else ""


def without_mention(text: str, me: str, name: str) -> tuple[str, bool]:
    """A text without the bot in it, and whether it was named.

    Its id goes wherever it stands. Its name goes at both ends only: in the middle of a
    sentence it is a word that is needed.
    """
    found = re.sub(rf"@?{re.escape(me)}(?![\w.-])[:,]?\s*", "", text)
    is_named = found != text
    names = {one for one in (name, me.partition(":")[0]) if one}
    for one in sorted(names, key=len, reverse=True):
        word = rf"(?<!\w)@?{re.escape(one)}(?![\w:])"
        is_named = is_named or bool(re.search(rf"(?i){word}|(?<!\w){re.escape(one)}:(?!\w)", found))
        found = re.sub(rf"(?i)\A\s*@?{re.escape(one)}(?!\w)[:,]?\s*", "", found)
        found = re.sub(rf"(?i)[\s,]*{word}([.!?]?)\s*\Z", r"\1", found)
    return (found.strip() if is_named else text), is_named
