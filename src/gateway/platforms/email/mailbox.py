"""The IMAP connection to a mailbox. The methods block: they run in the thread of the listener.

The folder is opened read-only: nothing in the mailbox is changed, no message is marked as read.
"""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from imapclient import IMAPClient, SocketTimeout  # type: ignore[import-untyped] # it has no types
from imapclient.exceptions import (  # type: ignore[import-untyped]
    CapabilityError,
    IMAPClientAbortError,
    IMAPClientError,
    LoginError,
)

from gateway import config_values
from gateway.platforms.email.settings import PASSWORD_VARIABLE
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.base import Memory
    from gateway.platforms.email.settings import EmailSettings, MailServer

REREAD_SECONDS: Final = 3 * 86400.0  # before the newest received message
CLOCK_TOLERANCE_SECONDS: Final = 86400.0  # between the clocks of senders and this one


class MailPosition(NamedTuple):
    """The last received message of a folder."""

    validity: int
    uid: int
    started_at: float  # the first start: older messages are never answered
    newest_at: float  # arrival of the newest received message
    reread_uid: int = 0  # up to this UID messages are read for the second time

    def is_reread(self, uid: int) -> bool:
        """Whether a message may have been received under an earlier UIDVALIDITY."""
        return uid <= self.reread_uid

    @property
    def reread_from(self) -> float:
        """From when on messages are read again."""
        return max(self.started_at, self.newest_at - REREAD_SECONDS)

    def is_too_old(self, sent_at: float | None) -> bool:
        """Whether a message that is read again was sent before the first start."""
        return sent_at is not None and sent_at < self.started_at - CLOCK_TOLERANCE_SECONDS

    def received(self, uid: int, at: float) -> MailPosition:
        """The position after a message."""
        return self._replace(uid=max(uid, self.uid), newest_at=max(at, self.newest_at))


class PositionStore:
    """The stored position of a folder."""

    def __init__(self, memory: Memory, account: str, folder: str) -> None:
        self._memory = memory
        self._name = f"position:{account}:{folder}"

    async def load(self) -> MailPosition | None:
        """The stored position; None before the first start."""
        text = await self._memory.recall(self._name)
        if text is None:
            return None
        stored = config_values.mapping(json.loads(text))
        return MailPosition(
            config_values.number(stored.get("validity"), 0),
            config_values.number(stored.get("uid"), 0),
            config_values.fraction(stored.get("started_at"), 0.0),
            config_values.fraction(stored.get("newest_at"), 0.0),
            config_values.number(stored.get("reread_uid"), 0),
        )

    async def save(self, position: MailPosition) -> None:
        """Store a position; when this returns, it is on disk."""
        await self._memory.keep(self._name, json.dumps(position._asdict()))


log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 20.0
READ_SECONDS: Final = 60.0
MAX_MAIL_BYTES: Final = 75_000_000  # a file of 50 MB, encoded
CUT_MAIL_BYTES: Final = 1_000_000  # of a message that is larger
TEMPORARY_WORDS: Final = ("unavailable", "temporar", "try again", "inuse", "limit", "too many")
CERTIFICATE_HAS_EXPIRED: Final = 10  # of OpenSSL
MAIL_ERRORS: Final = (IMAPClientError, OSError)


