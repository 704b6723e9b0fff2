"""A real Matrix server on loopback: Synapse, in its own environment.

`make synapse` creates that environment; without it the tests are skipped.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import quote

import pytest

from support.ports import free_port
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
# An environment with Synapse; by default the one that `make synapse` creates.
CONFIGURED = os.environ.get("HERMES_TEST_SYNAPSE")
ENVIRONMENT = Path(CONFIGURED) if CONFIGURED else ROOT / ".synapse"
SECRET = "for tests"
SERVER_NAME = "test.local"
NO_RATE_LIMIT = "{per_second: 100000, burst_count: 100000}"
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
LOG_CONFIG = """
version: 1
formatters: {{plain: {{format: '%(asctime)s %(levelname)s %(name)s %(message)s'}}}}
handlers: {{file: {{class: logging.FileHandler, formatter: plain, filename: {folder}/log}}}}
root: {{level: WARNING, handlers: [file]}}
disable_existing_loggers: false
"""


class MatrixError(Exception):
    """An error response of the server."""

    def __init__(self, status: int, response: dict[str, Any]) -> None:
        super().__init__(f"HTTP {status}: {response}")
        self.response = response


class MatrixUser(NamedTuple):
    """A user account, used over plain HTTP."""

    url: str
    user_id: str
    token: str

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        result: dict[str, Any] = call(
            method, self.url + path, None if method == "GET" else data, self.token
        )
        return result

    def create_room(self, *invited: str, **fields: Any) -> str:
        body = {"preset": "private_chat", "invite": list(invited), **fields}
        return str(self.call("POST", "/_matrix/client/v3/createRoom", body)["room_id"])

    def join(self, room: str) -> None:
        self.call("POST", f"/_matrix/client/v3/join/{quote(room)}")

    def invite(self, room: str, user: str) -> None:
        self.call("POST", f"/_matrix/client/v3/rooms/{quote(room)}/invite", {"user_id": user})

    def send(self, room: str, content: dict[str, Any], kind: str = "m.room.message") -> str:
        key = f"{time.monotonic_ns()}"
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/{kind}/{key}"
        return str(self.call("PUT", path, content)["event_id"])

    def send_text(self, room: str, text: str, **fields: Any) -> str:
        return self.send(room, {"msgtype": "m.text", "body": text, **fields})

    def redact(self, room: str, event_id: str) -> None:
        key = f"{time.monotonic_ns()}"
        path = f"/_matrix/client/v3/rooms/{quote(room)}/redact/{quote(event_id)}/{key}"
        self.call("PUT", path, {"reason": "a mistake"})

    def upload(self, data: bytes, name: str) -> str:
        path = f"/_matrix/media/v3/upload?filename={quote(name)}"
        return str(self.call("POST", path, data)["content_uri"])

    def download(self, media: str) -> bytes:
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.url}/_matrix/client/v1/media/download/{media}"
        )
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:  # noqa: S310 - loopback
            return bytes(response.read())

    def events(self, room: str) -> list[dict[str, Any]]:
        """The events of a room, the oldest first."""
        path = f"/_matrix/client/v3/rooms/{quote(room)}/messages?dir=b&limit=1000"
        chunk: list[dict[str, Any]] = self.call("GET", path)["chunk"]
        return chunk[::-1]

    def texts_by(self, room: str, user: str) -> list[str]:
        return [
            str(event["content"].get("body"))
            for event in self.events(room)
            if event["type"] == "m.room.message" and event["sender"] == user
        ]

    def members(self, room: str) -> set[str]:
        path = f"/_matrix/client/v3/rooms/{quote(room)}/joined_members"
        return set(self.call("GET", path)["joined"])


class Synapse:
    """A server without users."""

    def __init__(self, folder: Path) -> None:
        if not (ENVIRONMENT / "bin" / "python").exists():
            pytest.skip(f"Synapse is not in {ENVIRONMENT}: `make synapse` installs it")
        self._folder = folder
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None
        fields = {"name": SERVER_NAME, "folder": folder, "port": self._port, "secret": SECRET}
        (folder / "synapse.yaml").write_text(CONFIG.format(**fields, plenty=NO_RATE_LIMIT))
        (folder / "log.yaml").write_text(LOG_CONFIG.format(folder=folder))
        self._run("--generate-keys").wait(timeout=PATIENCE_SECONDS)

    def _run(self, *arguments: str) -> subprocess.Popen[bytes]:
        python = str(ENVIRONMENT / "bin" / "python")
        command = [python, "-m", "synapse.app.homeserver", "-c", str(self._folder / "synapse.yaml")]
        with (self._folder / "output").open("ab") as output:
            return subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
            )

    def start(self) -> None:
        self._process = self._run()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.is_up():
            output = (self._folder / "output").read_text(errors="replace")[-3000:]
            assert self._process.poll() is None, f"Synapse exited: {output}"
            assert time.monotonic() < deadline, f"Synapse does not start: {output}"
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
            self._process.wait(timeout=PATIENCE_SECONDS)
            self._process = None

    def limit_rate(self, user: MatrixUser) -> None:
        """Limit a user to one message per second."""
        admin = self.register_user(f"admin{time.monotonic_ns()}", is_admin=True)
        path = f"/_synapse/admin/v1/users/{quote(user.user_id)}/override_ratelimit"
        admin.call("POST", path, {"messages_per_second": 1, "burst_count": 1})

    def register_user(
        self, name: str, display_name: str = "", *, is_admin: bool = False
    ) -> MatrixUser:
        """Register a user account."""
        path = f"{self.url}/_synapse/admin/v1/register"
        nonce = call("GET", path)["nonce"]
        signed_text = "\0".join((nonce, name, "password", "admin" if is_admin else "notadmin"))
        mac = hmac.new(SECRET.encode(), signed_text.encode(), hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": name, "password": "password", "admin": is_admin}
        body |= {"mac": mac, "displayname": display_name or name}
        result = call("POST", path, json.dumps(body).encode())
        return MatrixUser(self.url, result["user_id"], result["access_token"])


def call(method: str, url: str, data: bytes | None = None, token: str = "") -> dict[str, Any]:
    request = urllib.request.Request(url, data, method=method)  # noqa: S310 - loopback
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:  # noqa: S310 - loopback
            result: dict[str, Any] = json.loads(response.read())
            return result
    except urllib.error.HTTPError as error:
        with error:
            raise MatrixError(error.code, json.loads(error.read() or b"{}")) from None


@contextmanager
def running_synapse(folder: Path) -> Iterator[Synapse]:
    """Run a server."""
    server = Synapse(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


class LossyProxy:
    """A TCP proxy to the server that can drop responses, or refuse connections for a time."""

    def __init__(self, synapse: Synapse) -> None:
        self._target = int(synapse.url.rpartition(":")[2])
        self._server: asyncio.Server | None = None
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.drops_responses = False
        self.url = ""

    async def __aenter__(self) -> Self:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        await self.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def close(self) -> None:
        """End every connection and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        requests = asyncio.create_task(self._forward(reader, server_writer))
        responses = asyncio.create_task(self._forward(server_reader, writer, is_response=True))
        self._tasks |= {requests, responses}

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_response: bool = False
    ) -> None:
        try:
            while data := await reader.read(65536):
                if is_response and self.drops_responses:
                    break
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
