"""The adapter: what the gateway calls, and the task that listens and reconnects."""

from __future__ import annotations

import asyncio
import functools
import logging
import uuid
from typing import TYPE_CHECKING, ClassVar, Final

from gateway.platforms.base import Abilities, ErrorKind, OutgoingMessage, SendResult
from gateway.platforms.ordered_queues import OrderedQueues
from gateway.platforms.problems import UNREACHABLE, ConnectionProblems, ReportsProblem
from gateway.platforms.quarantine import UpdateGuard
from gateway.platforms.reconnect import RECONNECT_BACKOFF, ReconnectDelay
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

from .connection import IrcConnection, UnconfirmedError
from .lines import split_message
from .messages import GUEST_PREFIX, IrcMessageReader
from .settings import CHANNEL, NICK, IrcSettings

if TYPE_CHECKING:
    from gateway.platforms.base import AdapterContext, Receive
    from hermes_core.backoff import Backoff

    from .connection import Delivery
    from .lines import IrcLine

log = logging.getLogger(__name__)

MAX_TEXT_CHARS: Final = 1600  # five lines or so: a network may slow down or cut longer ones
DRAIN_SECONDS: Final = 3.0  # to store what was received; the server does not send it again
REFUSED: Final = "refused"
UNKNOWN_TARGET: Final = frozenset({"401", "403"})  # errors for a nick or channel


