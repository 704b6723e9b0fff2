"""Sends messages by SMTP. The methods block: they run in a thread."""

from __future__ import annotations

import logging
import smtplib
from typing import TYPE_CHECKING, Final

from gateway.platforms.base import ErrorKind, SendResult
from gateway.platforms.email.mailbox import connection_error, login_error, no_starttls
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.email.replies import OutgoingMail
    from gateway.platforms.email.settings import EmailSettings

log = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 60.0
SENDING_LIMIT: Final = "5.4.5"  # the enhanced status code of a daily limit
STATUS_KINDS: Final = {
    421: ErrorKind.TRANSIENT,
    450: ErrorKind.TRANSIENT,
    451: ErrorKind.TRANSIENT,
    452: ErrorKind.RATE_LIMITED,
    530: ErrorKind.TRANSIENT,  # a problem of the login: the reply stays due
    535: ErrorKind.TRANSIENT,
    550: ErrorKind.NOT_FOUND,
    551: ErrorKind.NOT_FOUND,
    552: ErrorKind.TOO_LONG,
    553: ErrorKind.NOT_FOUND,
    554: ErrorKind.FORBIDDEN,
}


class SmtpSender:
    """Sends messages of an account, each over a connection of its own."""

    def __init__(self, settings: EmailSettings) -> None:
        self._settings = settings

    def check(self) -> None:
        """Log in once; PlatformError if that fails."""
        _quit(self._connect())

    def send(self, mail: OutgoingMail) -> SendResult:
        """Send a message; an error does not raise."""
        try:
            client = self._connect()
        except PlatformError as error:  # the reply stays due
            return SendResult(False, error=str(error), error_kind=ErrorKind.TRANSIENT)
        try:
            result = self._transmit(client, mail)
        finally:
            client.close()
        return result

    def _transmit(self, client: smtplib.SMTP, mail: OutgoingMail) -> SendResult:
        is_sending = False
        try:
            for code, reply in (client.mail(self._settings.address), client.rcpt(mail.recipient)):
                if code not in {250, 251}:
                    return rejection(code, reply)
            is_sending = True
            code, reply = client.data(mail.content.as_bytes())
        except smtplib.SMTPResponseException as error:  # of the DATA command, before the content
            return rejection(error.smtp_code, error.smtp_error)
        except (smtplib.SMTPException, OSError) as error:
            text = f"no response from {self._settings.smtp.host}: {error}"
            kind = ErrorKind.TRANSIENT
            return SendResult(False, error=text, error_kind=kind, may_have_arrived=is_sending)
        if code != 250:
            return rejection(code, reply)
        _quit(client)
        return SendResult(True, message_id=mail.message_id)

    def _connect(self) -> smtplib.SMTP:
        """A connection after the login; PlatformError if that fails."""
        server = self._settings.smtp
        context = self._settings.tls_context()
        client: smtplib.SMTP | None = None
        try:
            if server.security == "tls":
                client = smtplib.SMTP_SSL(
                    server.host, server.port, timeout=TIMEOUT_SECONDS, context=context
                )
            else:
                client = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_SECONDS)
            client.ehlo_or_helo_if_needed()
            if server.security == "starttls":
                if not client.has_extn("starttls"):
                    raise PlatformRefusedError(no_starttls(server))
                client.starttls(context=context)
                client.ehlo_or_helo_if_needed()
            self._log_in(client)
        except (smtplib.SMTPException, OSError, PlatformError) as error:
            if client is not None:
                client.close()
            raise self._error(error) from error
        return client

    def _log_in(self, client: smtplib.SMTP) -> None:
        """Log in; a server on this machine may do without."""
        if client.has_extn("auth"):
            client.login(self._settings.username, self._settings.password)
        elif not self._settings.smtp.is_loopback:
            host = self._settings.smtp.host
            raise PlatformRefusedError(f"E-mail: {host} does not offer a login for sending.")

    def _error(self, error: Exception) -> PlatformError:
        server = self._settings.smtp
        if isinstance(error, PlatformError):
            return error
        if isinstance(error, smtplib.SMTPAuthenticationError):
            text = _decoded(error.smtp_error)
            if 400 <= error.smtp_code < 500:
                return PlatformDownError(f"{server.host} is not ready for the login: {text}")
            return login_error(server, text)
        return connection_error(server, error)


def rejection(code: int, reply: bytes | str) -> SendResult:
    """The result of a message that the server has rejected."""
    text = _decoded(reply)
    default = ErrorKind.TRANSIENT if 400 <= code < 500 else ErrorKind.FORBIDDEN
    kind = STATUS_KINDS.get(code, default)
    if code in {550, 554} and SENDING_LIMIT in text:
        kind = ErrorKind.RATE_LIMITED
    return SendResult(False, error=f"{code} {text}", error_kind=kind)


def _decoded(reply: bytes | str) -> str:
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply


def _quit(client: smtplib.SMTP) -> None:
    """End a connection whose work is done."""
    try:
        client.quit()
    except (smtplib.SMTPException, OSError) as error:
        log.debug("SMTP connection not closed cleanly: %s", error)
        client.close()
