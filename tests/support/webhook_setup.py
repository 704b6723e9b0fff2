"""What the webhook adapter is made from in a test, and programs that call and are called."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2
from starlette.responses import Response
from starlette.routing import Route

from gateway.platforms.webhook import routes
from gateway.platforms.webhook.adapter import WebhookAdapter, make
from gateway.process.adapter_factory import AdapterMemory
from gateway.process.http_server import HttpServer
from support.adapters import AdapterSetup
from support.gateways import started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from starlette.requests import Request

    from gateway.platforms.base import AdapterContext
    from hermes_state import SessionDB

SECRET = "a-secret-of-the-webhook"
OTHER = "another-secret"
NOW = 1_800_000_000.0


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
        self.front = HttpServer("127.0.0.1", 0)
        self.arrived: list[Arrived] = []
        self.answers: list[Response] = []  # the next ones; then 200

    async def _take(self, request: Request) -> Response:
        self.arrived.append(Arrived(request.headers, await request.body()))
        return self.answers.pop(0) if self.answers else Response()

    async def start(self) -> str:
        await self.front.add("receiver", [Route("/answers", self._take, methods=["POST", "GET"])])
        return f"{self.front.url}/answers"


class WebhookSetup(AdapterSetup):
    """What an adapter is made from, and a program that calls."""

    def __init__(self, db: SessionDB, folder: Path) -> None:
        secrets = {"WEBHOOK_SECRET": SECRET, "CI_SECRET": OTHER}
        super().__init__(AdapterMemory(db, "webhook"), folder, secrets)
        self.db = db
        self.folder = folder
        self.routes: dict[str, Any] = {"reviews": {"prompt": "Review {title}."}}
        self.now = NOW

    def context(self) -> AdapterContext:
        self.extra["routes"] = self.routes
        return super().context()

    def adapter(self) -> WebhookAdapter:
        return WebhookAdapter(self.context(), lambda: self.now)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """A whole gateway."""
        self.front = HttpServer("127.0.0.1", 0)
        adapters: dict[str, Any] = {"webhook": make(self.context())}
        try:
            async with started(self.db, self.folder, adapters=adapters):
                yield
        finally:
            await self.front.close()

    async def call(self, body: Any, route: str = "reviews", **headers: str) -> httpx2.Response:
        """A delivery, signed in GitHub's form unless told otherwise."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): item for name, item in headers.items()}
        if not any("Signature" in item for item in named):
            named["X-Hub-Signature-256"] = routes.github_signature(SECRET, data)
        async with httpx2.AsyncClient(base_url=self.front.url) as http:
            return await http.post(f"/webhooks/{route}", content=data, headers=named)
