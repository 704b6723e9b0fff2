"""Lets commands without the network reach a list of hosts, through an HTTP proxy.

The proxy runs in this process and listens on a Unix socket. A small program in the network
namespace of the commands listens on a loopback port there and passes every connection on to
that socket. Names are resolved here; a name that leads to an address of this machine or of a
private network is refused, so that an allowed name cannot open the way to local services.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hermes_core.public_addresses import is_public

DROPPED_HEADERS: Final = ("proxy-", "connection:", "keep-alive:")
MAX_HEAD_BYTES: Final = 64 * 1024
HEAD_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 20.0
CHUNK_BYTES: Final = 64 * 1024
START_SECONDS: Final = 10.0
REFUSED: Final = "{host} is not in agent.allowed_hosts"
# Started inside the namespace: prints its port, and ends with its standard input.
FORWARDER: Final = """
import os, socket, sys, threading
server = socket.create_server(("127.0.0.1", 0))
print("ready", server.getsockname()[1], flush=True)
def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
def handle(client):
    proxy = socket.socket(socket.AF_UNIX)
    with client, proxy:
        proxy.connect(sys.argv[1])
        thread = threading.Thread(target=copy, args=(proxy, client), daemon=True)
        thread.start()
        copy(client, proxy)
        thread.join()
def accept():
    while True:
        threading.Thread(target=handle, args=(server.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
sys.stdin.read()
os._exit(0)
"""


def is_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether a host is listed: by its name, or below a `*.` entry."""
    name = host.lower().rstrip(".")
    return any(
        name == entry or (entry.startswith("*.") and name.endswith(entry[1:])) for entry in allowed
    )


def proxy_environment(port: int) -> dict[str, str]:
    """The variables that make programs use the proxy."""
    url = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    local = "localhost,127.0.0.1,::1"
    return {
        **dict.fromkeys((*names, *map(str.lower, names)), url),
        "NO_PROXY": local,
        "no_proxy": local,
    }


class HostProxy:
    """A proxy for one conversation; started when first needed, ended by `close`."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self._allowed = tuple(entry.lower().rstrip(".") for entry in allowed)
        self._folder: Path | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def is_used(self) -> bool:
        """Whether any host is allowed."""
        return bool(self._allowed)

    def start(self) -> Path:
        """Start it, once; the socket on which it listens."""
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="hermes-proxy-"))
                ready = threading.Event()
                self._thread = threading.Thread(
                    target=self._run,
                    args=(self._folder / "socket", ready),
                    name="hermes host proxy",
                    daemon=True,
                )
                self._thread.start()
                ready.wait(START_SECONDS)
            return self._folder / "socket"

    def close(self) -> None:
        """End it and its connections."""
        loop, self._loop = self._loop, None
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(loop.stop)
        if self._thread is not None:
            self._thread.join(START_SECONDS)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, path: Path, ready: threading.Event) -> None:
        loop = self._loop = asyncio.new_event_loop()
        server = loop.run_until_complete(
            asyncio.start_unix_server(self._serve, path, limit=MAX_HEAD_BYTES)
        )
        ready.set()
        try:
            loop.run_forever()
        finally:
            server.close()
            loop.run_until_complete(_cancel(asyncio.all_tasks(loop)))
            loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._handle(head, reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # the connection was lost, or is not HTTP
        finally:
            writer.close()

    async def _handle(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, _, rest = head.decode("latin-1").partition(" ")
        target, _, lines = rest.partition(" ")
        is_tunnel = method == "CONNECT"
        try:
            url = urlsplit(f"//{target}" if is_tunnel else target)
            host, port = url.hostname or "", _port(url.port, is_tunnel=is_tunnel)
        except ValueError:
            await _refuse(writer, "the request has no valid host and port")
            return
        if not is_allowed(host, self._allowed):
            await _refuse(writer, REFUSED.format(host=host))
            return
        address = await _public_address(host, port)
        if address is None:
            await _refuse(writer, f"{host} has no public address")
            return
        async with asyncio.timeout(CONNECT_SECONDS):
            far_reader, far_writer = await asyncio.open_connection(address, port)
        if is_tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            far_writer.write(_direct_head(method, url.path, url.query, lines))
        await _join((reader, writer), (far_reader, far_writer))


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _port(given: int | None, *, is_tunnel: bool) -> int:
    return given or (443 if is_tunnel else 80)


def _direct_head(method: str, path: str, query: str, lines: str) -> bytes:
    """The head of a plain request for its server; one request per connection."""
    target = (path or "/") + (f"?{query}" if query else "")
    kept = [line for line in lines.split("\r\n") if not line.lower().startswith(DROPPED_HEADERS)]
    kept.insert(1, "Connection: close")
    return f"{method} {target} ".encode("latin-1") + "\r\n".join(kept).encode("latin-1")


async def _public_address(host: str, port: int) -> str | None:
    """An address of a host; None where it has none outside of local networks."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=1)
    except (OSError, UnicodeError):  # unknown, or not a name
        return None
    addresses = [str(info[4][0]) for info in found]
    literal = host.strip("[]")
    return next(
        (item for item in addresses if item == literal or is_public(item)),
        None,
    )


async def _refuse(writer: asyncio.StreamWriter, reason: str) -> None:
    body = f"Hermes: {reason}.\n".encode()
    head = f"HTTP/1.1 403 {reason}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode("latin-1", "replace") + body)
    await writer.drain()


async def _join(
    near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Copy both directions until each has ended."""
    try:
        await asyncio.gather(_copy(near[0], far[1]), _copy(far[0], near[1]))
    finally:
        far[1].close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK_BYTES):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
