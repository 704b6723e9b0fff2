"""The dependencies of the webhook adapter under test, a caller and a receiver."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2
from starlette.responses import Response
from starlette.routing import Route

from gateway.platforms.webhook import routes
from gateway.platforms.webhook.adapter import WebhookAdapter, make
from gateway.process.http_server import HttpServer
from gateway.process.runner import AdapterMemory
from support.adapters import AdapterSetup
from support.gateways import running_gateway
from support.plain_http import NO_CERTIFICATES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from starlette.requests import Request

    from gateway.platforms.base import AdapterContext
    from hermes_state import SessionDB

SECRET = "a-secret-of-the-webhook"
OTHER_SECRET = "another-secret"
NOW = 1_800_000_000.0


class ReceivedRequest(NamedTuple):
    """A request to the receiver."""

    headers: Any
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """A server that answers are posted to."""

    def __init__(self) -> None:
        self.http_server = HttpServer("127.0.0.1", 0)
        self.received: list[ReceivedRequest] = []
        self.answers: list[Response] = []  # the next ones; then 200

    async def _receive(self, request: Request) -> Response:
        self.received.append(ReceivedRequest(request.headers, await request.body()))
        return self.answers.pop(0) if self.answers else Response()

    async def start(self) -> str:
        await self.http_server.add(
            "receiver", [Route("/answers", self._receive, methods=["POST", "GET"])]
        )
        return f"{self.http_server.url}/answers"


class WebhookSetup(AdapterSetup):
    """The dependencies of the adapter, and a caller."""

    def __init__(self, db: SessionDB, folder: Path) -> None:
        secrets = {"WEBHOOK_SECRET": SECRET, "CI_SECRET": OTHER_SECRET}
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
    async def running(self) -> AsyncIterator[None]:
        """Run a gateway with the adapter."""
        self.http_server = HttpServer("127.0.0.1", 0)
        adapters: dict[str, Any] = {"webhook": make(self.context())}
        try:
            async with running_gateway(self.db, self.folder, adapters=adapters):
                yield
        finally:
            await self.http_server.close()

    async def call(self, body: Any, route: str = "reviews", **headers: str) -> httpx2.Response:
        """Deliver a body, signed in GitHub's format unless a signature is passed."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if not any("Signature" in name for name in sent_headers):
            sent_headers["X-Hub-Signature-256"] = routes.github_signature(SECRET, data)
        async with httpx2.AsyncClient(
            base_url=self.http_server.url, verify=NO_CERTIFICATES
        ) as http:
            return await http.post(f"/webhooks/{route}", content=data, headers=sent_headers)
