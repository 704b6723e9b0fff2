"""A connection to an IRC server: keep-alive, flood control, confirmed sends."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hermes_core.errors import PlatformDownError

from .lines import IrcLine, MalformedLineError, format_line, parse_line
from .registration import NICK_IN_USE, Registration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .settings import IrcSettings

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 60.0
PING_AFTER_SECONDS: Final = 60.0  # without a line
PONG_SECONDS: Final = 30.0
CONFIRM_SECONDS: Final = 60.0  # a server slows down clients that send much
CLOSE_SECONDS: Final = 2.0
REGAIN_SECONDS: Final = 60.0  # between attempts to get the configured nick
MAX_RECEIVED_BYTES: Final = 16 * 1024  # 8191 of tags and 512 of text
BURST_LINES: Final = 4
WHOIS_ACCOUNT: Final = "330"
WHOIS_END: Final = "318"
# Errors whose second parameter is the target of a message.
SEND_ERRORS: Final = frozenset(
    {"401", "402", "403", "404", "407", "412", "413", "414", "415", "477", "486", "531", "716"}
)
JOIN_ERRORS: Final = frozenset({"403", "405", "471", "473", "474", "475", "476", "477"})


class UnconfirmedError(PlatformDownError):
    """The connection ended after a message was written: it may have arrived."""


@dataclass
class Delivery:
    """A message that is being sent, and the server's response to it."""

    target: str
    labels: set[str] = field(default_factory=set)
    lines_written: int = 0
    echoes: int = 0
    message_id: str = ""
    error: IrcLine | None = None


