"""A real Matrix server on loopback: Synapse, from an environment of its own.

`make synapse` makes that environment; without it tests skip and say so.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import random
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
# An environment that has Synapse in it; `make synapse` makes the other one.
CHOSEN = os.environ.get("HERMES_TEST_SYNAPSE")
ENVIRONMENT = Path(CHOSEN) if CHOSEN else ROOT / ".synapse"
SECRET = "for tests"
NAME = "test.local"
PLENTY = "{per_second: 100000, burst_count: 100000}"
CONFIG = """
server_name: {name}
pid_file: {folder}/synapse.pid
listeners:
  - port: {port}
    bind_addresses: [127.0.0.1]
    type: http
    tls: false
    resources: [{{names: [client], compress: false}}]
database: {{name: sqlite3, args: {{database: "{folder}/synapse.db"}}}}
log_config: {folder}/log.yaml
media_store_path: {folder}/media
signing_key_path: {folder}/signing.key
registration_shared_secret: {secret}
macaroon_secret_key: {secret}
form_secret: {secret}
report_stats: false
trusted_key_servers: []
federation_domain_whitelist: []
url_preview_enabled: false
bcrypt_rounds: 4
presence: {{enabled: false}}
caches: {{global_factor: 0.5}}
rc_message: {plenty}
rc_registration: {plenty}
rc_joins: {{local: {plenty}, remote: {plenty}}}
rc_invites: {{per_room: {plenty}, per_user: {plenty}, per_issuer: {plenty}}}
rc_login: {{address: {plenty}, account: {plenty}, failed_attempts: {plenty}}}
rc_room_creation: {plenty}
"""
LOGGING = """
version: 1
formatters: {{plain: {{format: '%(asctime)s %(levelname)s %(name)s %(message)s'}}}}
handlers: {{file: {{class: logging.FileHandler, formatter: plain, filename: {folder}/log}}}}
root: {{level: WARNING, handlers: [file]}}
disable_existing_loggers: false
"""


class RefusedError(Exception):
    """The server said no."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        super().__init__(f"HTTP {status}: {answer}")
        self.answer = answer


class Person(NamedTuple):
    """Somebody with an account, over plain HTTP."""

    url: str
    user_id: str
    token: str

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        result: dict[str, Any] = call(
            method, self.url + path, None if method == "GET" else data, self.token
        )
        return result

    def room(self, *invited: str, **facts: Any) -> str:
        body = {"preset": "private_chat", "invite": list(invited), **facts}
        return str(self.call("POST", "/_matrix/client/v3/createRoom", body)["room_id"])

    def join(self, room: str) -> None:
        self.call("POST", f"/_matrix/client/v3/join/{quote(room)}")

    def invite(self, room: str, user: str) -> None:
        self.call("POST", f"/_matrix/client/v3/rooms/{quote(room)}/invite", {"user_id": user})

    def send(self, room: str, content: dict[str, Any], kind: str = "m.room.message") -> str:
        key = f"{time.monotonic_ns()}"
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/{kind}/{key}"
        return str(self.call("PUT", path, content)["event_id"])

    def say(self, room: str, text: str, **more: Any) -> str:
        return self.send(room, {"msgtype": "m.text", "body": text, **more})

    def upload(self, data: bytes, name: str) -> str:
        path = f"/_matrix/media/v3/upload?filename={quote(name)}"
        return str(self.call("POST", path, data)["content_uri"])

    def seen(self, room: str) -> list[dict[str, Any]]:
        """Everything that happened in a room, the oldest first."""
        path = f"/_matrix/client/v3/rooms/{quote(room)}/messages?dir=b&limit=1000"
        chunk: list[dict[str, Any]] = self.call("GET", path)["chunk"]
        return chunk[::-1]

    def said_by(self, room: str, user: str) -> list[str]:
        return [
            str(item["content"].get("body"))
            for item in self.seen(room)
            if item["type"] == "m.room.message" and item["sender"] == user
        ]

    def members(self, room: str) -> set[str]:
        path = f"/_matrix/client/v3/rooms/{quote(room)}/joined_members"
        return set(self.call("GET", path)["joined"])


