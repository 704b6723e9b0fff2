"""A real IRC server on loopback (ngircd), and people on it.

Without the program (Debian package ngircd, `make system`) the tests are skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple, Self

import pytest

from support.ports import free_port
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PROGRAM = shutil.which("ngircd", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
CONFIG = """
[Global]
  Name = irc.test
  AdminInfo1 = test
  Info = test
  Listen = 127.0.0.1
  Ports = {port}
  MotdPhrase = "Hello."
  {password}
[Limits]
  MaxConnectionsIP = 0
  MaxNickLength = 20
  MaxPenaltyTime = 0
  PingTimeout = 120
[Options]
  DNS = no
  Ident = no
  PAM = no
"""
TLS_CONFIG = """
[SSL]
  CertFile = {folder}/cert.pem
  KeyFile = {folder}/key.pem
  Ports = {port}
"""


class Ngircd:
    """A server that can be stopped and started again on its ports."""

    def __init__(self, folder: Path, password: str = "", *, has_tls: bool = False) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._file = folder / "ngircd.conf"
        self.port, self.tls_port = free_port(), free_port() if has_tls else 0
        text = CONFIG.format(port=self.port, password=f"Password = {password}" if password else "")
        if has_tls:
            text += TLS_CONFIG.format(folder=folder, port=self.tls_port)
        self._file.write_text(text)

    async def start(self) -> None:
        if PROGRAM is None:
            pytest.skip("no ngircd (Debian package ngircd)")
        self._process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
            [PROGRAM, "--nodaemon", "--config", str(self._file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await async_wait_until(self._is_up)

    def _is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def pause(self) -> None:
        """Stop answering, without closing connections."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@asynccontextmanager
async def running_ngircd(
    folder: Path, password: str = "", *, has_tls: bool = False
) -> AsyncIterator[Ngircd]:
    server = Ngircd(folder, password, has_tls=has_tls)
    try:
        await server.start()
        yield server
    finally:
        server.stop()


class ReceivedText(NamedTuple):
    """A message that a person has received."""

    sender: str
    target: str
    text: str


class IrcUser:
    """A person with an IRC client."""

    def __init__(self, server: Ngircd, nick: str) -> None:
        self.nick = nick
        self.messages: list[ReceivedText] = []
        self.numerics: list[str] = []
        self._server = server
        self._online = ""
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        self._task = asyncio.create_task(self._read(reader))
        self.write(f"NICK {self.nick}", f"USER {self.nick} 0 * :{self.nick}")
        await async_wait_until(lambda: "376" in self.numerics or "422" in self.numerics)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._writer is not None
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._task
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def write(self, *lines: str) -> None:
        assert self._writer is not None
        self._writer.write("".join(f"{line}\r\n" for line in lines).encode("utf-8"))

    def write_bytes(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)

    def say(self, target: str, text: str) -> None:
        self.write(f"PRIVMSG {target} :{text}")

    async def ask(self, nick: str, text: str) -> bool:
        """Send a message; whether the server could pass it on."""
        before = self.numerics.count("401")
        self.say(nick, text)
        await self.is_online(self.nick)  # the server answers in order
        return self.numerics.count("401") == before

    async def join(self, channel: str) -> None:
        self.write(f"JOIN {channel}")
        await async_wait_until(lambda: "366" in self.numerics)

    async def is_online(self, nick: str) -> bool:
        """Whether a nick is online."""
        before = len(self.numerics)
        self.write(f"ISON {nick}")
        await async_wait_until(lambda: len(self.numerics) > before)
        return self._online.strip().casefold() == nick.casefold()

    async def wait_for(self, nick: str) -> None:
        """Wait until a nick is online."""
        while not await self.is_online(nick):  # noqa: ASYNC110 - it is another client
            await asyncio.sleep(0.02)

    async def wait_for_texts(self, count: int) -> list[str]:
        """Wait for a number of messages; all texts so far."""
        await async_wait_until(lambda: len(self.messages) >= count)
        return self.texts

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            text = line.decode("utf-8").rstrip("\r\n")
            if text.startswith("PING"):
                self.write(text.replace("PING", "PONG", 1))
                continue
            source, command, rest = [*text.split(" ", 2), "", ""][:3]
            if command == "PRIVMSG":
                target, _, said = rest.partition(" :")
                self.messages.append(ReceivedText(source[1:].partition("!")[0], target, said))
            elif command.isdigit():
                if command == "303":
                    self._online = rest.partition(" :")[2]
                self.numerics.append(command)
