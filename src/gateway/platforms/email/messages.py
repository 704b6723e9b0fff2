"""Messages of a mailbox as message events."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from email import policy
from email.parser import BytesHeaderParser, BytesParser
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.platforms import incoming_files
from gateway.platforms.base import MessageEvent, MessageType
from gateway.platforms.email.addresses import automatic_reason, domain_of, message_ids, parse_sender
from gateway.platforms.email.bodies import (
    MailBody,
    header_text,
    read_body,
    without_quotations,
    without_signature,
)
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from email.message import Message

    from gateway.platforms.base import AdapterContext
    from gateway.platforms.email.mailbox import FetchedMail
    from gateway.platforms.email.settings import EmailSettings
    from gateway.platforms.email.threads import MailThread, MailThreads

MAX_HEADER_CHARS: Final = 20_000
# In a header without comments: `name=value`, where the value may be quoted, or an address whose
# local part is quoted.
_VALUE = r'(?:"(?:[^"\\]|\\.)*"(?:@[^\s;"]+)?|[^\s;"]+)'
PAIR: Final = re.compile(
    rf"\s*([A-Za-z0-9._-]+)(?:\s*/\s*[0-9]+)?\s*=\s*({_VALUE})(?=\s|$)", re.DOTALL
)
STATEMENT: Final = re.compile(r'((?:"(?:[^"\\]|\\.)*"|[^";])*)(?:;|$)', re.DOTALL)
DOMAIN_PROPERTIES: Final = {"spf": ("smtp.mailfrom",), "dkim": ("header.d", "header.i")}


class MethodResult(NamedTuple):
    """The result of one method, e.g. `dkim=pass header.d=example.org`."""

    method: str
    result: str
    properties: dict[str, str]


class AuthenticationResults(NamedTuple):
    """A parsed Authentication-Results header."""

    authserv_id: str
    results: tuple[MethodResult, ...]


def refusal(headers: list[str], authserv_ids: tuple[str, ...], address: str) -> str:
    """Why the server does not vouch for a sender; empty if it does."""
    if not headers:
        return "no Authentication-Results header"
    parsed = parse_results(headers[0])
    if parsed is None:
        return "unreadable Authentication-Results header"
    if not any(_matches(parsed.authserv_id, name) for name in authserv_ids):
        return f"Authentication-Results of {parsed.authserv_id!r}, not of the own server"
    return _failure(parsed.results, domain_of(address))


def _failure(results: tuple[MethodResult, ...], domain: str) -> str:
    """Why the results do not confirm a domain; empty if they do."""
    dmarc = [item for item in results if item.method == "dmarc"]
    if any(not _is_about(item, domain) for item in dmarc):
        return "dmarc result for another domain"
    if any(item.result in {"fail", "reject", "quarantine"} for item in dmarc):
        return "dmarc=fail"
    is_passed = any(item.result == "pass" for item in dmarc)
    if is_passed or any(_is_aligned(item, domain) for item in results):
        return ""
    return f"no passed dmarc, dkim or spf check for {domain}"


def parse_results(header: str) -> AuthenticationResults | None:
    """Parse a header; None if it does not follow the grammar."""
    if len(header) > MAX_HEADER_CHARS:
        return None
    plain = _without_comments(header)
    if plain is None:
        return None
    first, *others = STATEMENT.findall(plain)
    names = first.split()
    if not names or "=" in names[0]:  # Microsoft leaves the name out
        return None
    results = map(_method_result, others)
    return AuthenticationResults(names[0].lower(), tuple(item for item in results if item))


def _without_comments(text: str) -> str | None:
    """A header without its comments; None if a quotation or a comment does not end."""
    result: list[str] = []
    depth, is_quoted, is_escaped = 0, False, False
    for char in text:
        if is_escaped:
            is_escaped = False
        elif char == "\\" and (is_quoted or depth):
            is_escaped = True
        elif char == '"' and not depth:
            is_quoted = not is_quoted
        elif not is_quoted and char == "(":
            depth += 1
        elif not is_quoted and char == ")" and depth:
            depth -= 1
            result.append(" ")
            continue
        if not depth:
            result.append(char)
    return None if depth or is_quoted else "".join(result)


def _method_result(statement: str) -> MethodResult | None:
    """A method with its result and properties; None if anything in the statement is unclear."""
    pairs: list[tuple[str, str]] = []
    end = len(statement.rstrip())
    position = 0
    while position < end:
        match = PAIR.match(statement, position)
        if match is None:
            return None
        pairs.append((match[1].lower(), match[2].lower()))
        position = match.end()
    properties = dict(pairs[1:])
    if not pairs or len(properties) != len(pairs) - 1:
        return None
    return MethodResult(*pairs[0], properties)


def _matches(authserv_id: str, name: str) -> bool:
    """Whether a server has the configured name; `*.` stands for any host of a domain."""
    return authserv_id == name or (name.startswith("*.") and authserv_id.endswith(name[1:]))


def _is_about(result: MethodResult, domain: str) -> bool:
    """Whether a dmarc result is about the domain of the sender; some servers do not say."""
    return result.properties.get("header.from", domain).rpartition("@")[2] == domain


def _is_aligned(result: MethodResult, domain: str) -> bool:
    """Whether a check has passed for exactly the domain of the sender."""
    names = DOMAIN_PROPERTIES.get(result.method, ())
    stated = [result.properties[name] for name in names if name in result.properties]
    return result.result == "pass" and bool(stated) and domain_of(f"@{stated[0]}") == domain


log = logging.getLogger(__name__)

COMMAND_PREFIXES: Final = ("/", "!")
FORWARD_PREFIXES: Final = ("fwd:", "fw:", "wg:", "tr:", "rv:")
LARGE_NOTE: Final = "[The message is larger than {megabytes} MB: its attachments were left out.]"
UNREADABLE_NOTE: Final = "[The content of the message could not be read.]"
MAX_HEADER_BYTES: Final = 100_000
PARSER_ERRORS: Final = (RecursionError, ValueError, LookupError, TypeError, AttributeError)
IDENTITY_HEADERS: Final = ("From", "To", "Date", "Subject")


class ParsedMail(NamedTuple):
    """A parsed message."""

    message_id: str  # its own, or a hash of its content
    sender: str | None  # None if there is not exactly one clear address
    subject: str
    references: list[str]  # the first message of the thread first
    sent_at: float | None
    body: MailBody
    automatic: str  # why it is not answered; empty if a person seems to have written it
    results: list[str]  # Authentication-Results headers, the topmost first

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to answer."""
        return not self.body.text.strip() and not self.body.files and not self.subject


