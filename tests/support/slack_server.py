"""A server on loopback that speaks the Web API and the Socket Mode of Slack as documented.

An envelope that was not acknowledged is sent again: to the next connection, or when a test
lets the time for an answer run out. Faults are planned per method and happen once each.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from aiohttp import WSMsgType, web

from gateway.config import PlatformConfig
from gateway.equipping import StoredMemory
from gateway.front import Front
from gateway.media import MediaStore
from gateway.platforms.base import MessageEvent, Surroundings
from hermes_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from hermes_state import SessionDB

BOT_TOKEN, APP_TOKEN = "xoxb-secret-of-the-bot", "xapp-secret-of-the-app"
TEAM, BOT_USER, ANN, BOB = "T1", "UBOT", "UANN", "UBOB"
DM, GENERAL, SEVERAL = "D1", "C1", "G1"
NAMES = {ANN: "Ann", BOB: "Bob", BOT_USER: "hermes"}
CHANNELS: dict[str, dict[str, Any]] = {
    DM: {"id": DM, "is_im": True, "user": ANN},
    GENERAL: {"id": GENERAL, "name": "general", "is_channel": True},
    SEVERAL: {"id": SEVERAL, "name": "mpdm-ann--bob", "is_mpim": True},
}
TYPES = {DM: "im", GENERAL: "channel", SEVERAL: "mpim"}


class Fault(NamedTuple):
    """What happens to one request."""

    error: str = ""
    status: int = 200
    headers: dict[str, str] | None = None
    is_cut: bool = False  # the connection ends without an answer, after it was done
    only_marked: bool = False  # spares texts without marks


class SlackServer:
    """A workspace with one app."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.messages: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.reactions: list[tuple[str, str, str]] = []
        self.files: dict[str, bytes] = {}
        self.file_requests: list[str] = []  # the token that came with each
        self.uploads: dict[str, bytes] = {}
        self.unacknowledged: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[str] = []
        self.opened = 0
        self._lines: list[tuple[web.WebSocketResponse, web.Request]] = []
        self._faults: dict[str, list[Fault]] = {}
        self._numbers = itertools.count(1)
        self._last = 0
        self._runner: web.AppRunner | None = None

    # Being there

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        app = web.Application(client_max_size=100_000_000)
        app.router.add_get("/link", self._link)
        app.router.add_get("/files/{name}", self._file)
        app.router.add_post("/upload/{name}", self._upload)
        app.router.add_route("*", "/api/{method}", self._api)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self.cut()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_connected(self) -> bool:
        return any(not line.closed for line, _ in self._lines)

    def fail(self, method: str, *faults: Fault) -> None:
        """Plan what happens to the next calls of a method."""
        self._faults.setdefault(method, []).extend(faults)

    def cut(self) -> None:
        """Every connection breaks."""
        for _, request in self._lines:
            if request.transport is not None:
                request.transport.abort()
        self._lines.clear()

    def ts(self) -> str:
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return f"{self._last // 10**6}.{self._last % 10**6:06d}"

    # What people do

    async def say(
        self, channel: str, text: str, user: str = ANN, kind: str = "message", **facts: Any
    ) -> dict[str, Any]:
        known = {"user": user, "text": text, "ts": self.ts(), **facts}
        event = {"type": kind, "channel": channel, "channel_type": TYPES[channel], **known}
        self.messages[channel].append(event)
        await self.deliver(event)
        return event

    async def change(self, event: dict[str, Any], text: str) -> None:
        inner = {name: event[name] for name in event if name not in {"channel", "channel_type"}}
        new = {**inner, "text": text, "edited": {"user": event["user"], "ts": self.ts()}}
        around = {"type": "message", "subtype": "message_changed", "ts": self.ts()}
        place = {"channel": event["channel"], "channel_type": event["channel_type"]}
        await self.deliver({**around, **place, "message": new, "previous_message": inner})

    async def deliver(self, event: dict[str, Any]) -> str:
        payload = {"type": "event_callback", "team_id": TEAM, "event": event}
        return await self.envelope("events_api", payload)

    async def envelope(self, kind: str, payload: dict[str, Any]) -> str:
        name = f"e{next(self._numbers)}"
        found = {"envelope_id": name, "type": kind, "payload": payload, "retry_attempt": 0}
        self.unacknowledged[name] = {**found, "accepts_response_payload": False}
        await self._send(self.unacknowledged[name])
        return name

    async def run_out_of_time(self) -> None:
        """Three seconds have passed: what was not acknowledged is sent again."""
        for envelope in list(self.unacknowledged.values()):
            envelope["retry_attempt"] += 1
            envelope["retry_reason"] = "timeout"
            await self._send(envelope)

    async def ask_for_another(self, reason: str = "refresh_requested") -> None:
        await self._send({"type": "disconnect", "reason": reason, "debug_info": {}})

    def file(self, name: str, data: bytes, mime: str, **facts: Any) -> dict[str, Any]:
        self.files[name] = data
        url = f"{self.address}/files/{name}"
        known = {"id": f"F{name}", "name": name, "mimetype": mime, "size": len(data)}
        return {**known, "url_private": url, "url_private_download": url, **facts}

    def texts(self, channel: str) -> list[str]:
        return [one["text"] for one in self.messages[channel]]

    # Socket Mode

    async def _send(self, message: dict[str, Any]) -> None:
        for line, _ in self._lines[-1:]:
            with contextlib.suppress(ConnectionError):  # it was cut
                await line.send_json(message)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        line = web.WebSocketResponse()
        await line.prepare(request)
        self.opened += 1
        self._lines.append((line, request))
        await line.send_json({"type": "hello", "num_connections": 1})
        await self.run_out_of_time()
        async for message in line:
            if message.type is WSMsgType.TEXT:
                name = json.loads(message.data)["envelope_id"]
                self.acknowledged.append(name)
                self.unacknowledged.pop(name, None)
        with contextlib.suppress(ValueError):
            self._lines.remove((line, request))
        return line

    # The Web API

    async def _api(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        facts = await _facts(request)
        self.asked.append((method, facts))
        wanted = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("Authorization") != f"Bearer {wanted}":
            return _refused("invalid_auth")
        fault = self._faults.get(method) and self._faults[method].pop(0)
        is_spared = fault and fault.only_marked and facts.get("mrkdwn") in {False, "0", "false"}
        if fault and not is_spared and (fault.error or fault.status != 200):
            answer = {"ok": False, "error": fault.error} if fault.error else "<html>"
            return web.json_response(answer, status=fault.status, headers=fault.headers)
        answered = self._answered(method, facts)
        if fault and fault.is_cut and request.transport is not None:
            request.transport.abort()
        return answered

    def _answered(self, method: str, facts: dict[str, Any]) -> web.Response:
        answers = {
            "auth.test": lambda _: _ok(team_id=TEAM, user_id=BOT_USER, team="A team"),
            "apps.connections.open": self._open,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "reactions.add": self._react,
            "users.info": self._user,
            "conversations.info": self._channel,
            "conversations.history": self._history,
            "files.getUploadURLExternal": self._upload_url,
            "files.completeUploadExternal": self._complete,
        }
        return answers[method](facts) if method in answers else _refused("unknown_method")

    def _open(self, _: dict[str, Any]) -> web.Response:
        return _ok(url=f"ws://127.0.0.1:{self.port}/link?ticket=a-secret-ticket")

    def _post(self, facts: dict[str, Any]) -> web.Response:
        if facts["channel"] not in CHANNELS:
            return _refused("channel_not_found")
        if len(facts["text"]) > 40_000:
            return _refused("msg_too_long")
        message = {**facts, "ts": self.ts(), "user": BOT_USER, "bot_id": "B1"}
        self.messages[facts["channel"]].append(message)
        return _ok(ts=message["ts"], channel=facts["channel"], message=message)

    def _update(self, facts: dict[str, Any]) -> web.Response:
        for message in self.messages[facts["channel"]]:
            if message["ts"] == facts["ts"] and len(facts["text"]) > 4000:
                return _refused("msg_too_long")
            if message["ts"] == facts["ts"]:
                message["text"] = facts["text"]
                return _ok(ts=facts["ts"], channel=facts["channel"])
        return _refused("message_not_found")

    def _react(self, facts: dict[str, Any]) -> web.Response:
        one = (facts["channel"], facts["timestamp"], facts["name"])
        if one in self.reactions:
            return _refused("already_reacted")
        self.reactions.append(one)
        return _ok()

    def _user(self, facts: dict[str, Any]) -> web.Response:
        name = NAMES.get(facts["user"])
        if name is None:
            return _refused("user_not_found")
        profile = {"display_name": name}
        return _ok(user={"id": facts["user"], "name": name.lower(), "profile": profile})

    def _channel(self, facts: dict[str, Any]) -> web.Response:
        found = CHANNELS.get(facts["channel"])
        return _ok(channel=found) if found else _refused("channel_not_found")

    def _history(self, facts: dict[str, Any]) -> web.Response:
        oldest, limit = float(facts["oldest"]), int(facts["limit"])
        latest = float(facts.get("latest") or "inf")
        found = [
            {name: one[name] for name in one if name not in {"channel", "channel_type"}}
            for one in self.messages[facts["channel"]]
            if oldest < float(one["ts"]) < latest and not _is_reply(one)
        ]
        return _ok(messages=found[-limit:][::-1], has_more=len(found) > limit)

    def _upload_url(self, facts: dict[str, Any]) -> web.Response:
        name = f"F{next(self._numbers)}"
        return _ok(upload_url=f"{self.address}/upload/{name}", file_id=name)

    async def _upload(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers
        self.uploads[request.match_info["name"]] = await request.read()
        return web.Response(text="OK")

    def _complete(self, facts: dict[str, Any]) -> web.Response:
        files = json.loads(facts["files"]) if isinstance(facts["files"], str) else facts["files"]
        channel = facts["channel_id"]
        message = {"ts": self.ts(), "text": facts.get("initial_comment", ""), "files": files}
        self.messages[channel].append({**message, "thread_ts": facts.get("thread_ts")})
        return _ok(files=[{"id": one["id"], "title": one["title"]} for one in files])

    async def _file(self, request: web.Request) -> web.Response:
        self.file_requests.append(request.headers.get("Authorization", ""))
        data = self.files.get(request.match_info["name"])
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text="<html>log in</html>", content_type="text/html")
        return web.Response(status=404) if data is None else web.Response(body=data)


async def _facts(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    return {**request.query, **{name: str(one) for name, one in (await request.post()).items()}}


def _is_reply(message: dict[str, Any]) -> bool:
    return bool(message.get("thread_ts")) and message["thread_ts"] != message["ts"]


def _ok(**facts: Any) -> web.Response:
    return web.json_response({"ok": True, **facts})


def _refused(error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error})


# What an adapter is made from, and where its messages end up


class Inbox:
    """Takes messages; the next ones may fail, or wait at a gate."""

    def __init__(self) -> None:
        self.events: list[MessageEvent] = []
        self.failures = 0
        self.gate: asyncio.Event | None = None
        self.tries = 0

    async def __call__(self, event: MessageEvent) -> None:
        self.tries += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("the disk is full")
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.events]

    async def until(self, count: int) -> list[MessageEvent]:
        await waited(lambda: len(self.events) >= count)
        return self.events


