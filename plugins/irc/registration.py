"""The start of a connection: capabilities, login and nick, as a state machine without I/O."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from hermes_core.errors import PlatformDownError, PlatformRefusedError

from .lines import format_line

if TYPE_CHECKING:
    from .lines import IrcLine
    from .settings import IrcSettings

WANTED_CAPABILITIES: Final = frozenset(
    {"account-tag", "batch", "echo-message", "labeled-response", "message-tags", "server-time"}
)
SASL_CHUNK_CHARS: Final = 400
MAX_NICK_TRIES: Final = 20
SHORTEST_NICK_LIMIT: Final = 9  # of a server, in RFC 1459
WELCOME: Final = "001"
NICK_INVALID: Final = "432"
NICK_IN_USE: Final = frozenset({"433", "436", "437"})
SASL_SUCCEEDED: Final = "903"
SASL_FAILED: Final = frozenset({"902", "904", "905", "906", "908"})
REFUSED: Final = frozenset({"464", "465"})  # wrong server password, banned


class Registration:
    """Answers the lines of the server until it welcomes the agent."""

    def __init__(self, settings: IrcSettings) -> None:
        self._settings = settings
        self._offered: set[str] = set()
        self._tries = 0
        self._is_logged_in = False
        self.nick = settings.nick
        self.capabilities: frozenset[str] = frozenset()
        self.is_done = False

    def start(self) -> list[bytes]:
        """The first lines."""
        password = self._settings.server_password
        return [
            format_line("CAP", "LS", "302"),
            *([format_line("PASS", password)] if password else []),
            format_line("NICK", self.nick),
            format_line("USER", self._settings.nick, "0", "*", "Hermes"),
        ]

    def answer(self, line: IrcLine) -> list[bytes]:
        """The lines to send after one of the server; raises PlatformError if it refuses."""
        command = line.command
        if command == "CAP":
            return self._negotiate(line)
        if command == "AUTHENTICATE" and line.param(0) == "+":
            return self._credentials()
        if command == SASL_SUCCEEDED:
            self._is_logged_in = True
            return [format_line("CAP", "END")]
        if command in NICK_IN_USE:
            return [format_line("NICK", self._next_nick())]
        if command == WELCOME:
            return self._welcome(line)
        self._check(line)
        return [format_line("PONG", line.param(0))] if command == "PING" else []

    def _check(self, line: IrcLine) -> None:
        reason = line.params[-1] if line.params else line.command
        if line.command in SASL_FAILED:
            raise PlatformRefusedError(f"IRC: login failed: {reason}. Check IRC_PASSWORD.")
        if line.command in REFUSED or line.command == NICK_INVALID:
            raise PlatformRefusedError(f"IRC: the server refuses the connection: {reason}")
        if line.command == "ERROR":
            raise PlatformDownError(f"IRC: the server has closed the connection: {reason}")

    def _negotiate(self, line: IrcLine) -> list[bytes]:
        action, names = line.param(1).upper(), line.params[-1].split()
        if action == "LS":
            self._offered |= {name.partition("=")[0] for name in names}
            return [] if line.param(2) == "*" else self._request()
        if action == "ACK":
            self.capabilities |= set(names)
            if "sasl" in self.capabilities:
                return [format_line("AUTHENTICATE", "PLAIN")]
        return [format_line("CAP", "END")]

    def _request(self) -> list[bytes]:
        wanted = WANTED_CAPABILITIES | ({"sasl"} if self._uses_sasl else set())
        chosen = " ".join(sorted(wanted & self._offered))
        return [format_line("CAP", "REQ", chosen) if chosen else format_line("CAP", "END")]

    @property
    def _uses_sasl(self) -> bool:
        return bool(self._settings.password) and not self._settings.nickserv

    def _credentials(self) -> list[bytes]:
        account, password = self._settings.account, self._settings.password
        text = base64.b64encode(f"{account}\0{account}\0{password}".encode()).decode()
        chunks = [
            text[start : start + SASL_CHUNK_CHARS]
            for start in range(0, len(text), SASL_CHUNK_CHARS)
        ]
        if len(chunks[-1]) == SASL_CHUNK_CHARS:
            chunks.append("+")  # a full chunk is not the last
        return [format_line("AUTHENTICATE", chunk) for chunk in chunks]

    def _next_nick(self) -> str:
        self._tries += 1
        if self._tries > MAX_NICK_TRIES:
            raise PlatformDownError(f"IRC: {self._settings.nick} and similar nicks are in use")
        suffix = "_" if self._tries == 1 else str(self._tries)
        self.nick = f"{self._settings.nick[: SHORTEST_NICK_LIMIT - len(suffix)]}{suffix}"
        return self.nick

    def _welcome(self, line: IrcLine) -> list[bytes]:
        if self._uses_sasl and not self._is_logged_in:
            raise PlatformRefusedError(
                "IRC: the server does not offer SASL. To log in by a message to a service, set "
                "platforms.irc.nickserv to its name."
            )
        self.nick = line.param(0) or self.nick  # the server may have shortened it
        self.is_done = True
        settings = self._settings
        login = f"IDENTIFY {settings.account} {settings.password}"
        return [
            *(
                [format_line("PRIVMSG", settings.nickserv, login)]
                if settings.nickserv and settings.password
                else []
            ),
            *(format_line("JOIN", channel) for channel in settings.channels),
        ]
