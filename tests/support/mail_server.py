"""Real mail servers on loopback: Dovecot (IMAP) and aiosmtpd, which delivers into its folders.

As a mail server does, it adds Return-Path and Authentication-Results to what arrives: SPF passes
for the domain of the envelope.
"""

from __future__ import annotations

import contextlib
import grp
import itertools
import os
import pwd
import random
import shutil
import signal
import smtplib
import socket
import ssl
import subprocess
import tempfile
import time
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "secret"
SERVER_NAME = "mx.hermes.test"
DOMAIN = "hermes.test"
START_SECONDS = 30.0
CONFIG = """
protocols = imap
base_dir = {folder}/run
state_dir = {folder}/run
log_path = {folder}/log
listen = 127.0.0.1
ssl = yes
ssl_cert = <{folder}/server.pem
ssl_key = <{folder}/server.key
disable_plaintext_auth = no
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_location = maildir:{folder}/mail/%u
mail_max_userip_connections = 100
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/mail/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
service anvil {{
  chroot =
}}
"""


class ReceivedMail(NamedTuple):
    """A message that the SMTP server has accepted."""

    recipient: str
    content: EmailMessage

    @property
    def text(self) -> str:
        body = self.content.get_body(("plain",))
        assert body is not None
        return str(body.get_content()).replace("\r\n", "\n").removesuffix("\n")


class SmtpHandler:
    """Accepts messages: those to DOMAIN are delivered to Dovecot, the others recorded."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self.received: list[ReceivedMail] = []
        self.failures: list[str] = []  # of the next messages: responses instead of acceptance

    async def handle_DATA(  # noqa: N802 - the name that aiosmtpd calls
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        if self.failures:
            return self.failures.pop(0)
        content = bytes(envelope.content or b"")
        for recipient in envelope.rcpt_tos:
            if recipient.endswith(f"@{DOMAIN}"):
                self.deliver(recipient, _results(envelope.mail_from or "") + content)
            else:
                message = message_from_bytes(content, policy=policy.default)
                assert isinstance(message, EmailMessage)
                self.received.append(ReceivedMail(recipient, message))
        return "250 OK"

    def deliver(self, recipient: str, content: bytes) -> None:
        """Put a message into the mailbox as it is."""
        name = f"{time.time_ns()}.{next(self._numbers)}.test"
        folder = self._folder / "mail" / recipient
        for part in ("cur", "new", "tmp"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        if _account():
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, *_account())
        (folder / "tmp" / name).write_bytes(content)
        (folder / "tmp" / name).rename(folder / "new" / name)


class MailServer:
    """Dovecot and an SMTP server; each test has its own mailbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.imap_port, self.imap_tls_port = _free_port(), _free_port()
        self.smtp_port, self.smtp_starttls_port = _free_port(), _free_port()
        self.ca_file = folder / "ca.pem"
        self.smtp = SmtpHandler(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count()
        user, group = _account() or (_own_user(), _own_group())
        ports = {"port": self.imap_port, "tls_port": self.imap_tls_port}
        text = CONFIG.format(folder=folder, user=user, group=group, password=PASSWORD, **ports)
        (folder / "dovecot.conf").write_text(text)
        for name in ("run", "mail"):
            (folder / name).mkdir()
        _create_certificate(folder)
        if _account():
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, *_account())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        self._controllers = [
            self._controller(self.smtp_port),
            self._controller(self.smtp_starttls_port, tls_context=context, require_starttls=True),
        ]

    def _controller(self, port: int, **options: Any) -> Controller:
        is_tls = "tls_context" in options
        return Controller(
            self.smtp,
            hostname="127.0.0.1",
            port=port,
            authenticator=_authenticate,
            auth_require_tls=is_tls,
            server_hostname=SERVER_NAME,
            **options,
        )

    def start(self) -> None:
        for controller in self._controllers:
            controller.start()
        self.start_imap()

    def stop(self) -> None:
        for controller in self._controllers:
            controller.stop()
        self.stop_imap()

    def start_imap(self) -> None:
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [str(_program()), "-F", "-c", str(self.folder / "dovecot.conf")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **_identity(),
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_up():
            assert self._process.poll() is None, f"Dovecot exited: {self.log}"
            assert time.monotonic() < deadline, f"Dovecot does not start: {self.log}"
            time.sleep(0.02)

    def stop_imap(self) -> None:
        if self._process is not None:
            # Processes of open connections do not end with the main process.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=START_SECONDS)
            self._process = None

    @property
    def log(self) -> str:
        paths = (self.folder / "output", self.folder / "log")
        return "\n".join(path.read_text() for path in paths if path.exists())[-3000:]

    def _is_up(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.imap_port)) == 0

    def new_address(self) -> str:
        """An address of the agent with an empty mailbox."""
        return f"bot{next(self._numbers)}@{DOMAIN}"

    def options(self, **changes: Any) -> dict[str, Any]:
        """The options of the platform, for a server on this machine without TLS."""
        return {
            "imap_host": "127.0.0.1",
            "imap_port": self.imap_port,
            "imap_security": "none",
            "smtp_host": "127.0.0.1",
            "smtp_port": self.smtp_port,
            "smtp_security": "none",
            "poll_seconds": 3,
            "authserv_id": SERVER_NAME,
            **changes,
        }

    def send(self, message: EmailMessage, envelope_sender: str = "") -> None:
        """Send a message by SMTP, as a user's mail program does."""
        with smtplib.SMTP("127.0.0.1", self.smtp_port, timeout=PATIENCE_SECONDS) as client:
            client.send_message(message, from_addr=envelope_sender or None)

    def change_validity(self, address: str, validity: int) -> None:
        """Give the messages of a mailbox new UIDs."""
        self.doveadm("mailbox", "update", "-u", address, "--uid-validity", str(validity), "INBOX")

    def doveadm(self, *arguments: str) -> None:
        subprocess.run(
            ["doveadm", "-c", str(self.folder / "dovecot.conf"), *arguments],
            check=True,
            timeout=START_SECONDS,
            capture_output=True,
            cwd="/",
            **_identity(),
        )


