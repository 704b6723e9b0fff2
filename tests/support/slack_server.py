"""A server on loopback with the documented Web API and Socket Mode of Slack.

An unacknowledged envelope is sent again: to the next connection, or when a test triggers
the timeout. Faults are planned per method and occur once each.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections import defaultdict
from typing import Any, NamedTuple

from aiohttp import WSMsgType, web

from support.loopback import LoopbackServer, abort_connection

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
    """A fault of one request."""

    error: str = ""
    status: int = 200
    headers: dict[str, str] | None = None
    is_cut: bool = False  # the connection ends without a response, after the request took effect
    only_marked: bool = False  # only texts with markup fail


class SlackServer(LoopbackServer[Fault]):
    """A workspace with one app."""

    def __init__(self) -> None:
        super().__init__()
        self.channels = dict(CHANNELS)
        self.types = dict(TYPES)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.messages: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.reactions: list[tuple[str, str, str]] = []
        self.files: dict[str, bytes] = {}
        self.file_requests: list[str] = []  # the Authorization header of each
        self.uploads: dict[str, bytes] = {}
        self.unacknowledged: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[str] = []
        self.opened = 0
        self.link = ""  # another URL for the WebSocket
        self.closes_at_once = False  # connections are closed after the greeting
        self.revoked: set[str] = set()  # tokens
        self._connections: list[tuple[web.WebSocketResponse, web.Request]] = []
        self._numbers = itertools.count(1)
        self._last = 0

    # Life cycle

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
        return any(not socket.closed for socket, _ in self._connections)

    def cut_connections(self) -> None:
        """Abort every connection."""
        for _, request in self._connections:
            abort_connection(request)
        self._connections.clear()

    def ts(self) -> str:
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return f"{self._last // 10**6}.{self._last % 10**6:06d}"

    # User actions

    async def send_as_user(
        self, channel: str, text: str, user: str = ANN, kind: str = "message", **fields: Any
    ) -> dict[str, Any]:
        message_fields = {"user": user, "text": text, "ts": self.ts(), **fields}
        event = {
            "type": kind,
            "channel": channel,
            "channel_type": self.types[channel],
            **message_fields,
        }
        self.messages[channel].append(event)
        await self.deliver(event)
        return event

    def add_direct(self, channel: str, user: str = ANN) -> None:
        """Add a direct chat."""
        self.channels[channel] = {"id": channel, "is_im": True, "user": user}
        self.types[channel] = "im"

    async def change(self, event: dict[str, Any], text: str) -> None:
        inner = {name: event[name] for name in event if name not in {"channel", "channel_type"}}
        new = {**inner, "text": text, "edited": {"user": event["user"], "ts": self.ts()}}
        wrapper = {"type": "message", "subtype": "message_changed", "ts": self.ts()}
        location = {"channel": event["channel"], "channel_type": event["channel_type"]}
        await self.deliver({**wrapper, **location, "message": new, "previous_message": inner})

    async def delete(self, event: dict[str, Any]) -> None:
        location = {"channel": event["channel"], "channel_type": event["channel_type"]}
        wrapper = {"type": "message", "subtype": "message_deleted", "ts": self.ts()}
        fields = {"deleted_ts": event["ts"], "previous_message": event, "hidden": True}
        await self.deliver({**wrapper, **location, **fields})

    async def deliver(self, event: dict[str, Any]) -> str:
        payload = {"type": "event_callback", "team_id": TEAM, "event": event}
        return await self.envelope("events_api", payload)

    async def envelope(self, kind: str, payload: dict[str, Any]) -> str:
        name = f"e{next(self._numbers)}"
        envelope = {"envelope_id": name, "type": kind, "payload": payload, "retry_attempt": 0}
        self.unacknowledged[name] = {**envelope, "accepts_response_payload": False}
        await self._send(self.unacknowledged[name])
        return name

    async def command(self, channel: str, name: str, text: str = "", user: str = ANN) -> str:
        """Type a slash command of the app."""
        place = {"channel_id": channel, "channel_name": "directmessage", "team_id": TEAM}
        sender = {"user_id": user, "user_name": NAMES[user].lower(), "trigger_id": self.ts()}
        return await self.envelope(
            "slash_commands", {"command": name, "text": text, **place, **sender}
        )

    def buttons(self, message: dict[str, Any]) -> dict[str, str]:
        """The labels of the buttons below a message, and their values."""
        blocks = message.get("blocks") or []
        blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
        for block in blocks:
            assert block["type"] != "section" or len(block["text"]["text"]) <= 3000
        elements = [item for block in blocks for item in block.get("elements", [])]
        assert all(len(item["text"]["text"]) <= 75 for item in elements)
        return {item["text"]["text"]: item["value"] for item in elements}

    async def press(
        self, channel: str, message: dict[str, Any], label: str, user: str = ANN
    ) -> str:
        """Press a button below a message."""
        action = {"type": "button", "action_id": "a", "value": self.buttons(message)[label]}
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": NAMES[user].lower()},
            "channel": {"id": channel, "name": "directmessage"},
            "team": {"id": TEAM},
            "message": {name: message.get(name) for name in ("ts", "thread_ts", "text")},
            "actions": [{**action, "action_ts": self.ts()}],
        }
        return await self.envelope("interactive", payload)

    async def time_out(self) -> None:
        """Send the unacknowledged envelopes again, as Slack does after three seconds."""
        for envelope in list(self.unacknowledged.values()):
            envelope["retry_attempt"] += 1
            envelope["retry_reason"] = "timeout"
            await self._send(envelope)

    async def request_reconnect(self, reason: str = "refresh_requested") -> None:
        await self._send({"type": "disconnect", "reason": reason, "debug_info": {}})

    def file(self, name: str, data: bytes, mime: str, **fields: Any) -> dict[str, Any]:
        self.files[name] = data
        url = f"{self.address}/files/{name}"
        description = {"id": f"F{name}", "name": name, "mimetype": mime, "size": len(data)}
        return {**description, "url_private": url, "url_private_download": url, **fields}

    def texts(self, channel: str) -> list[str]:
        return [message["text"] for message in self.messages[channel]]

    # Socket Mode

    async def _send(self, message: dict[str, Any]) -> None:
        for socket, _ in self._connections[-1:]:
            with contextlib.suppress(ConnectionError):  # it was cut
                await socket.send_json(message)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.opened += 1
        self._connections.append((socket, request))
        await socket.send_json({"type": "hello", "num_connections": 1})
        await self.time_out()
        if self.closes_at_once:
            await socket.close()
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                name = json.loads(message.data)["envelope_id"]
                self.acknowledged.append(name)
                self.unacknowledged.pop(name, None)
        with contextlib.suppress(ValueError):
            self._connections.remove((socket, request))
        return socket

    # The Web API

    async def _api(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        fields = await _fields(request)
        self.requests.append((method, fields))
        token = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if token in self.revoked or request.headers.get("Authorization") != f"Bearer {token}":
            return _error("invalid_auth")
        fault = self.next_fault(method)
        is_spared = fault and fault.only_marked and fields.get("mrkdwn") in {False, "0", "false"}
        if fault and not is_spared and (fault.error or fault.status != 200):
            body = {"ok": False, "error": fault.error} if fault.error else "<html>"
            return web.json_response(body, status=fault.status, headers=fault.headers)
        response = self._respond(method, fields)
        if fault and fault.is_cut:
            abort_connection(request)
        return response

    def _respond(self, method: str, fields: dict[str, Any]) -> web.Response:
        handlers = {
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
        return handlers[method](fields) if method in handlers else _error("unknown_method")

    def _open(self, _: dict[str, Any]) -> web.Response:
        return _ok(url=self.link or f"ws://127.0.0.1:{self.port}/link?ticket=a-secret-ticket")

    def _post(self, fields: dict[str, Any]) -> web.Response:
        if fields["channel"] not in self.channels:
            return _error("channel_not_found")
        if len(fields["text"]) > 40_000:
            return _error("msg_too_long")
        message = {**fields, "ts": self.ts(), "user": BOT_USER, "bot_id": "B1"}
        self.messages[fields["channel"]].append(message)
        return _ok(ts=message["ts"], channel=fields["channel"], message=message)

    def _update(self, fields: dict[str, Any]) -> web.Response:
        for message in self.messages[fields["channel"]]:
            if message["ts"] == fields["ts"] and len(fields["text"]) > 4000:
                return _error("msg_too_long")
            if message["ts"] == fields["ts"]:
                message["text"] = fields["text"]
                if "blocks" in fields:
                    given = fields["blocks"]
                    message["blocks"] = json.loads(given) if isinstance(given, str) else given
                return _ok(ts=fields["ts"], channel=fields["channel"])
        return _error("message_not_found")

    def _react(self, fields: dict[str, Any]) -> web.Response:
        item = (fields["channel"], fields["timestamp"], fields["name"])
        if item in self.reactions:
            return _error("already_reacted")
        self.reactions.append(item)
        return _ok()

    def _user(self, fields: dict[str, Any]) -> web.Response:
        name = NAMES.get(fields["user"])
        if name is None:
            return _error("user_not_found")
        profile = {"display_name": name}
        return _ok(user={"id": fields["user"], "name": name.lower(), "profile": profile})

    def _channel(self, fields: dict[str, Any]) -> web.Response:
        channel = self.channels.get(fields["channel"])
        return _ok(channel=channel) if channel else _error("channel_not_found")

    def _history(self, fields: dict[str, Any]) -> web.Response:
        oldest, limit = float(fields["oldest"]), int(fields["limit"])
        latest = float(fields.get("latest") or "inf")
        matches = [
            {name: item[name] for name in item if name not in {"channel", "channel_type"}}
            for item in self.messages[fields["channel"]]
            if oldest < float(item["ts"]) < latest and not _is_reply(item)
        ]
        return _ok(messages=matches[-limit:][::-1], has_more=len(matches) > limit)

    def _upload_url(self, fields: dict[str, Any]) -> web.Response:
        name = f"F{next(self._numbers)}"
        return _ok(upload_url=f"{self.address}/upload/{name}", file_id=name)

    async def _upload(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers
        self.uploads[request.match_info["name"]] = await request.read()
        return web.Response(text="OK")

    def _complete(self, fields: dict[str, Any]) -> web.Response:
        files = json.loads(fields["files"]) if isinstance(fields["files"], str) else fields["files"]
        channel = fields["channel_id"]
        message = {"ts": self.ts(), "text": fields.get("initial_comment", ""), "files": files}
        self.messages[channel].append({**message, "thread_ts": fields.get("thread_ts")})
        return _ok(files=[{"id": file["id"], "title": file["title"]} for file in files])

    async def _file(self, request: web.Request) -> web.Response:
        self.file_requests.append(request.headers.get("Authorization", ""))
        data = self.files.get(request.match_info["name"])
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text="<html>log in</html>", content_type="text/html")
        return web.Response(status=404) if data is None else web.Response(body=data)


async def _fields(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    return {**request.query, **{name: str(value) for name, value in (await request.post()).items()}}


def _is_reply(message: dict[str, Any]) -> bool:
    return bool(message.get("thread_ts")) and message["thread_ts"] != message["ts"]


def _ok(**fields: Any) -> web.Response:
    return web.json_response({"ok": True, **fields})


def _error(error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error})