class Synapse:
    """The server, which can be stopped and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        if not (ENVIRONMENT / "bin" / "python").exists():
            pytest.skip(f"Synapse is not in {ENVIRONMENT}: `make synapse` installs it")
        self._folder = folder
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None
        facts = {"name": NAME, "folder": folder, "port": self._port, "secret": SECRET}
        (folder / "synapse.yaml").write_text(CONFIG.format(**facts, plenty=PLENTY))
        (folder / "log.yaml").write_text(LOGGING.format(folder=folder))
        self._run("--generate-keys").wait(timeout=60)

    def _run(self, *words: str) -> subprocess.Popen[bytes]:
        python = str(ENVIRONMENT / "bin" / "python")
        command = [python, "-m", "synapse.app.homeserver", "-c", str(self._folder / "synapse.yaml")]
        with (self._folder / "output").open("ab") as output:
            return subprocess.Popen(
                [*command, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
            )

    def start(self) -> None:
        self._process = self._run()
        deadline = time.monotonic() + 120
        while not self.is_up():
            said = (self._folder / "output").read_text(errors="replace")[-3000:]
            assert self._process.poll() is None, f"Synapse ended: {said}"
            assert time.monotonic() < deadline, f"Synapse does not start: {said}"
            time.sleep(0.1)

    def is_up(self) -> bool:
        try:
            call("GET", f"{self.url}/_matrix/client/versions")
        except OSError:
            return False
        return True

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=60)
            self._process = None

    def slow_down(self, who: Person) -> None:
        """Somebody may say one thing in a second, no more."""
        admin = self.person(f"admin{time.monotonic_ns()}", is_admin=True)
        path = f"/_synapse/admin/v1/users/{quote(who.user_id)}/override_ratelimit"
        admin.call("POST", path, {"messages_per_second": 1, "burst_count": 1})

    def person(self, name: str, shown: str = "", *, is_admin: bool = False) -> Person:
        """A new account."""
        path = f"{self.url}/_synapse/admin/v1/register"
        nonce = call("GET", path)["nonce"]
        words = "\0".join((nonce, name, "password", "admin" if is_admin else "notadmin"))
        mac = hmac.new(SECRET.encode(), words.encode(), hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": name, "password": "password", "admin": is_admin}
        body |= {"mac": mac, "displayname": shown or name}
        result = call("POST", path, json.dumps(body).encode())
        return Person(self.url, result["user_id"], result["access_token"])


def call(method: str, url: str, data: bytes | None = None, token: str = "") -> dict[str, Any]:
    request = urllib.request.Request(url, data, method=method)  # noqa: S310 - loopback
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - loopback
            result: dict[str, Any] = json.loads(answer.read())
            return result
    except urllib.error.HTTPError as error:
        with error:
            raise RefusedError(error.code, json.loads(error.read() or b"{}")) from None


@contextmanager
def running(folder: Path) -> Iterator[Synapse]:
    """A server with nobody in it."""
    server = Synapse(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


class Line:
    """A line to the server, on which answers can get lost."""

    def __init__(self, synapse: Synapse) -> None:
        self._target = int(synapse.url.rpartition(":")[2])
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_deaf = False
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        asking = asyncio.create_task(self._carry(reader, back))
        answering = asyncio.create_task(self._carry(there, writer, is_answer=True))
        self._tasks |= {asking, answering}

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_answer: bool = False
    ) -> None:
        try:
            while data := await reader.read(65536):
                if is_answer and self.is_deaf:
                    break
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


def _free_port() -> int:
    """A port below those that connections take, so that it stays free while the server is down."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as item, contextlib.suppress(OSError):
            item.bind(("127.0.0.1", port))
            return port