def parse_body(data: bytes) -> MailBody:
    """The text and the attachments of a message.

    Errors of the library stand for parts that it cannot read, e.g. with a charset of `idna` or
    thousands of them in each other.
    """
    try:
        return read_body(BytesParser(policy=policy.compat32).parsebytes(data))
    except PARSER_ERRORS as error:
        log.warning("content of an e-mail unreadable: %s: %s", type(error).__name__, error)
        return MailBody(UNREADABLE_NOTE, ())


def parse_headers(data: bytes, account: str) -> ParsedMail:
    """Parse the headers of a message, which is cheap whatever its size; it has no body yet."""
    ends = [end for mark in (b"\n\n", b"\r\n\r\n") if (end := data.find(mark)) >= 0]
    head = data[: min([*ends, MAX_HEADER_BYTES])]
    message: Message = BytesHeaderParser(policy=policy.compat32).parsebytes(head)
    sender = parse_sender([str(value) for value in message.get_all("From", [])])
    own = message_ids(str(message.get("Message-ID") or ""))
    references = message_ids(str(message.get("References") or ""))
    answered = message_ids(str(message.get("In-Reply-To") or ""))[:1]
    return ParsedMail(
        own[0] if own else _identity(message, data),
        sender,
        header_text(message.get("Subject")),
        [*references, *(item for item in answered if item not in references)],
        _sent_at(message),
        MailBody("", ()),
        automatic_reason(message, sender or "", account),
        [str(value) for value in message.get_all("Authentication-Results", [])],
    )


