"""What the API's adapter is made from in a test, and programs that ask it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2

from gateway.platforms.api_server.adapter import ApiAdapter
from gateway.process.adapter_factory import AdapterMemory
from gateway.process.http_server import HttpServer
from hermes_core.paths import hermes_home
from support.adapters import AdapterSetup
from support.gateways import started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB

KEY = "a-key-that-nobody-guesses"
COMPLETIONS = "/v1/chat/completions"
RESPONSES = "/v1/responses"
SLOW = "[{say: one two three four five six, pause: 0.2}]"


class ApiSetup(AdapterSetup):
    """What an adapter is made from, and a client."""

    def __init__(self, db: SessionDB, folder: Path) -> None:
        secrets = {"API_SERVER_KEY": KEY}
        super().__init__(AdapterMemory(db, "api_server"), hermes_home(), secrets, largest=3_000_000)
        self.db = db
        self.folder = folder

    @asynccontextmanager
    async def open(self, drain: float = 10) -> AsyncIterator[Client]:
        """A gateway with the API, until the block ends."""
        self.front = front = HttpServer("127.0.0.1", 0)
        adapters: dict[str, Any] = {"api_server": ApiAdapter(self.context())}
        try:
            async with started(self.db, self.folder, adapters=adapters, drain=drain) as service:
                headers = {"Authorization": f"Bearer {KEY}"}
                async with httpx2.AsyncClient(
                    base_url=front.url, headers=headers, timeout=30
                ) as http:
                    yield Client(http, service)
        finally:
            await front.close()


class Client:
    """A program that asks."""

    def __init__(self, http: httpx2.AsyncClient, service: Any) -> None:
        self.http = http
        self.service = service

    async def ask(self, text: str, **more: Any) -> httpx2.Response:
        """A chat completion."""
        headers, url = more.pop("headers", {}), more.pop("url", COMPLETIONS)
        body = {"model": "any", "messages": [{"role": "user", "content": text}], **more}
        return await self.http.post(url, json=body, headers=headers)

    async def respond(self, given: Any, **more: Any) -> dict[str, Any]:
        """A response."""
        response = await self.http.post(RESPONSES, json={"model": "any", "input": given, **more})
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def stream(self, path: str, body: dict[str, Any]) -> list[tuple[str, Any]]:
        """Server-Sent Events: the name and the data of each."""
        result, name = [], ""
        async with self.http.stream("POST", path, json={**body, "stream": True}) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    text = line.removeprefix("data: ")
                    result.append((name, text if text == "[DONE]" else json.loads(text)))
                    name = ""
        return result


def text_of(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def session(name: str, **more: str) -> dict[str, str]:
    return {"X-Hermes-Session": name, **more}
