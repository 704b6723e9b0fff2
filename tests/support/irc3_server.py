"""A small IRC server with the capabilities of IRCv3 that ngircd does not have.

It serves one client: it offers capabilities, checks SASL PLAIN, echoes messages with their
labels, answers WHOIS, and sends whatever lines a test writes.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Self

CAPABILITIES = "account-tag batch echo-message labeled-response message-tags sasl=PLAIN server-time"


class Irc3Server:
    """The server, and the lines that it has received."""

    def __init__(self, capabilities: str = CAPABILITIES) -> None:
        self.capabilities = capabilities
        self.credentials = base64.b64encode(b"hermes\0hermes\0sesame").decode()
        self.accounts: dict[str, str] = {}  # by nick
        self.lines: list[str] = []
        self.drops_messages = False
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Abort the connection."""
        if self._writer is not None:
            self._writer.transport.abort()

    def write(self, line: str) -> None:
        assert self._writer is not None
        self._writer.write(f"{line}\r\n".encode())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        while data := await reader.readline():
            line = data.decode().rstrip("\r\n")
            self.lines.append(line)
            tags, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
            self._answer(rest, tags)
        writer.close()

    def _answer(self, line: str, tags: str) -> None:
        command, _, rest = line.partition(" ")
        match command:
            case "CAP" if rest.startswith("LS"):
                first, _, second = self.capabilities.partition(" ")
                self.write(f":irc.test CAP * LS * :{first}")
                self.write(f":irc.test CAP * LS :{second}")
            case "CAP" if rest.startswith("REQ"):
                self.write(f":irc.test CAP * ACK {rest.removeprefix('REQ ')}")
            case "CAP" if rest == "END" or rest.endswith(":END"):
                self.write(":irc.test 001 hermes :Welcome")
            case "AUTHENTICATE":
                self._authenticate(rest.removeprefix(":"))
            case "PING":
                self.write(f":irc.test PONG irc.test {rest}")
            case "WHOIS":
                nick = rest.removeprefix(":")
                if nick in self.accounts:
                    self.write(f":irc.test 330 hermes {nick} {self.accounts[nick]} :is logged in")
                self.write(f":irc.test 318 hermes {nick} :End of WHOIS")
            case "PRIVMSG" if "echo-message" in self.capabilities and not self.drops_messages:
                tagged = f"{tags};msgid=id{len(self.lines)}".removeprefix(";")
                self.write(f"@{tagged.removeprefix('@')} :hermes!h@test {line}")

    def _authenticate(self, text: str) -> None:
        if text == "PLAIN":
            self.write("AUTHENTICATE +")
        elif text == self.credentials:
            self.write(":irc.test 903 hermes :SASL authentication successful")
        else:
            self.write(":irc.test 904 hermes :SASL authentication failed")
