"""E-mail: a mailbox of the agent's own, read by IMAP and answered by SMTP.

Requires EMAIL_ADDRESS and EMAIL_PASSWORD. Under `platforms.email` in config.yaml:

    imap_host, imap_port, imap_security   the server to read from (port 993, tls)
    smtp_host, smtp_port, smtp_security   the server to send with (port 465, tls)
    username           if it is not the address
    ca_file            certificates of an authority of your own
    folder             INBOX
    poll_seconds       60: the longest time between two searches
    authserv_id        the server name in Authentication-Results headers; required
    verify_sender      true: answer only senders that the own server vouches for
    messages_per_hour  60: of one sender; more are set aside
    thread_messages    200: of one thread; more are set aside

Each thread is a conversation with its sender. Messages from before the first start are ignored.
Nothing in the mailbox is changed. The message ID of a reply follows from its idempotency key, so a
repeated reply can be recognized, but not every receiver drops it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, ClassVar, Final

from gateway.platforms.base import Abilities, ErrorKind, OutgoingMessage, SendResult
from gateway.platforms.email.listener import MailListener
from gateway.platforms.email.mailbox import PositionStore
from gateway.platforms.email.messages import MailReader
from gateway.platforms.email.settings import MailLimits, read_settings
from gateway.platforms.email.smtp import SmtpSender, create_mail
from gateway.platforms.email.threads import MailThreads
from gateway.platforms.problems import ConnectionProblems, ReportsProblem
from gateway.platforms.quarantine import UpdateGuard
from gateway.platforms.reconnect import RECONNECT_BACKOFF
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from gateway.platforms.base import AdapterContext, Receive
    from hermes_core.backoff import Backoff

log = logging.getLogger(__name__)

MAX_TEXT_CHARS: Final = 100_000


class EmailAdapter(ReportsProblem):
    """A mailbox."""

    abilities: ClassVar = Abilities(files=True, threads=True, longest_text=MAX_TEXT_CHARS)

    def __init__(self, context: AdapterContext, backoff: Backoff = RECONNECT_BACKOFF) -> None:
        self._context = context
        self._backoff = backoff
        self._settings = read_settings(context.config, context.secret)
        self.account = self._settings.address
        self._problems = ConnectionProblems("e-mail")
        self._sender = SmtpSender(self._settings)
        self._threads: MailThreads | None = None
        self._listener: MailListener | None = None
        self._listen_task: asyncio.Task[None] | None = None

    async def connect(self, receive: Receive) -> None:
        """Log in to both servers and listen from where the last run stopped."""
        await self.disconnect()
        self._problems.clear_all()
        await asyncio.to_thread(self._sender.check)
        threads = MailThreads(self._context.records, self._settings.domain)
        await threads.load()
        self._threads = threads
        listener = self._listener = self._create_listener(threads)
        await listener.begin()
        self._listen_task = self._problems.start_listener(lambda: listener.run(receive))

    def _create_listener(self, threads: MailThreads) -> MailListener:
        settings, context = self._settings, self._context
        return MailListener(
            settings,
            MailReader(settings, threads, context),
            threads,
            MailLimits(settings),
            PositionStore(context.memory, settings.address, settings.folder),
            self._problems,
            UpdateGuard(context.quarantine),
            self._backoff,
        )

    async def disconnect(self) -> None:
        """Stop listening."""
        task, self._listen_task = self._listen_task, None
        listener, self._listener = self._listener, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if listener is not None:
            await listener.close()

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file, as a reply in its thread."""
        if self._threads is None:
            return self._problems.not_connected
        record = self._threads.get(outgoing.chat_id, outgoing.thread_id)
        try:
            mail = await asyncio.to_thread(create_mail, self._settings, outgoing, record)
        except UsageError as error:
            return SendResult(False, error=str(error), error_kind=ErrorKind.NOT_FOUND)
        except OSError as error:
            text = f"cannot read the file: {error}"
            return SendResult(False, error=text, error_kind=ErrorKind.NOT_FOUND)
        return await asyncio.to_thread(self._sender.send, mail)


def make(context: AdapterContext) -> EmailAdapter:
    """Create the adapter."""
    return EmailAdapter(context)
