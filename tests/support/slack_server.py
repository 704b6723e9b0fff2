"""A server on loopback that speaks the Web API and the Socket Mode of Slack as documented.

An envelope that was not acknowledged is sent again: to the next connection, or when a test
lets the time for an answer run out. Faults are planned per method and happen once each.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections import defaultdict
from typing import Any, NamedTuple

from aiohttp import WSMsgType, web

from support.loopback import LoopbackServer, abort

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


class SlackServer(LoopbackServer[Fault]):
    """A workspace with one app."""

    def __init__(self) -> None:
        super().__init__()
        self.channels = dict(CHANNELS)
        self.types = dict(TYPES)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.messages: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.reactions: list[tuple[str, str, str]] = []
        self.files: dict[str, bytes] = {}
        self.file_requests: list[str] = []  # the token that came with each
        self.uploads: dict[str, bytes] = {}
        self.unacknowledged: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[str] = []
        self.opened = 0
        self.link = ""  # another address for the WebSocket
        self.is_short = False  # connections end as soon as they have begun
        self.revoked: set[str] = set()  # tokens
        self._lines: list[tuple[web.WebSocketResponse, web.Request]] = []
        self._numbers = itertools.count(1)
        self._last = 0

    # Being there

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/link", self._link)
        router.add_get("/files/{name}", self._file)
        router.add_post("/upload/{name}", self._upload)
        router.add_route("*", "/api/{method}", self._api)

    @property
    def base_url(self) -> str:
        return f"{self.address}/api"

    @property
    def is_connected(self) -> bool:
        return any(not line.closed for line, _ in self._lines)

    def cut(self) -> None:
        """Every connection breaks."""
        for _, request in self._lines:
            abort(request)
        self._lines.clear()

    def ts(self) -> str:
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return f"{self._last // 10**6}.{self._last % 10**6:06d}"

    # What people do

    async def say(
        self, channel: str, text: str, user: str = ANN, kind: str = "message", **facts: Any
    ) -> dict[str, Any]:
        known = {"user": user, "text": text, "ts": self.ts(), **facts}
        event = {"type": kind, "channel": channel, "channel_type": self.types[channel], **known}
        self.messages[channel].append(event)
        await self.deliver(event)
        return event

    def add_direct(self, channel: str, user: str = ANN) -> None:
        """Another direct chat."""
        self.channels[channel] = {"id": channel, "is_im": True, "user": user}
        self.types[channel] = "im"

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
        result = {"envelope_id": name, "type": kind, "payload": payload, "retry_attempt": 0}
        self.unacknowledged[name] = {**result, "accepts_response_payload": False}
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
        return [item["text"] for item in self.messages[channel]]

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
        if self.is_short:
            await line.close()
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
        if wanted in self.revoked or request.headers.get("Authorization") != f"Bearer {wanted}":
            return _refused("invalid_auth")
        fault = self.planned(method)
        is_spared = fault and fault.only_marked and facts.get("mrkdwn") in {False, "0", "false"}
        if fault and not is_spared and (fault.error or fault.status != 200):
            answer = {"ok": False, "error": fault.error} if fault.error else "<html>"
            return web.json_response(answer, status=fault.status, headers=fault.headers)
        answered = self._answered(method, facts)
        if fault and fault.is_cut:
            abort(request)
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
        return _ok(url=self.link or f"ws://127.0.0.1:{self.port}/link?ticket=a-secret-ticket")

    def _post(self, facts: dict[str, Any]) -> web.Response:
        if facts["channel"] not in self.channels:
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
        item = (facts["channel"], facts["timestamp"], facts["name"])
        if item in self.reactions:
            return _refused("already_reacted")
        self.reactions.append(item)
        return _ok()

    def _user(self, facts: dict[str, Any]) -> web.Response:
        name = NAMES.get(facts["user"])
        if name is None:
            return _refused("user_not_found")
        profile = {"display_name": name}
        return _ok(user={"id": facts["user"], "name": name.lower(), "profile": profile})

    def _channel(self, facts: dict[str, Any]) -> web.Response:
        channel = self.channels.get(facts["channel"])
        return _ok(channel=channel) if channel else _refused("channel_not_found")

    def _history(self, facts: dict[str, Any]) -> web.Response:
        oldest, limit = float(facts["oldest"]), int(facts["limit"])
        latest = float(facts.get("latest") or "inf")
        matches = [
            {name: item[name] for name in item if name not in {"channel", "channel_type"}}
            for item in self.messages[facts["channel"]]
            if oldest < float(item["ts"]) < latest and not _is_reply(item)
        ]
        return _ok(messages=matches[-limit:][::-1], has_more=len(matches) > limit)

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
        return _ok(files=[{"id": file["id"], "title": file["title"]} for file in files])

    async def _file(self, request: web.Request) -> web.Response:
        self.file_requests.append(request.headers.get("Authorization", ""))
        data = self.files.get(request.match_info["name"])
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text="<html>log in</html>", content_type="text/html")
        return web.Response(status=404) if data is None else web.Response(body=data)


async def _facts(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    return {**request.query, **{name: str(item) for name, item in (await request.post()).items()}}


def _is_reply(message: dict[str, Any]) -> bool:
    return bool(message.get("thread_ts")) and message["thread_ts"] != message["ts"]


def _ok(**facts: Any) -> web.Response:
    return web.json_response({"ok": True, **facts})


def _refused(error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error})