def compose(sender: str, recipient: str, text: str, **headers: str) -> EmailMessage:
    """A message of a user; `In_Reply_To` and the like become headers."""
    message = EmailMessage(policy=policy.SMTP)
    message["From"] = sender
    message["To"] = recipient
    message["Message-ID"] = f"<{time.monotonic_ns()}.{random.getrandbits(32)}@mail.test>"
    for name, value in headers.items():
        header = name.replace("_", "-")
        del message[header]
        message[header] = value
    message.set_content(text)
    return message


@contextmanager
def running_mail_server() -> Iterator[MailServer]:
    """Run both servers; the test is skipped where Dovecot is missing."""
    if _program() is None:
        pytest.skip("Dovecot is not installed (Debian package dovecot-imapd)")
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() else Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="hermes-mail-", dir=place))
    try:
        server = MailServer(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _results(envelope_sender: str) -> bytes:
    envelope_sender = envelope_sender.strip("<>")
    domain = envelope_sender.rpartition("@")[2]
    result = f"spf=pass smtp.mailfrom={envelope_sender}" if domain else "spf=none"
    headers = f"Return-Path: <{envelope_sender}>\r\nAuthentication-Results: {SERVER_NAME}; {result}"
    return f"{headers}\r\n".encode()


def _authenticate(
    _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any
) -> AuthResult:
    is_right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=is_right, handled=is_right)


def _account() -> tuple[str, str] | None:
    """The user and group that run Dovecot, which refuses mailboxes of root."""
    return ("nobody", grp.getgrgid(pwd.getpwnam("nobody").pw_gid).gr_name) if _is_root() else None


def _identity() -> dict[str, Any]:
    account = _account()
    return {"user": account[0], "group": account[1], "extra_groups": []} if account else {}


def _is_root() -> bool:
    return os.geteuid() == 0


def _program() -> str | None:
    """Dovecot, which is not on the PATH of ordinary users."""
    return shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def _own_user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _own_group() -> str:
    return grp.getgrgid(os.getegid()).gr_name


def _create_certificate(folder: Path) -> None:
    """A certificate for localhost, and the authority that has signed it."""
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "30", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost", "-keyout", "server.key", "-out", "server.pem",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=START_SECONDS)
    shutil.copy(folder / "server.pem", folder / "ca.pem")


def _free_port() -> int:
    """A port below the ephemeral range, so that it stays free while nothing listens."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
