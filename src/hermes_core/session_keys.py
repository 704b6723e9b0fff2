"""Session keys, which identify the place that messages come from.

The canonical form is a one-to-one mapping between places and texts:

    hk1:<namespace>:<platform>:<chat type>[:c=<chat>][:t=<thread>][:u=<user>]

Every part is percent-encoded, so ':' and '/' may occur in an ID, and the tags distinguish
a thread from a user with the same ID. The text never contains a path. The older untagged
form is handled by `gateway.routing.sources`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hermes_core.errors import KeyFormatError

KEY_VERSION = "hk1"

_UNESCAPED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~!@#$&*()+,;"
_TAGS = ("c", "t", "u")


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A place; None means that it has no such part, which differs from ''."""

    namespace: str
    platform: str
    chat_type: str
    chat_id: str | None = None
    thread_id: str | None = None
    user_id: str | None = None

    def encode(self) -> str:
        """The canonical text."""
        parts = [KEY_VERSION, *map(_escape, (self.namespace, self.platform, self.chat_type))]
        tagged = zip(_TAGS, (self.chat_id, self.thread_id, self.user_id), strict=True)
        parts += [f"{tag}={_escape(value)}" for tag, value in tagged if value is not None]
        return ":".join(parts)

    @classmethod
    def parse(cls, text: str) -> SessionKey:
        """The place of a canonical text; raises KeyFormatError for any other text."""
        version, *parts = text.split(":")
        if version != KEY_VERSION or len(parts) < 3:
            raise _format_error(text)
        values: dict[str, str] = {}
        for part in parts[3:]:
            tag, equals, value = part.partition("=")
            if not equals or tag not in _TAGS or tag in values:
                raise _format_error(text)
            values[tag] = _unescape(value, text)
        namespace, platform, chat_type = (_unescape(part, text) for part in parts[:3])
        key = cls(
            namespace,
            platform,
            chat_type,
            chat_id=values.get("c"),
            thread_id=values.get("t"),
            user_id=values.get("u"),
        )
        if key.encode() != text:
            raise _format_error(text)
        return key


def place(
    platform: str,
    chat_type: str,
    *,
    namespace: str = "main",
    chat_id: str | None = None,
    thread_id: str | None = None,
    user_id: str | None = None,
    user_id_alt: str | None = None,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
) -> SessionKey:
    """The place of a message, with only the parts that distinguish places.

    In a direct chat the user is used only without a chat ID. In a group each user has a
    separate place unless that is disabled; a thread is shared by all users unless both
    options are set. Empty IDs count as missing.
    """
    user = user_id_alt or user_id or None
    if chat_type == "dm":
        partner = _dm_identity(platform, chat_id or user)
        by_user = not chat_id
        return SessionKey(
            namespace,
            platform,
            chat_type,
            chat_id=None if by_user else partner,
            thread_id=thread_id or None,
            user_id=partner if by_user else None,
        )
    is_shared = not group_sessions_per_user or (bool(thread_id) and not thread_sessions_per_user)
    return SessionKey(
        namespace,
        platform,
        chat_type,
        chat_id=chat_id or None,
        thread_id=thread_id or None,
        user_id=None if is_shared else user,
    )


def _dm_identity(platform: str, identity: str | None) -> str | None:
    """The phone number of a WhatsApp identity, which may also have a device and a server."""
    if platform != "whatsapp" or identity is None:
        return identity
    number = identity.partition("@")[0].partition(":")[0].removeprefix("+")
    return number or identity


def _escape(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    escaped = text
    if data.strip(_UNESCAPED):  # it has other characters
        escaped = "".join(chr(byte) if byte in _UNESCAPED else f"%{byte:02X}" for byte in data)
    return escaped.replace("..", "%2E%2E")


def _unescape(part: str, text: str) -> str:
    first, *rest = part.split("%")
    try:
        data = first.encode("ascii")
        for piece in rest:
            data += bytes.fromhex(piece[:2]) + piece[2:].encode("ascii")
        return data.decode("utf-8", "surrogatepass")
    except ValueError as error:
        raise _format_error(text) from error


def _format_error(text: str) -> KeyFormatError:
    return KeyFormatError(f"{text!r} is not a session key of the form {KEY_VERSION}:...")