def _identity(message: Message, data: bytes) -> str:
    """The identity of a message without an ID: independent of headers that servers add."""
    headers = "\0".join(str(message.get(name) or "") for name in IDENTITY_HEADERS)
    separator = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
    content = data.partition(separator)[2]
    digest = hashlib.sha256(headers.encode("utf-8", "replace") + b"\0" + content)
    return f"hash:{digest.hexdigest()}"


def _sent_at(message: Message) -> float | None:
    try:
        return parsedate_to_datetime(str(message.get("Date") or "")).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None


class MailReader:
    """Creates message events; a message that is not answered has none."""

    def __init__(
        self, settings: EmailSettings, threads: MailThreads, context: AdapterContext
    ) -> None:
        self._settings = settings
        self._threads = threads
        self._media = context.media
        self._is_accepted = context.is_accepted
        self.refused = 0  # messages of senders that the server does not vouch for

    def why_ignored(self, mail: ParsedMail) -> str:
        """Why a message with these headers is not answered; empty if it is."""
        if mail.automatic:
            return f"automatic message ({mail.automatic})"
        if mail.sender is None:
            return "not exactly one sender address"
        names = self._settings.authserv_ids
        problem = refusal(mail.results, names, mail.sender) if names else ""
        if problem:
            self.refused += 1
            return f"sender not verified ({problem}); {self.refused} since the start"
        return ""

    async def has_access(self, mail: ParsedMail, thread: MailThread, at: float) -> bool:
        """Whether a message with these headers is handled."""
        return await asyncio.to_thread(self._is_accepted, self.headers_event(mail, thread, at))

    def headers_event(self, mail: ParsedMail, thread: MailThread, at: float) -> MessageEvent:
        """The message event of a message whose body is not read."""
        sender = str(mail.sender)
        return MessageEvent(
            f"Subject: {mail.subject}",
            source=SessionSource(
                Platform.EMAIL,
                sender,
                chat_name=(thread.record.subject if thread.record else "") or mail.subject,
                user_id=sender,
                user_name=sender,
                thread_id=thread.thread_id,
            ),
            message_id=mail.message_id,
            reply_to_message_id=mail.references[-1] if mail.references else None,
            timestamp=at,
        )

    async def event(
        self, mail: ParsedMail, thread: MailThread, fetched: FetchedMail
    ) -> MessageEvent:
        """The message event of a message; its attachments are stored."""
        created = self.headers_event(mail, thread, fetched.received_at)
        created.text = await asyncio.to_thread(_prompt_text, mail, thread)
        if created.text.startswith(COMMAND_PREFIXES):
            created.message_type = MessageType.COMMAND
        if fetched.is_cut:
            megabytes = fetched.size // 1_000_000
            created.text = f"{created.text}\n{LARGE_NOTE.format(megabytes=megabytes)}".strip()
        else:
            await self._store_files(created, mail)
        return created

    async def _store_files(self, created: MessageEvent, mail: ParsedMail) -> None:
        for file in mail.body.files:
            try:
                stored = await asyncio.to_thread(self._media.keep, file.data, file.name, file.mime)
            except UsageError as error:  # it is too large
                log.warning("attachment left out: %s", error)
                incoming_files.add_note(created, file.name)
            else:
                incoming_files.attach(created, stored, incoming_files.message_type_of(stored.mime))


def _prompt_text(mail: ParsedMail, thread: MailThread) -> str:
    """The text for the model: what is new, with the subject in the first message of a thread.

    The quoted part stays if the agent has not seen the earlier messages, or if it is forwarded.
    """
    is_forwarded = mail.subject.lower().startswith(FORWARD_PREFIXES)
    if thread.is_continued and not is_forwarded:
        text = without_quotations(mail.body.text)
    else:
        text = without_signature(mail.body.text)
    if text.startswith(COMMAND_PREFIXES):
        return text.partition("\n\n")[0].strip()
    if thread.is_continued or not mail.subject:
        return text
    return f"Subject: {mail.subject}\n\n{text}".strip()
