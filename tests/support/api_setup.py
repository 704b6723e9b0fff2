"""The dependencies of the API adapter under test, and an HTTP client for it."""

from __future__ import annotations

import functools
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2

from gateway.platforms.api_server.adapter import ApiAdapter
from gateway.process.http_server import HttpServer
from gateway.process.runner import AdapterMemory, find_api_key
from hermes_core.paths import hermes_home
from support.adapters import AdapterSetup
from support.gateways import running_gateway
from support.plain_http import NO_CERTIFICATES
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB

API_KEY = "test-api-key-of-sufficient-length"
COMPLETIONS = "/v1/chat/completions"
RESPONSES = "/v1/responses"
SLOW_STEPS = "[{say: one two three four five six, pause: 0.2}]"


class ApiSetup(AdapterSetup):
    """The dependencies of the adapter, and a client."""

    def __init__(self, db: SessionDB, folder: Path) -> None:
        secrets = {"API_SERVER_KEY": API_KEY}
        super().__init__(
            AdapterMemory(db, "api_server"), hermes_home(), secrets, max_bytes=3_000_000
        )
        self.db = db
        self.folder = folder
        self.api_requests = db.api_requests
        self.find_api_key = functools.partial(find_api_key, db)

    @asynccontextmanager
    async def open(self, drain: float = 10) -> AsyncIterator[ApiClient]:
        """Run a gateway with the API until the block ends."""
        self.http_server = http_server = HttpServer("127.0.0.1", 0)
        adapters: dict[str, Any] = {"api_server": ApiAdapter(self.context())}
        try:
            async with running_gateway(
                self.db, self.folder, adapters=adapters, drain=drain
            ) as service:
                headers = {"Authorization": f"Bearer {API_KEY}"}
                async with httpx2.AsyncClient(
                    verify=NO_CERTIFICATES,
                    base_url=http_server.url,
                    headers=headers,
                    timeout=PATIENCE_SECONDS,
                ) as http:
                    yield ApiClient(http, service)
        finally:
            await http_server.close()


class ApiClient:
    """A client of the API."""

    def __init__(self, http: httpx2.AsyncClient, service: Any) -> None:
        self.http = http
        self.service = service

    async def ask(self, text: str, **fields: Any) -> httpx2.Response:
        """Request a chat completion."""
        headers, url = fields.pop("headers", {}), fields.pop("url", COMPLETIONS)
        body = {"model": "any", "messages": [{"role": "user", "content": text}], **fields}
        return await self.http.post(url, json=body, headers=headers)

    async def respond(self, prompt: Any, **fields: Any) -> dict[str, Any]:
        """Request a response."""
        response = await self.http.post(RESPONSES, json={"model": "any", "input": prompt, **fields})
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def stream(self, path: str, body: dict[str, Any]) -> list[tuple[str, Any]]:
        """Server-Sent Events: the name and the data of each."""
        events, name = [], ""
        async with self.http.stream("POST", path, json={**body, "stream": True}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    text = line.removeprefix("data: ")
                    events.append((name, text if text == "[DONE]" else json.loads(text)))
                    name = ""
        return events


def completion_text(response: httpx2.Response) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


def session_headers(name: str, **fields: str) -> dict[str, str]:
    return {"X-Hermes-Session": name, **fields}
