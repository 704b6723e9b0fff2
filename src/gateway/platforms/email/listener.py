"""Listens to a mailbox with IDLE, without gaps.

The position is stored after its messages are received. IDLE alone is not reliable: a server may
report a message before a search finds it, and stays silent then. So each report and each message
is followed by searches at growing distances, up to `poll_seconds`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from gateway.platforms.email.mailbox import MAIL_ERRORS, Mailbox, MailPosition, connection_error
from gateway.platforms.email.messages import parse_body, parse_headers
from gateway.platforms.problems import UNREACHABLE
from gateway.platforms.reconnect import RECONNECT_BACKOFF, ReconnectDelay
from hermes_core.backoff import Backoff
from hermes_core.errors import HermesError, PlatformRefusedError
from hermes_core.isolate import attempt_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.platforms.base import Receive
    from gateway.platforms.email.mailbox import FetchedMail, PositionStore
    from gateway.platforms.email.messages import MailReader, ParsedMail
    from gateway.platforms.email.settings import EmailSettings, MailLimits
    from gateway.platforms.email.threads import MailThreads
    from gateway.platforms.problems import ConnectionProblems
    from gateway.platforms.quarantine import UpdateGuard

log = logging.getLogger(__name__)

LOGIN_PROBLEM: Final = "login"
FIRST_WAIT_SECONDS: Final = 1.0  # after a report or a message
MESSAGES_PER_SAVE: Final = 20
CLOSE_SECONDS: Final = 3.0


class MailListener:
    """Receives the messages of a mailbox."""

    def __init__(
        self,
        settings: EmailSettings,
        reader: MailReader,
        threads: MailThreads,
        limits: MailLimits,
        store: PositionStore,
        problems: ConnectionProblems,
        guard: UpdateGuard,
        backoff: Backoff = RECONNECT_BACKOFF,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._threads = threads
        self._limits = limits
        self._store = store
        self._problems = problems
        self._guard = guard
        self._backoff = backoff
        self._waits = Backoff(
            FIRST_WAIT_SECONDS, max(FIRST_WAIT_SECONDS, float(settings.poll_seconds))
        )
        self._thread = ThreadPoolExecutor(1, "mailbox")  # everything with the library
        self._mailbox: Mailbox | None = None
        self._position = MailPosition(0, 0, 0.0, 0.0)
        self._unsaved = 0

    async def begin(self) -> None:
        """Open the mailbox and load the position; a first start ignores what is there already."""
        mailbox = await self._open()
        stored = await self._store.load()
        now = time.time()
        if stored is None:
            position = MailPosition(mailbox.validity, mailbox.next_uid - 1, now, now)
        elif stored.validity != mailbox.validity:
            log.warning("mailbox has new UIDs: recent messages are read again")
            last = mailbox.next_uid - 1
            position = stored._replace(validity=mailbox.validity, uid=0, reread_uid=last)
        else:
            position = stored
        if position != stored:
            await self._store.save(position)
        self._position = position

    async def run(self, receive: Receive) -> None:
        """Receive messages until cancelled; reconnect after a failure."""
        delay = ReconnectDelay(self._backoff)
        while True:
            try:
                if self._mailbox is None:
                    await self.begin()
                await self._listen(receive, delay)
            except (HermesError, *MAIL_ERRORS) as error:
                await self._close_mailbox()
                await self._pause(delay, error)

    async def _pause(self, delay: ReconnectDelay, error: Exception) -> None:
        is_refused = isinstance(error, PlatformRefusedError)
        if isinstance(error, MAIL_ERRORS):
            error = connection_error(self._settings.imap, error)
        if is_refused:
            self._problems.note(LOGIN_PROBLEM, str(error))
        pause = delay.next_delay(is_refused=is_refused)
        self._problems.note_failure(delay.failures, str(error))
        log.warning("mailbox not read: %s; retrying in %g s", error, pause)
        await asyncio.sleep(pause)

    async def _listen(self, receive: Receive, delay: ReconnectDelay) -> None:
        """Search, receive and wait, until the connection ends."""
        quiet_searches = 1
        while True:
            is_active = await self._receive_new(receive)
            delay.reset()
            self._problems.clear(LOGIN_PROBLEM)
            self._problems.clear(UNREACHABLE)
            quiet_searches = 1 if is_active else quiet_searches + 1
            wait = self._waits.delay(quiet_searches)
            if await self._call(Mailbox.wait, wait):
                quiet_searches = 0

    async def _receive_new(self, receive: Receive) -> bool:
        """Receive the messages after the position; whether there were any."""
        position = self._position
        uids = await self._call(Mailbox.uids_after, position.uid)
        if uids and position.is_reread(uids[0]):
            recent = set(await self._call(Mailbox.uids_since, position.reread_from))
            uids = [uid for uid in uids if uid in recent or not position.is_reread(uid)]
        try:
            for uid in uids:
                await self._receive_uid(receive, uid)
        finally:
            await self._save_position()
        return bool(uids)

    async def _receive_uid(self, receive: Receive, uid: int) -> None:
        fetched = await self._call(Mailbox.fetch, uid)
        arrived_at = self._position.newest_at
        if fetched is not None:
            arrived_at = fetched.received_at
            content = {"uid": uid, "size": fetched.size}
            update_id = f"{self._settings.address}:{self._position.validity}:{uid}"
            await self._guard.handle(update_id, content, self._receive_mail(receive, fetched))
        self._position = self._position.received(uid, arrived_at)
        self._unsaved += 1
        if self._unsaved >= MESSAGES_PER_SAVE:
            await self._save_position()

    async def _receive_mail(self, receive: Receive, fetched: FetchedMail) -> None:
        """Receive a message; its body is read only if its sender is verified and has access."""
        mail = await asyncio.to_thread(parse_headers, fetched.data, self._settings.address)
        is_reread = self._position.is_reread(fetched.uid)
        if is_reread and self._position.is_too_old(mail.sent_at):
            return
        reason = self._reader.why_ignored(mail)
        if reason:
            log.warning("e-mail from %s ignored: %s", mail.sender, reason)
            return
        sender = str(mail.sender)
        thread = self._threads.find(sender, mail.message_id, mail.references)
        if not await self._reader.has_access(mail, thread, fetched.received_at):
            await receive(self._reader.headers_event(mail, thread, fetched.received_at))
            return
        mail = mail._replace(body=await asyncio.to_thread(parse_body, fetched.data))
        if mail.is_empty:
            log.warning("e-mail from %s ignored: empty message", sender)
            return
        record = await self._threads.note(
            sender, thread, mail.message_id, mail.subject, mail.references
        )
        excess = (
            "" if is_reread else self._limits.excess(sender, fetched.received_at, record.received)
        )
        if excess:
            await self._set_aside(mail, excess)
            return
        await receive(await self._reader.event(mail, thread, fetched))

    async def _set_aside(self, mail: ParsedMail, reason: str) -> None:
        log.warning("e-mail from %s set aside: %s", mail.sender, reason)
        content = {"from": mail.sender, "subject": mail.subject, "message_id": mail.message_id}
        await self._guard.set_aside(mail.message_id, content, reason)

    async def _save_position(self) -> None:
        if self._unsaved:
            await self._store.save(self._position)
            self._unsaved = 0

    # The thread of the library

    async def _open(self) -> Mailbox:
        mailbox = self._mailbox = Mailbox(self._settings)
        is_open = False
        try:
            await self._run(mailbox.open)
            is_open = True
        finally:
            if not is_open:
                self._mailbox = None
                mailbox.abort()
                self._thread.submit(mailbox.close)
        return mailbox

    async def _call(self, method: Callable[..., Any], *arguments: object) -> Any:
        return await self._run(functools.partial(method, self._mailbox, *arguments))

    async def _run(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _close_mailbox(self) -> None:
        mailbox, self._mailbox = self._mailbox, None
        if mailbox is not None:
            mailbox.abort()
            # The socket is closed also if this task is cancelled now.
            closing = asyncio.shield(self._run(mailbox.close))
            await attempt_async("close mailbox", closing)

    async def close(self) -> None:
        """End the connection, also while the thread waits for the server."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._close_mailbox()
        finally:
            self._thread.shutdown(wait=False)
