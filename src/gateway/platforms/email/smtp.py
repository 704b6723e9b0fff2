"""Sends messages by SMTP. The methods block: they run in a thread."""

from __future__ import annotations

import logging
import mimetypes
import smtplib
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.platforms.base import ErrorKind, SendResult
from gateway.platforms.email.addresses import LOOP_HEADER, message_ids, parse_address
from gateway.platforms.email.bodies import one_line
from gateway.platforms.email.mailbox import connection_error, login_error, no_starttls
from gateway.platforms.email.threads import MAX_REFERENCES, reply_id
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError, UsageError

if TYPE_CHECKING:
    from gateway.platforms.base import OutgoingMessage
    from gateway.platforms.email.settings import EmailSettings
    from gateway.platforms.email.threads import ThreadRecord

MAX_SUBJECT_CHARS: Final = 200
MAX_OWN_SUBJECT_CHARS: Final = 70
DEFAULT_SUBJECT: Final = "Message from Hermes"
SEVEN_BIT: Final = SMTP.clone(cte_type="7bit")  # not every server accepts more
DEFAULT_MIME: Final = "application/octet-stream"


class OutgoingMail(NamedTuple):
    """A message to send by SMTP."""

    recipient: str
    message_id: str
    content: EmailMessage


def create_mail(
    settings: EmailSettings, outgoing: OutgoingMessage, record: ThreadRecord | None
) -> OutgoingMail:
    """The message to send; UsageError if the recipient is not an address.

    Header values are single lines: neither a subject nor a name can add a header.
    """
    recipient = parse_address(outgoing.chat_id)
    if recipient is None:
        raise UsageError(f"{one_line(outgoing.chat_id, 100)!r} is not an e-mail address")
    message = EmailMessage(policy=SEVEN_BIT)
    message["From"] = settings.address
    message["To"] = recipient
    message["Date"] = formatdate()
    message_id = reply_id(outgoing.key, outgoing.chat_id, outgoing.thread_id, settings.domain)
    message["Message-ID"] = message_id
    answered, references = answered_messages(outgoing, record)
    message["Subject"] = _subject(outgoing, record, is_reply=bool(references))
    if answered:
        message["In-Reply-To"] = answered
    if references:
        message["References"] = " ".join(references)
    message["Auto-Submitted"] = "auto-replied" if references else "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message[LOOP_HEADER] = settings.address
    text = outgoing.text.encode("utf-8", "replace").decode().replace("\0", "")
    message.set_content(f"{text}\n")
    if outgoing.file is not None:
        _attach(message, outgoing)
    return OutgoingMail(recipient, message_id, message)


def answered_messages(
    outgoing: OutgoingMessage, record: ThreadRecord | None
) -> tuple[str, list[str]]:
    """The message that is answered, and the messages of its thread; empty for a new thread."""
    known = [item for item in (record.references if record else ()) if message_ids(item)]
    root = message_ids(outgoing.thread_id or "")
    answered = message_ids(outgoing.reply_to or "")
    if not outgoing.thread_id and not outgoing.reply_to:
        return "", []
    if not answered:
        answered = known[-1:] or root
    chain = known if answered == known[-1:] else answered
    references = list(dict.fromkeys([*root, *chain]))
    if len(references) > MAX_REFERENCES:
        references = [references[0], *references[1 - MAX_REFERENCES :]]
    return "".join(answered), references


def _subject(outgoing: OutgoingMessage, record: ThreadRecord | None, *, is_reply: bool) -> str:
    if not is_reply:
        first = outgoing.text.strip().partition("\n")[0].strip("#*_` ")
        return _sent(one_line(first, MAX_OWN_SUBJECT_CHARS)) or DEFAULT_SUBJECT
    subject = _sent(one_line(record.subject if record else "", MAX_SUBJECT_CHARS))
    return subject if subject.lower().startswith("re:") else f"Re: {subject}".strip()


def _sent(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _attach(message: EmailMessage, outgoing: OutgoingMessage) -> None:
    path = outgoing.file
    if path is None:
        return
    data = path.read_bytes()
    mime = mimetypes.guess_type(path.name)[0] or DEFAULT_MIME
    main, _, sub = mime.partition("/")
    name = _sent(one_line(path.name)) or "file"
    message.add_attachment(data, maintype=main, subtype=sub, filename=name)


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
