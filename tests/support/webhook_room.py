"""What the webhook adapter is made from in a test, and programs that call and are called."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2
from starlette.responses import Response
from starlette.routing import Route

from gateway.config import PlatformConfig
from gateway.equipping import StoredMemory
from gateway.front import Front
from gateway.platforms import webhook_signing
from gateway.platforms.base import MessageEvent, Surroundings
from gateway.platforms.webhook import WebhookAdapter, make
from hermes_core.media import MediaStore
from support.gateways import started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from starlette.requests import Request

    from hermes_state import SessionDB

SECRET = "a-secret-of-the-webhook"
OTHER = "another-secret"
NOW = 1_800_000_000.0


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - a condition elsewhere
            await asyncio.sleep(0.01)


class Inbox:
    """Takes messages; the next ones may fail."""

    def __init__(self) -> None:
        self.events: list[MessageEvent] = []
        self.failures: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.waiting = 0

    async def __call__(self, event: MessageEvent) -> None:
        self.waiting += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.events.append(event)


class Arrived(NamedTuple):
    """What a receiver got."""

    headers: Any
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """A server that answers are posted to."""

    def __init__(self) -> None:
        self.front = Front("127.0.0.1", 0)
        self.arrived: list[Arrived] = []
        self.answers: list[Response] = []  # the next ones; then 200

    async def _take(self, request: Request) -> Response:
        self.arrived.append(Arrived(request.headers, await request.body()))
        return self.answers.pop(0) if self.answers else Response()

    async def start(self) -> str:
        await self.front.add("receiver", [Route("/answers", self._take, methods=["POST", "GET"])])
        return f"{self.front.url}/answers"


class Room:
    """What an adapter is made from, and a program that calls."""

    def __init__(self, db: SessionDB, folder: Path) -> None:
        self.db = db
        self.folder = folder
        self.inbox = Inbox()
        self.front = Front("127.0.0.1", 0)
        self.secrets = {"WEBHOOK_SECRET": SECRET, "CI_SECRET": OTHER}
        self.routes: dict[str, Any] = {"reviews": {"prompt": "Review {title}."}}
        self.now = NOW

    def surroundings(self) -> Surroundings:
        return Surroundings(
            PlatformConfig(enabled=True, extra={"routes": self.routes}),
            lambda name: self.secrets.get(name, ""),
            MediaStore(self.folder / "media"),
            StoredMemory(self.db, "webhook"),
            self.front,
        )

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[WebhookAdapter]:
        adapter = WebhookAdapter(self.surroundings(), lambda: self.now)
        await adapter.connect(self.inbox)
        try:
            yield adapter
        finally:
            await adapter.disconnect()
            await self.front.close()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """A whole gateway."""
        self.front = Front("127.0.0.1", 0)
        adapters: dict[str, Any] = {"webhook": make(self.surroundings())}
        try:
            async with started(self.db, self.folder, adapters=adapters):
                yield
        finally:
            await self.front.close()

    async def call(self, body: Any, route: str = "reviews", **headers: str) -> httpx2.Response:
        """A delivery, signed in GitHub's form unless told otherwise."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): one for name, one in headers.items()}
        if not any("Signature" in one for one in named):
            named["X-Hub-Signature-256"] = webhook_signing.plain(SECRET, data)
        async with httpx2.AsyncClient(base_url=self.front.url) as http:
            return await http.post(f"/webhooks/{route}", content=data, headers=named)
