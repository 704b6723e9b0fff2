"""The settings of the platform: `platforms.irc` in config.yaml, and two secrets."""

from __future__ import annotations

import ipaddress
import re
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from hermes_core.errors import PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.base import AdapterContext

TLS_PORT: Final = 6697
PLAIN_PORT: Final = 6667
SECONDS_PER_LINE: Final = 2.0  # the rate that RFC 1459 allows
# Whatever a server may accept as a nick; not masks, several targets, servers or channels.
NICK: Final = re.compile(r"[^\x00-\x20#&+!$:~@%*?,.0-9-][^\x00-\x20!$:@*?,.]*")
CHANNEL: Final = re.compile(r"[#&+!][^\x00\x07\r\n ,:]+")


class IrcSettings(NamedTuple):
    """A network, and how the agent connects to it."""

    server: str
    port: int
    tls: ssl.SSLContext | None
    nick: str
    channels: tuple[str, ...]
    account: str  # the services account of the agent
    password: str  # of that account
    server_password: str
    nickserv: str  # logs in by a message to this service instead of SASL
    trust_nicks: bool  # a nick is an identity
    seconds_per_line: float

    @classmethod
    def parse(cls, context: AdapterContext) -> IrcSettings:
        """Read the settings; PlatformRefusedError if one cannot be used."""
        extra = context.config.extra
        server = config_values.text(extra.get("server"))
        if not server:
            raise PlatformRefusedError("IRC: set platforms.irc.server, e.g. irc.example.org.")
        nick = config_values.text(extra.get("nick"), "hermes")
        channels = extra.get("channels") or []
        names = tuple(map(str, channels)) if isinstance(channels, list) else (str(channels),)
        for kind, pattern, name in (
            ("nick", NICK, nick),
            *(("channel", CHANNEL, name) for name in names),
        ):
            if not pattern.fullmatch(name):
                raise PlatformRefusedError(f"IRC: {name!r} is not a valid {kind}.")
        is_tls = config_values.flag(extra.get("tls"), default=True)
        if not is_tls and not _is_loopback(server):
            raise PlatformRefusedError("IRC: `tls: false` is only possible on loopback.")
        return cls(
            server=server,
            port=config_values.number(extra.get("port"), TLS_PORT if is_tls else PLAIN_PORT),
            tls=_tls_context(config_values.text(extra.get("ca_file"))) if is_tls else None,
            nick=nick,
            channels=names,
            account=config_values.text(extra.get("account"), nick),
            password=context.secret("IRC_PASSWORD"),
            server_password=context.secret("IRC_SERVER_PASSWORD"),
            nickserv=config_values.text(extra.get("nickserv")),
            trust_nicks=config_values.flag(extra.get("trust_nicks"), default=False),
            seconds_per_line=config_values.fraction(
                extra.get("seconds_per_line"), SECONDS_PER_LINE
            ),
        )


def _tls_context(ca_file: str) -> ssl.SSLContext:
    """Certificates are always verified; *ca_file* is for a certificate authority of your own."""
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise PlatformRefusedError(f"IRC: ca_file {ca_file} cannot be read: {error}") from error


def _is_loopback(server: str) -> bool:
    try:
        return server == "localhost" or ipaddress.ip_address(server).is_loopback
    except ValueError:
        return False
