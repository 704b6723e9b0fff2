"""Outgoing messages: headers of the thread, text and attachment."""

from __future__ import annotations

import mimetypes
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.platforms.email.addresses import message_ids, parse_address
from gateway.platforms.email.automatic_mail import LOOP_HEADER
from gateway.platforms.email.bodies import one_line
from gateway.platforms.email.threads import MAX_REFERENCES, reply_id
from hermes_core.errors import UsageError

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