async def waited(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - what is waited for is in the server
            await asyncio.sleep(0.005)


class World:
    """A server, and everything an adapter is made from."""

    def __init__(
        self,
        platform: str,
        server: Any,
        make: Callable[..., Any],
        secrets: dict[str, str],
        base_url: str,
        db: SessionDB,
        folder: Path,
    ) -> None:
        self.server = server
        self.inbox = Inbox()
        self.secrets = secrets
        self.extra: dict[str, Any] = {"base_url": base_url}
        self.media = MediaStore(folder / "media", largest=1000)
        self._memory = StoredMemory(db, platform)
        self._make = make

    def surroundings(self) -> Surroundings:
        return Surroundings(
            PlatformConfig(enabled=True, extra=self.extra),
            lambda name: self.secrets.get(name, ""),
            self.media,
            self._memory,
            Front("127.0.0.1", 0),
        )

    def adapter(self) -> Any:
        return self._make(self.surroundings(), pauses=(0.01,))

    @asynccontextmanager
    async def connected(self, inbox: Inbox | None = None) -> AsyncIterator[Any]:
        adapter = self.adapter()
        try:
            await adapter.connect(inbox or self.inbox)
            yield adapter
        finally:
            await adapter.disconnect()

    async def acknowledged(self) -> None:
        await waited(lambda: not self.server.unacknowledged)
