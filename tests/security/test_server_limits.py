"""The dashboard under half-sent, slow and oversized requests, over real sockets."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from hermes_core import connection_limits
from hermes_core.config.file import ConfigFile
from hermes_core.instance_record import DASHBOARD
from hermes_dashboard.auth.passwords import PasswordFile
from hermes_state import SessionDB
from support.command_line import command
from support.dashboards import dashboard, dashboard_context
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HALF_OPEN = 300
FILE_LIMIT = 256  # of the server: fewer than there are half-open requests
PATIENT = 20.0  # an answer that needs longer counts as none
SHORT_HEAD_SECONDS = 1.0


@contextlib.contextmanager
def limited_dashboard(home: Path) -> Iterator[tuple[str, int]]:
    """`hermes dashboard` in password mode with few file descriptors; its address."""
    PasswordFile(home).set("correct horse battery")
    process = subprocess.Popen(
        [
            *("bash", "-c", f'ulimit -n {FILE_LIMIT}; exec "$@"', "-"),
            *command("dashboard", "--no-open", "--port", "0", "--host", "127.0.0.1"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: DASHBOARD.find(home) or process.poll() is not None)
        record = DASHBOARD.find(home)
        assert record is not None
        parts = urlsplit(record.url)
        yield parts.hostname or "", parts.port or 0
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


@contextlib.contextmanager
def half_open(address: tuple[str, int], beginning: bytes) -> Iterator[list[socket.socket]]:
    """Many connections that send the beginning of a request and nothing more."""
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(HALF_OPEN):
            sock = stack.enter_context(socket.create_connection(address, timeout=PATIENT))
            sock.sendall(beginning)
            sockets.append(sock)
        yield sockets


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB(hermes_home / "state.db") as db:
        yield db


@pytest.fixture
def many_files() -> Iterator[None]:
    """Enough file descriptors for the client."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * HALF_OPEN:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * HALF_OPEN, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize(
    "beginning",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"",
        b"POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 90\r\n\r\n{",
    ],
    ids=["a head without an end", "nothing", "a body without an end"],
)
def test_half_sent_requests_do_not_stop_the_page(hermes_home: Path, beginning: bytes) -> None:
    with limited_dashboard(hermes_home) as address:
        data = beginning % address[1] if b"%d" in beginning else beginning
        with half_open(address, data):
            url = f"http://{address[0]}:{address[1]}/"
            for _ in range(5):
                assert httpx.get(url, timeout=PATIENT, trust_env=False).status_code == 200


@pytest.mark.usefixtures("many_files")
def test_unfinished_tls_handshakes_do_not_stop_the_page(hermes_home: Path, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
         "-keyout", str(key), "-out", str(certificate), "-days", "2"],
        check=True, capture_output=True,
    )  # fmt: skip
    ConfigFile.of_home().set("dashboard.tls_cert", str(certificate))
    ConfigFile.of_home().set("dashboard.tls_key", str(key))
    with limited_dashboard(hermes_home) as address, half_open(address, b"\x16\x03\x01"):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with (
            socket.create_connection(address, timeout=PATIENT) as plain,
            context.wrap_socket(plain) as secure,
        ):
            secure.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % address[1])
            assert secure.recv(15) == b"HTTP/1.1 200 OK"


def test_a_connection_that_sends_no_request_is_closed(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SHORT_HEAD_SECONDS < connection_limits.HEAD_SECONDS < PATIENT
    monkeypatch.setattr(connection_limits, "HEAD_SECONDS", SHORT_HEAD_SECONDS)
    with dashboard(dashboard_context(db)) as running:
        parts = urlsplit(running.url)
        address = (parts.hostname or "", parts.port or 0)
        with socket.create_connection(address, timeout=PATIENCE_SECONDS) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
            answer = b"".join(iter(lambda: sock.recv(1000), b""))
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_the_head_of_a_request_is_limited(db: SessionDB) -> None:
    with dashboard(dashboard_context(db)) as running:
        parts = urlsplit(running.url)
        address = (parts.hostname or "", parts.port or 0)
        with socket.create_connection(address, timeout=PATIENCE_SECONDS) as sock:
            with contextlib.suppress(ConnectionError):  # closed before everything was sent
                sock.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 16_000_000)
            with contextlib.suppress(ConnectionError):
                assert sock.recv(12) in {b"HTTP/1.1 400", b""}
        assert running.anonymous.get("/").status_code == 200


@pytest.mark.parametrize("is_chunked", [False, True])
def test_the_body_of_a_request_is_limited(db: SessionDB, is_chunked: bool) -> None:
    body = b'{"value": "' + b"x" * (20 * 1024 * 1024) + b'"}'
    pieces = (body[start : start + 65536] for start in range(0, len(body), 65536))
    with dashboard(dashboard_context(db)) as running:
        answer = running.client.put(
            "/api/settings/llm.model",
            content=pieces if is_chunked else body,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 413, answer.text[:200]
        assert running.client.get("/api/settings").status_code == 200


def test_many_signed_in_connections_are_served_at_once(db: SessionDB) -> None:
    with dashboard(dashboard_context(db)) as running, contextlib.ExitStack() as stack:
        for _ in range(100):
            stream = stack.enter_context(running.client.stream("GET", "/api/live"))
            assert stream.status_code == 200
        assert running.anonymous.get("/").status_code == 200