class FloodControl:
    """Bounds the rate of lines: a few at once, then one per interval."""

    def __init__(self, seconds_per_line: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds_per_line
        self._clock = clock
        self._free_at = 0.0  # when the server has forgotten the lines so far

    def delay(self) -> float:
        """Count a line; the seconds to wait before it is written."""
        now = self._clock()
        self._free_at = max(self._free_at, now) + self._seconds
        return max(0.0, self._free_at - now - BURST_LINES * self._seconds)


class IrcConnection:
    """One connection; after it has ended, another one is needed."""

    def __init__(self, settings: IrcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._registration = Registration(settings)
        self._flood = FloodControl(settings.seconds_per_line, clock)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._numbers = itertools.count(1)
        self._pongs: dict[str, asyncio.Future[None]] = {}
        self._sending = asyncio.Lock()
        self._delivery: Delivery | None = None
        self._accounts: dict[str, str] = {}  # by nick, from the current WHOIS
        self._nick_tried_at = clock()
        self.nick = settings.nick

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities of IRCv3 that the server has enabled."""
        return self._registration.capabilities

    async def open(self) -> None:
        """Connect and register; PlatformDownError or PlatformRefusedError if that fails."""
        settings = self._settings
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                self._streams = await asyncio.open_connection(
                    settings.server, settings.port, ssl=settings.tls, limit=MAX_RECEIVED_BYTES
                )
                self._write(*self._registration.start())
                while not self._registration.is_done:
                    line = await self._read_line()
                    self._write(*self._registration.answer(line) if line else ())
        except OSError as error:  # also a TimeoutError, also a certificate that is not valid
            reason = str(error) or "no response"
            address = f"{settings.server}:{settings.port}"
            raise PlatformDownError(f"IRC: cannot connect to {address}: {reason}") from error
        self.nick = self._registration.nick

    async def run(self, handle: Callable[[IrcLine], None]) -> None:
        """Pass messages to *handle* until the connection ends, with PlatformDownError."""
        try:
            while True:
                line = await self._next_line()
                if line is not None and self._is_message(line):
                    handle(line)
                self._regain_nick()
        except OSError as error:
            raise PlatformDownError(f"IRC: connection lost: {error}") from error
        finally:
            for future in self._pongs.values():
                if not future.done():
                    future.set_exception(PlatformDownError("IRC: connection lost"))

    async def close(self) -> None:
        """End the connection."""
        streams, self._streams = self._streams, None
        if streams is None:
            return
        writer = streams[1]
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                writer.write(format_line("QUIT", "Hermes stops"))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except OSError as error:
            log.info("IRC connection closed: %s", error)
            writer.transport.abort()

    # Receiving

    async def _next_line(self) -> IrcLine | None:
        """The next line; a server that is silent for long has to answer a PING."""
        try:
            async with asyncio.timeout(PING_AFTER_SECONDS):
                return await self._read_line()
        except TimeoutError:
            self._write(format_line("PING", "keep-alive"))
        try:
            async with asyncio.timeout(PONG_SECONDS):
                return await self._read_line()
        except TimeoutError as error:
            raise PlatformDownError("IRC: the server does not respond") from error

    async def _read_line(self) -> IrcLine | None:
        """A line; None for one that is empty or malformed, which is logged."""
        if self._streams is None:
            raise PlatformDownError("IRC: not connected")
        try:
            data = await self._streams[0].readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            raise PlatformDownError("IRC: the server has closed the connection") from error
        except asyncio.LimitOverrunError as error:
            raise PlatformDownError("IRC: the server has sent a line without an end") from error
        if not data.strip():
            return None
        try:
            return parse_line(data)
        except MalformedLineError as error:
            log.warning("IRC line ignored: %s", error)
            return None

    def _is_message(self, line: IrcLine) -> bool:
        """Whether a line is a message of a person; other lines are handled here."""
        is_own = line.nick.lower() == self.nick.lower()
        match line.command:
            case "PRIVMSG" if len(line.params) == 2 and line.nick and not is_own:
                return True
            case "PRIVMSG":
                self._note_echo(line)
            case "PING":
                self._write(format_line("PONG", line.param(0)))
            case "PONG":
                self._settle(line.params[-1] if line.params else "")
            case "NICK" if is_own:
                self.nick = line.param(0)
                log.info("IRC nick is %s", self.nick)
            case "ERROR":
                raise PlatformDownError(f"IRC: the server closes the connection: {line.param(0)}")
            case _:
                self._note_numeric(line)
        return False

    def _note_numeric(self, line: IrcLine) -> None:
        delivery = self._delivery
        if line.command == WHOIS_ACCOUNT:
            self._accounts[line.param(1).lower()] = line.param(2)
        is_concerned = delivery is not None and (
            line.tags.get("label") in delivery.labels
            or line.param(1).lower() == delivery.target.lower()
        )
        if line.command in SEND_ERRORS and is_concerned and delivery is not None:
            delivery.error = line
        elif line.command in JOIN_ERRORS:
            log.warning("IRC channel %s not joined: %s", line.param(1), line.params[-1])
        elif line.command == "KICK" and line.param(1).lower() == self.nick.lower():
            log.warning("IRC channel %s left: kicked by %s", line.param(0), line.nick)
        elif line.command not in NICK_IN_USE:
            log.debug("IRC line: %s %s", line.command, line.params)

    def _note_echo(self, line: IrcLine) -> None:
        """With echo-message, the server returns each message as the others see it."""
        delivery = self._delivery
        if delivery is not None and line.param(0).lower() == delivery.target.lower():
            delivery.echoes += 1
            delivery.message_id = line.tags.get("msgid", "")

    def _regain_nick(self) -> None:
        """Ask for the configured nick from time to time while another one is used."""
        wanted = self._settings.nick
        if self.nick != wanted and self._clock() - self._nick_tried_at >= REGAIN_SECONDS:
            self._nick_tried_at = self._clock()
            self._write(format_line("NICK", wanted))

    # Sending

    def _write(self, *lines: bytes) -> None:
        if self._streams is None:
            raise PlatformDownError("IRC: not connected")
        self._streams[1].write(b"".join(lines))

    async def send(self, target: str, texts: Sequence[str]) -> Delivery:
        """Send a message of several lines and wait until the server has handled them.

        A server handles the lines of a client in order, so its answer to a PING comes after its
        errors about the lines before. *lines_written* of the delivery is 0 if nothing was sent.
        """
        async with self._sending:
            self._delivery = delivery = Delivery(target)
            try:
                async with asyncio.timeout(
                    CONFIRM_SECONDS + len(texts) * self._settings.seconds_per_line
                ):
                    await self._send_lines(delivery, texts)
                    await self._ping()
            except (PlatformDownError, OSError) as error:
                if delivery.lines_written:
                    raise UnconfirmedError(str(error) or "no confirmation in time") from error
                raise PlatformDownError(str(error) or "IRC: no response") from error
            finally:
                self._delivery = None
            return delivery

    async def _send_lines(self, delivery: Delivery, texts: Sequence[str]) -> None:
        has_labels = "labeled-response" in self.capabilities
        for text in texts:
            await asyncio.sleep(self._flood.delay())
            label = str(next(self._numbers)) if has_labels else ""
            delivery.labels |= {label} if label else set()
            self._write(format_line("PRIVMSG", delivery.target, text, label=label))
            delivery.lines_written += 1
            if self._streams is not None:
                await self._streams[1].drain()

    async def account_of(self, nick: str) -> str:
        """The services account of a nick; empty if it has none or is not online."""
        async with self._sending:
            self._accounts.clear()
            try:
                async with asyncio.timeout(CONFIRM_SECONDS):
                    await asyncio.sleep(self._flood.delay())
                    self._write(format_line("WHOIS", nick))
                    await self._ping()
            except OSError as error:
                raise PlatformDownError(str(error) or "IRC: no response") from error
            return self._accounts.get(nick.lower(), "")

    async def _ping(self) -> None:
        token = f"hermes-{next(self._numbers)}"
        self._pongs[token] = asyncio.get_running_loop().create_future()
        try:
            self._write(format_line("PING", token))
            await self._pongs[token]
        finally:
            del self._pongs[token]

    def _settle(self, token: str) -> None:
        future = self._pongs.get(token)
        if future is not None and not future.done():
            future.set_result(None)
