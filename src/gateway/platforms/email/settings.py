"""Settings of the mailbox: servers, encryption, limits, and who vouches for senders."""

from __future__ import annotations

import ipaddress
import ssl
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from gateway.platforms.email.addresses import parse_address
from hermes_core.errors import PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.config import PlatformConfig
    from hermes_core.json_values import JsonObject

WINDOW_SECONDS: Final = 3600.0
MAX_SENDERS: Final = 1000


class MailLimits:
    """Counts the messages of each sender and thread.

    The time of a message is its arrival in the mailbox, so messages that were sent during a long
    downtime do not count as sent at once.
    """

    def __init__(self, settings: EmailSettings) -> None:
        self._per_hour = settings.messages_per_hour
        self._per_thread = settings.thread_messages
        self._arrivals: OrderedDict[str, deque[float]] = OrderedDict()

    def excess(self, sender: str, at: float, thread_messages: int) -> str:
        """Count a message; which limit it exceeds, or an empty text."""
        if self._per_thread and thread_messages > self._per_thread:
            return f"more than {self._per_thread} messages in one thread"
        arrivals = self._arrivals.setdefault(sender, deque())
        self._arrivals.move_to_end(sender)
        if len(self._arrivals) > MAX_SENDERS:
            self._arrivals.popitem(last=False)
        while arrivals and arrivals[0] <= at - WINDOW_SECONDS:
            arrivals.popleft()
        if self._per_hour and len(arrivals) >= self._per_hour:
            return f"more than {self._per_hour} messages of one sender in an hour"
        arrivals.append(at)
        return ""


ADDRESS_VARIABLE: Final = "EMAIL_ADDRESS"
PASSWORD_VARIABLE: Final = "EMAIL_PASSWORD"  # noqa: S105 - the name of a variable
SECURITY_KINDS: Final = ("tls", "starttls", "none")
TLS_PORTS: Final = frozenset({465, 993})
IMAP_PORT: Final = 993
SMTP_PORT: Final = 465
POLL_SECONDS: Final = 60
MAX_POLL_SECONDS: Final = 25 * 60  # servers may end IDLE after 29 minutes
MESSAGES_PER_HOUR: Final = 60
THREAD_MESSAGES: Final = 200
UNVERIFIED_TEXT: Final = (
    "E-mail: set platforms.email.authserv_id in config.yaml to the first word of the "
    "Authentication-Results header that your mail server adds to incoming messages (Gmail: "
    "mx.google.com). Without it, senders cannot be verified."
)


class MailServer(NamedTuple):
    """A server, and how the connection to it is encrypted."""

    host: str
    port: int
    security: str  # one of SECURITY_KINDS

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


class EmailSettings(NamedTuple):
    """The configuration of a mailbox."""

    address: str  # lower case
    username: str
    password: str
    imap: MailServer
    smtp: MailServer
    ca_file: str
    folder: str
    poll_seconds: int
    authserv_ids: tuple[str, ...]  # lower case; empty: senders are not verified
    messages_per_hour: int  # of one sender; 0: no limit
    thread_messages: int  # of one thread; 0: no limit

    @property
    def domain(self) -> str:
        """The domain of the address."""
        return self.address.rpartition("@")[2]

    def tls_context(self) -> ssl.SSLContext:
        """A TLS context that verifies the certificate and the host name."""
        try:
            return ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:
            raise PlatformRefusedError(
                f"E-mail: cannot read the certificates of platforms.email.ca_file: {error}"
            ) from error


def read_settings(config: PlatformConfig, secret: Callable[[str], str]) -> EmailSettings:
    """The settings of a mailbox; PlatformRefusedError if one is missing or wrong."""
    extra = config.extra
    address = parse_address(secret(ADDRESS_VARIABLE))
    if address is None:
        raise PlatformRefusedError(
            f"E-mail: {ADDRESS_VARIABLE} is not an address such as hermes@example.org."
        )
    return EmailSettings(
        address,
        config_values.text(extra.get("username")) or address,
        secret(PASSWORD_VARIABLE),
        _server(extra, "imap", IMAP_PORT),
        _server(extra, "smtp", SMTP_PORT),
        config_values.text(extra.get("ca_file")),
        config_values.text(extra.get("folder")) or "INBOX",
        min(
            config_values.number(extra.get("poll_seconds"), POLL_SECONDS, minimum=1),
            MAX_POLL_SECONDS,
        ),
        _authserv_ids(extra),
        config_values.number(extra.get("messages_per_hour"), MESSAGES_PER_HOUR, minimum=0),
        config_values.number(extra.get("thread_messages"), THREAD_MESSAGES, minimum=0),
    )


def _server(extra: JsonObject, kind: str, default_port: int) -> MailServer:
    host = config_values.text(extra.get(f"{kind}_host")).strip()
    if not host:
        raise PlatformRefusedError(
            f"E-mail: set platforms.email.{kind}_host in config.yaml, e.g. {kind}.example.org."
        )
    port = config_values.number(extra.get(f"{kind}_port"), default_port, minimum=1)
    default = "tls" if port in TLS_PORTS else "starttls"
    security = config_values.text(extra.get(f"{kind}_security"), default).lower()
    if security not in SECURITY_KINDS:
        raise PlatformRefusedError(
            f"E-mail: platforms.email.{kind}_security must be tls, starttls or none."
        )
    server = MailServer(host, port, security)
    if security == "none" and not server.is_loopback:
        raise PlatformRefusedError(
            f"E-mail: platforms.email.{kind}_security: none would send the password in plain text "
            f"to {host}. Use tls or starttls; none is for a server on this machine."
        )
    return server


def _authserv_ids(extra: JsonObject) -> tuple[str, ...]:
    """The servers that vouch for senders; none if verification is disabled."""
    if not config_values.flag(extra.get("verify_sender"), default=True):
        return ()
    value = extra.get("authserv_id")
    names = value if isinstance(value, list) else config_values.text(value).split(",")
    ids = tuple(name for item in names if (name := config_values.text(item).strip().lower()))
    if not ids:
        raise PlatformRefusedError(UNVERIFIED_TEXT)
    return ids