class IrcAdapter(ReportsProblem):
    """An agent on one IRC network."""

    abilities: ClassVar = Abilities(longest_text=MAX_TEXT_CHARS)

    def __init__(self, context: AdapterContext, backoff: Backoff = RECONNECT_BACKOFF) -> None:
        self._settings = IrcSettings.parse(context)
        self.account = f"{self._settings.nick}@{self._settings.server}"
        self._memory = context.memory
        self._backoff = backoff
        self._problems = ConnectionProblems("IRC")
        self._reader = IrcMessageReader(trust_nicks=self._settings.trust_nicks)
        self._guard = UpdateGuard(context.quarantine)
        self._queues = OrderedQueues("IRC", backoff)
        self._nicks: dict[str, str] = {}  # the latest nick of each account
        self._connection: IrcConnection | None = None
        self._task: asyncio.Task[None] | None = None

    # Connection

    async def connect(self, receive: Receive) -> None:
        """Connect and start listening."""
        await self.disconnect()
        self._problems.clear_all()
        await self._open()
        keep_connected = functools.partial(self._keep_connected, receive)
        self._task = self._problems.start_listener(keep_connected, self._backoff)

    async def disconnect(self) -> None:
        """Stop listening; what was received is stored first."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self._close()
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while len(self._queues):  # noqa: ASYNC110 - the queues have no event for it
                    await asyncio.sleep(0.01)
        except TimeoutError:
            log.error("%d IRC messages lost: they could not be stored", len(self._queues))
        await self._queues.close()

    async def _open(self) -> IrcConnection:
        self._connection = connection = IrcConnection(self._settings)
        try:
            await connection.open()
        except PlatformError:
            await self._close()
            raise
        if "account-tag" not in connection.capabilities and not self._settings.trust_nicks:
            log.warning(
                "IRC server does not name the accounts of senders: everyone is a guest "
                "(see trust_nicks in the README of the plugin)"
            )
        return connection

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _keep_connected(self, receive: Receive) -> None:
        """Listen, and connect again whenever a connection ends; less often after a refusal."""
        delay = ReconnectDelay(self._backoff)
        while True:
            try:
                connection = self._connection or await self._open()
                delay.connected()
                self._problems.clear(REFUSED)
                self._problems.clear(UNREACHABLE)
                await connection.run(functools.partial(self._enqueue, receive))
            except PlatformError as error:
                await self._close()
                is_refused = isinstance(error, PlatformRefusedError)
                if is_refused:
                    self._problems.note(REFUSED, str(error))
                pause = delay.next_delay(is_refused=is_refused)
                self._problems.note_failure(delay.failures, str(error))
                log.warning("%s; reconnecting in %g s", error, pause)
                await asyncio.sleep(pause)

    # Receiving

    def _enqueue(self, receive: Receive, line: IrcLine) -> None:
        """Queue a message: in order within a chat, and again if it could not be stored."""
        message_id = line.tags.get("msgid") or uuid.uuid4().hex
        nicks = {self._settings.nick, self._connection.nick if self._connection else ""} - {""}

        async def read_and_receive() -> None:
            await self._note_nick(line)
            event = self._reader.read(line, message_id, nicks)
            if event is not None:
                await receive(event)

        async def job() -> None:
            await self._guard.handle(message_id, repr(line), read_and_receive())

        chat = line.param(0) if CHANNEL.fullmatch(line.param(0)) else line.nick
        self._queues.add(chat.lower(), job, functools.partial(_report_lost, chat))

    async def _note_nick(self, line: IrcLine) -> None:
        """Remember under which nick the owner of an account can be reached."""
        account = line.tags.get("account")
        if account and self._nicks.get(account) != line.nick:
            await self._memory.keep(f"nick:{account}", line.nick)
            self._nicks[account] = line.nick

    # Sending

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text; a success means that the server has handled all its lines."""
        connection = self._connection
        if connection is None:
            return _failure("IRC is not connected", ErrorKind.TRANSIENT)
        try:
            target = await self._target(connection, outgoing.chat_id)
            if not target:
                error = f"{outgoing.chat_id} is not logged in under a known nick"
                return _failure(error, ErrorKind.TRANSIENT)
            delivery = await connection.send(target, split_message(outgoing.text, target))
        except UnconfirmedError as error:
            return _failure(str(error), ErrorKind.TRANSIENT)._replace(may_have_arrived=True)
        except PlatformDownError as error:
            return _failure(str(error), ErrorKind.TRANSIENT)
        except ValueError as error:  # a chat ID that is neither a channel nor a nick
            return _failure(str(error), ErrorKind.NOT_FOUND)
        return _result(delivery, has_echo="echo-message" in connection.capabilities)

    async def _target(self, connection: IrcConnection, chat_id: str) -> str:
        """The nick or channel of a chat; empty if an account is not logged in.

        Replies for an account go only to a nick that is logged in to it: its last nick may
        belong to another person by now.
        """
        name = chat_id.removeprefix(GUEST_PREFIX)
        if not CHANNEL.fullmatch(name) and not NICK.fullmatch(name):
            raise ValueError(f"{chat_id!r} is neither a channel nor a nick")
        if CHANNEL.fullmatch(name) or name != chat_id:
            return name
        nick = self._nicks.get(name) or await self._memory.recall(f"nick:{name}") or name
        if self._settings.trust_nicks:
            return nick
        account = await connection.account_of(nick)
        return nick if account.lower() == name.lower() else ""


def _failure(error: str, kind: ErrorKind) -> SendResult:
    return SendResult(False, error=error, error_kind=kind)


def _result(delivery: Delivery, *, has_echo: bool) -> SendResult:
    error = delivery.error
    if error is not None:
        if error.command not in UNKNOWN_TARGET:
            return _failure(error.params[-1], ErrorKind.FORBIDDEN)
        is_channel = CHANNEL.fullmatch(delivery.target)  # a person may come back
        kind = ErrorKind.NOT_FOUND if is_channel else ErrorKind.TRANSIENT
        return _failure(error.params[-1], kind)
    if has_echo and delivery.echoes < delivery.lines_written:
        result = _failure("the server has not relayed the message", ErrorKind.UNKNOWN)
        return result._replace(may_have_arrived=True)
    return SendResult(True, message_id=delivery.message_id or None)


async def _report_lost(chat: str) -> None:
    log.error("IRC messages of %s lost: too many wait to be stored", chat)