class FetchedMail(NamedTuple):
    """A message as it is in the mailbox."""

    uid: int
    data: bytes
    size: int
    received_at: float

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning was fetched."""
        return len(self.data) < self.size and self.size > MAX_MAIL_BYTES


class Mailbox:
    """A folder of an account, opened by `open`."""

    def __init__(self, settings: EmailSettings) -> None:
        self._settings = settings
        self._client: Any = None
        self._has_idle = False
        self._aborted = threading.Event()
        self.validity = 0
        self.next_uid = 1

    def open(self) -> None:
        """Connect, log in and open the folder; PlatformError if that fails."""
        server = self._settings.imap
        is_open = False
        try:
            self._client = self._connect(server)
            if self._aborted.is_set():
                raise PlatformDownError("The connection to the mailbox was closed.")
            self._client.login(self._settings.username, self._settings.password)
            self._open_folder()
            is_open = True
        except LoginError as error:
            raise login_error(server, str(error)) from error
        except MAIL_ERRORS as error:
            raise connection_error(server, error) from error
        finally:
            if not is_open:
                self._drop()

    def _connect(self, server: MailServer) -> Any:
        """An encrypted connection; an unencrypted one only on this machine."""
        context = self._settings.tls_context()
        is_tls = server.security == "tls"
        client = IMAPClient(
            server.host,
            server.port,
            ssl=is_tls,
            ssl_context=context if is_tls else None,
            timeout=SocketTimeout(CONNECT_SECONDS, READ_SECONDS),
        )
        if server.security == "starttls":
            try:
                client.starttls(context)
            except (CapabilityError, IMAPClientAbortError) as error:
                client.shutdown()
                raise PlatformRefusedError(no_starttls(server)) from error
        return client

    def _open_folder(self) -> None:
        folder = self._settings.folder
        try:
            opened = self._client.select_folder(folder, readonly=True)
        except IMAPClientAbortError:
            raise
        except IMAPClientError as error:
            raise PlatformRefusedError(
                f"E-mail: the folder {folder!r} cannot be opened: {error}. Change "
                "platforms.email.folder in config.yaml."
            ) from error
        self.validity = int(opened[b"UIDVALIDITY"])
        self.next_uid = int(opened.get(b"UIDNEXT") or self._highest_uid() + 1)
        self._has_idle = bool(self._client.has_capability("IDLE"))

    def _highest_uid(self) -> int:
        return max(self._client.search("ALL"), default=0)

    def uids_after(self, uid: int) -> list[int]:
        """The UIDs after *uid*, in order."""
        found = self._client.search(["UID", f"{uid + 1}:*"])  # always contains the last message
        return sorted(item for item in found if item > uid)

    def uids_since(self, at: float) -> list[int]:
        """The UIDs of messages that arrived since a day, in order."""
        day = datetime.fromtimestamp(at, UTC).date()
        return sorted(self._client.search(["SINCE", day]))

    def fetch(self, uid: int) -> FetchedMail | None:
        """A message; None if it was deleted."""
        facts = self._client.fetch([uid], ["RFC822.SIZE", "INTERNALDATE"]).get(uid)
        if not facts:
            return None
        size = int(facts[b"RFC822.SIZE"])
        part = f"BODY.PEEK[]<0.{CUT_MAIL_BYTES}>" if size > MAX_MAIL_BYTES else "BODY.PEEK[]"
        content = self._client.fetch([uid], [part]).get(uid) or {}
        data = next((value for name, value in content.items() if name.startswith(b"BODY[")), None)
        if data is None:
            return None
        arrived = facts.get(b"INTERNALDATE")
        received_at = arrived.timestamp() if isinstance(arrived, datetime) else time.time()
        return FetchedMail(uid, bytes(data), size, received_at)

    def wait(self, seconds: float) -> bool:
        """Wait until the server reports a change, at most *seconds*; whether it has.

        The library waits for the socket only. A report that arrived together with the response to
        an earlier command is not found before the end of the wait.
        """
        if not self._has_idle:
            self._aborted.wait(seconds)
            self._client.noop()
            return False
        self._client.idle()
        reports = self._client.idle_check(timeout=seconds)
        _text, more = self._client.idle_done()
        return any(b"EXISTS" in report for report in (*reports, *more))

    def close(self) -> None:
        """End the connection."""
        try:
            if self._client is not None and not self._aborted.is_set():
                self._client.logout()
        except MAIL_ERRORS as error:
            log.debug("mailbox not closed cleanly: %s", error)
        self._drop()

    def _drop(self) -> None:
        """Close the socket."""
        client, self._client = self._client, None
        try:
            if client is not None:
                client.shutdown()
        except OSError as error:
            log.debug("mailbox socket already closed: %s", error)

    def abort(self) -> None:
        """End a blocked method from another thread."""
        self._aborted.set()
        client = self._client
        if client is None:
            return
        try:
            # The method of the class of a TLS socket changes what the other thread reads from.
            socket.socket.shutdown(client.socket(), socket.SHUT_RDWR)
        except (OSError, AttributeError) as error:  # it is closed already
            log.debug("mailbox connection already closed: %s", error)


def login_error(server: MailServer, text: str) -> PlatformError:
    """The error of a rejected or failed login."""
    if any(word in text.lower() for word in TEMPORARY_WORDS):
        return PlatformDownError(f"{server.host} is not ready for the login: {text}")
    return PlatformRefusedError(
        f"E-mail: {server.host} rejected the login: {text}. Set EMAIL_ADDRESS and "
        f"{PASSWORD_VARIABLE} in .env or the environment; many providers require an app password."
    )


def connection_error(server: MailServer, error: Exception) -> PlatformError:
    """The error of a connection that failed."""
    text = str(error) or type(error).__name__
    if (
        isinstance(error, ssl.SSLCertVerificationError)
        and error.verify_code != CERTIFICATE_HAS_EXPIRED
    ):
        return PlatformRefusedError(
            f"E-mail: the certificate of {server.host} is not trusted: {error.verify_message}. "
            "Check the host name; for a server with a certificate of your own, set "
            "platforms.email.ca_file to a file with its authority."
        )
    return PlatformDownError(f"No connection to {server.host}:{server.port}: {text}")


def no_starttls(server: MailServer) -> str:
    """The text for a server without STARTTLS."""
    return (
        f"E-mail: {server.host}:{server.port} does not offer STARTTLS, so the password is not "
        "sent. Use the port for TLS (IMAP: 993, SMTP: 465)."
    )
