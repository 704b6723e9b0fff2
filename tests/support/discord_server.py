"""A server on loopback with the documented REST API and gateway of Discord.

Dispatched events are stored per session and sent again after a RESUME; a session that was
closed or dropped cannot be resumed. Faults are planned per route and occur once each.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import zlib
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aiohttp import WSMsgType, web

from support.loopback import LoopbackServer, abort_connection

TOKEN = "MTA0.secret.of-the-bot"
EPOCH = 1420070400000
BOT_ID, ANN_ID, BOB_ID, OTHER_BOT_ID = 4242, 7, 8, 9
DM, GENERAL, THREAD, GUILD, BOT_ROLE = 100, 200, 300, 500, 600
TEXT, DIRECT, PUBLIC_THREAD = 0, 1, 11


def make_user(number: int, name: str, *, is_bot: bool = False) -> dict[str, Any]:
    fields = {"id": str(number), "username": name.lower(), "global_name": name}
    return {**fields, "discriminator": "0", "avatar": None, "bot": is_bot}


BOT = make_user(BOT_ID, "Hermes", is_bot=True)
ANN = make_user(ANN_ID, "Ann")
BOB = make_user(BOB_ID, "Bob")
OTHER_BOT = make_user(OTHER_BOT_ID, "Robot", is_bot=True)


class Fault(NamedTuple):
    """A fault of one request."""

    status: int = 0
    body: Any = None
    headers: dict[str, str] | None = None
    is_cut: bool = False  # the connection ends without a response, after the request took effect


class Session:
    """A session of the gateway and its dispatched events."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self.wire: Wire | None = None


class Wire:
    """A WebSocket with the requested compression."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.socket = socket
        self.request = request
        is_packed = request.query.get("compress") == "zlib-stream"
        self._packer = zlib.compressobj() if is_packed else None

    async def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message)
        with contextlib.suppress(ConnectionError):  # it was cut
            if self._packer is None:
                await self.socket.send_str(data)
                return
            packed = self._packer.compress(data.encode()) + self._packer.flush(zlib.Z_SYNC_FLUSH)
            await self.socket.send_bytes(packed)


class DiscordServer(LoopbackServer[Fault]):
    """Discord, with one bot, one guild and a direct chat."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: dict[str, Session] = {}
        self.messages: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.channels: dict[int, dict[str, Any]] = {
            DM: {"id": str(DM), "type": DIRECT, "recipients": [ANN]},
            GENERAL: _guild_channel(GENERAL, TEXT, "general"),
            THREAD: {
                **_guild_channel(THREAD, PUBLIC_THREAD, "a thread"),
                "parent_id": str(GENERAL),
                "owner_id": str(ANN_ID),
                "message_count": 0,
                "member_count": 1,
                "thread_metadata": {
                    "archived": False,
                    "auto_archive_duration": 60,
                    "archive_timestamp": "2026-01-01T00:00:00+00:00",
                },
            },
        }
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        self.files: dict[str, bytes] = {}
        self.uploads: list[bytes] = []
        self.file_requests: list[str] = []
        self.identified: list[dict[str, Any]] = []
        self.resumed = 0
        self.close_code: int | None = None  # sent in answer to IDENTIFY
        self.commands: list[str] = []  # the application commands
        self.confirmed: list[int] = []  # the kinds of answers to interactions
        self._pressed: dict[str, dict[str, Any]] = {}  # messages by interaction
        self._nonces: dict[str, dict[str, Any]] = {}
        self._last_id = 0

    # Life cycle

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/gateway", self._gateway)
        router.add_get("/files/{name}", self._file)
        router.add_route("*", "/api/v10/{path:.*}", self._api)

    @property
    def base_url(self) -> str:
        return f"{self.address}/api/v10"

    def cut_connections(self) -> None:
        """Abort every gateway connection."""
        for session in self.sessions.values():
            if session.wire is not None:
                abort_connection(session.wire.request)

    def drop_sessions(self) -> None:
        """Drop all sessions, so that none can be resumed."""
        self.cut_connections()
        self.sessions.clear()

    def new_id(self) -> int:
        now = (int(time.time() * 1000) - EPOCH) << 22
        self._last_id = max(self._last_id + 1, now)
        return self._last_id

    # User actions

    async def send_as_user(
        self, channel: int, text: str, author: dict[str, Any] = ANN, **fields: Any
    ) -> dict[str, Any]:
        message = self.message(channel, text, author, **fields)
        self.messages[channel].append(message)
        if channel in self.channels:
            self.channels[channel]["last_message_id"] = message["id"]
        await self.dispatch("MESSAGE_CREATE", self._gateway_message(message))
        return message

    def add_direct(self, channel: int) -> None:
        """Add a direct chat."""
        self.channels[channel] = {"id": str(channel), "type": DIRECT, "recipients": [ANN]}

    async def close(self, code: int) -> None:
        """Close every session with a code; none can be resumed."""
        wires = [session.wire for session in self.sessions.values() if session.wire is not None]
        self.sessions.clear()
        for wire in wires:
            await wire.socket.close(code=code)

    async def change(self, message: dict[str, Any], text: str | None = None) -> None:
        """Change the text; without one, only a link preview is added."""
        if text is not None:
            message |= {"content": text, "edited_timestamp": _now()}
        await self.dispatch("MESSAGE_UPDATE", self._gateway_message(message))

    async def delete(self, *messages: dict[str, Any]) -> None:
        """Delete one message, or several at once."""
        ids = [message["id"] for message in messages]
        names = {"id": ids[0]} if len(ids) == 1 else {"ids": ids}
        kind = "MESSAGE_DELETE" if len(ids) == 1 else "MESSAGE_DELETE_BULK"
        await self.dispatch(kind, {**names, "channel_id": messages[0]["channel_id"]})

    def message(
        self, channel: int, text: str, author: dict[str, Any], **fields: Any
    ) -> dict[str, Any]:
        return {
            "id": str(self.new_id()),
            "channel_id": str(channel),
            "author": author,
            "content": text,
            "timestamp": _now(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            **fields,
        }

    def attachment(self, name: str, data: bytes, mime: str, **fields: Any) -> dict[str, Any]:
        self.files[name] = data
        url = f"{self.address}/files/{name}"
        description = {"id": str(self.new_id()), "filename": name, "size": len(data)}
        return {**description, "url": url, "proxy_url": url, "content_type": mime, **fields}

    def _gateway_message(self, message: dict[str, Any]) -> dict[str, Any]:
        """The gateway's form of a message, with fields that REST omits."""
        channel = self.channels.get(int(message["channel_id"]), {})
        if "guild_id" not in channel:
            return message
        return {**message, "guild_id": channel["guild_id"], "member": _member()}

    def buttons(self, message: dict[str, Any]) -> dict[str, str]:
        """The labels of the buttons below a message, and their IDs."""
        keys = [key for row in message["components"] for key in row["components"]]
        assert all(len(key["label"]) <= 80 and len(key["custom_id"]) <= 100 for key in keys)
        return {key["label"]: key["custom_id"] for key in keys}

    async def press(self, message: dict[str, Any], label: str, user: dict[str, Any] = ANN) -> None:
        """Press a button below a message."""
        data = {"component_type": 2, "custom_id": self.buttons(message)[label]}
        number = await self._interact(3, int(message["channel_id"]), data, user, message=message)
        self._pressed[number] = message

    async def command(self, channel: int, name: str, arguments: str = "") -> None:
        """Type an application command."""
        options = [{"type": 3, "name": "arguments", "value": arguments}] if arguments else []
        data = {"id": "1", "type": 1, "name": name, "options": options}
        await self._interact(2, channel, data, ANN)

    async def _interact(
        self, kind: int, channel: int, data: dict[str, Any], user: dict[str, Any], **more: Any
    ) -> str:
        number = str(self.new_id())
        fields = {"id": number, "application_id": str(BOT_ID), "token": "t", "version": 1}
        place = {"channel_id": str(channel), "channel": self.channels[channel], "user": user}
        flags: dict[str, Any] = {"attachment_size_limit": 1000, "entitlements": []}
        flags["authorizing_integration_owners"] = {}
        await self.dispatch(
            "INTERACTION_CREATE", {**fields, **place, **flags, **more, "type": kind, "data": data}
        )
        return number

    def _confirm(self, number: str, body: dict[str, Any]) -> web.Response:
        self.confirmed.append(int(body["type"]))
        if number in self._pressed and body["type"] == 7:
            self._pressed[number]["components"] = body["data"]["components"]
        return _json({"interaction": {"id": number, "type": 2}})

    def texts(self, channel: int) -> list[str]:
        return [message["content"] for message in self.messages[channel]]

    # The gateway

    async def dispatch(self, kind: str, data: dict[str, Any]) -> None:
        for session in list(self.sessions.values()):
            await self._dispatch(session, kind, data)

    async def _dispatch(self, session: Session, kind: str, data: dict[str, Any]) -> None:
        event = {"op": 0, "t": kind, "s": len(session.events) + 1, "d": data}
        session.events.append(event)
        if session.wire is not None:
            await session.wire.send(event)

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        wire, session = Wire(socket, request), None
        await wire.send({"op": 10, "d": {"heartbeat_interval": 41250}})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            session = await self._answer(wire, json.loads(message.data), session)
        if session is not None:
            session.wire = None
            if socket.close_code in {1000, 1001}:
                self.sessions.pop(session.name, None)
        return socket

    async def _answer(
        self, wire: Wire, frame: dict[str, Any], session: Session | None
    ) -> Session | None:
        data = frame["d"]
        if frame["op"] == 1:
            await wire.send({"op": 11})
        elif frame["op"] == 2:
            return await self._identify(wire, data)
        elif frame["op"] == 6:
            return await self._resume(wire, data)
        return session

    async def _identify(self, wire: Wire, data: dict[str, Any]) -> Session | None:
        self.identified.append(data)
        code = self.close_code or (4004 if data["token"] != TOKEN else None)
        if code is not None:
            await wire.socket.close(code=code)
            return None
        session = Session(f"s{len(self.identified)}")
        self.sessions[session.name] = session
        session.wire = wire
        ready = {
            "v": 10,
            "user": BOT,
            "guilds": [{"id": str(GUILD), "unavailable": True}],
            "session_id": session.name,
            "resume_gateway_url": f"ws://127.0.0.1:{self.port}/gateway",
            "application": {"id": str(BOT_ID), "flags": 0},
        }
        await self._dispatch(session, "READY", ready)
        await self._dispatch(session, "GUILD_CREATE", self._guild())
        return session

    async def _resume(self, wire: Wire, data: dict[str, Any]) -> Session | None:
        session = self.sessions.get(data["session_id"])
        if session is None:
            await wire.send({"op": 9, "d": False})
            return None
        self.resumed += 1
        session.wire = wire
        for event in session.events[data["seq"] :]:
            await wire.send(event)
        await self._dispatch(session, "RESUMED", {})
        return session

    def _guild(self) -> dict[str, Any]:
        guild_channels = [channel for channel in self.channels.values() if "guild_id" in channel]
        bot_role = {"id": str(BOT_ROLE), "name": "Hermes", "tags": {"bot_id": str(BOT_ID)}}
        roles = [{"id": str(GUILD), "name": "@everyone"}, bot_role]
        role_fields = {"permissions": "0", "position": 0, "color": 0, "hoist": False}
        role_flags = {"managed": False, "mentionable": False, "flags": 0}
        return {
            "id": str(GUILD),
            "name": "A guild",
            "unavailable": False,
            "owner_id": str(ANN_ID),
            "roles": [{**role_fields, **role_flags, **role} for role in roles],
            "channels": [channel for channel in guild_channels if channel["type"] != PUBLIC_THREAD],
            "threads": [channel for channel in guild_channels if channel["type"] == PUBLIC_THREAD],
            "members": [{**_member(), "user": BOT}],
            "member_count": 3,
            "emojis": [],
            "stickers": [],
            "features": [],
        }

    # REST

    async def _api(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        route = f"{request.method} {_resource(path)}"
        body = await self._body(request)
        self.requests.append((request.method, path, body))
        if path.startswith("interactions/"):
            return self._confirm(path.split("/")[1], body)
        if request.headers.get("Authorization") != f"Bot {TOKEN}":
            return _json({"message": "401: Unauthorized", "code": 0}, 401)
        fault = self.next_fault(route)
        if fault and fault.status:
            headers = {"Via": "1.1 google", **(fault.headers or {})}
            return _response(fault.body, fault.status, headers)
        if path.endswith("/commands"):
            return self._register(body)
        response = self._respond(request, path.split("/"), body)
        if fault and fault.is_cut:
            abort_connection(request)
        return response

    def _register(self, commands: Any) -> web.Response:
        for command in commands:
            assert re.fullmatch("[a-z0-9_-]{1,32}", command["name"]), command
            assert 1 <= len(command["description"]) <= 100, command
        self.commands = [command["name"] for command in commands]
        return _json(commands)

    async def _body(self, request: web.Request) -> dict[str, Any]:
        if request.content_type == "multipart/form-data":
            form = await request.post()
            for name, part in form.items():
                if name.startswith("files") and isinstance(part, web.FileField):
                    self.uploads.append(part.file.read())
            return dict(json.loads(str(form["payload_json"])))
        return await request.json() if request.content_type == "application/json" else {}

    def _respond(
        self, request: web.Request, parts: list[str], body: dict[str, Any]
    ) -> web.Response:
        match parts:
            case ["users", "@me"]:
                return _json(BOT)
            case ["oauth2", "applications", "@me"]:
                fields = {"id": str(BOT_ID), "name": "Hermes", "description": "", "icon": None}
                flags = {"bot_public": True, "bot_require_code_grant": False, "flags": 0}
                return _json({**fields, **flags, "verify_key": "", "owner": ANN})
            case ["gateway", "bot"]:
                limit = {"total": 1000, "remaining": 999, "reset_after": 1, "max_concurrency": 1}
                url = f"ws://127.0.0.1:{self.port}/gateway"
                return _json({"url": url, "shards": 1, "session_start_limit": limit})
            case ["channels", number, *rest]:
                if int(number) not in self.channels:
                    return _json({"message": "Unknown Channel", "code": 10003}, 404)
                return self._in_channel(request, int(number), rest, body)
        return _json({"message": "404: Not Found", "code": 0}, 404)

    def _in_channel(
        self, request: web.Request, channel: int, rest: list[str], body: dict[str, Any]
    ) -> web.Response:
        match request.method, rest:
            case "GET", []:
                return _json(self.channels[channel])
            case "GET", ["messages"]:
                after, limit = int(request.query["after"]), int(request.query["limit"])
                matches = [item for item in self.messages[channel] if int(item["id"]) > after]
                return _json(matches[:limit][::-1])
            case "POST", ["messages"]:
                return self._post(channel, body)
            case "POST", ["typing"]:
                return web.Response(status=204)
            case _, ["messages", number, *_]:
                return self._in_message(request, channel, number, body)
        return _json({"message": "404: Not Found", "code": 0}, 404)

    def _in_message(
        self, request: web.Request, channel: int, number: str, body: dict[str, Any]
    ) -> web.Response:
        for message in self.messages[channel]:
            if message["id"] == number and request.method == "PATCH":
                message |= {"content": body["content"], "edited_timestamp": _now()}
                return _json(message)
            if message["id"] == number:
                return web.Response(status=204)
        return _json({"message": "Unknown Message", "code": 10008}, 404)

    def _post(self, channel: int, body: dict[str, Any]) -> web.Response:
        text = body.get("content") or ""
        if len(text) > 2000:
            problem = {"code": "BASE_TYPE_MAX_LENGTH", "message": TOO_LONG}
            errors = {"content": {"_errors": [problem]}}
            return _json({"message": "Invalid Form Body", "code": 50035, "errors": errors}, 400)
        nonce = body.get("nonce") if body.get("enforce_nonce") else None
        if nonce and len(nonce) > 25:
            return _json({"message": "Invalid Form Body", "code": 50035}, 400)
        if nonce and nonce in self._nonces:
            return _json(self._nonces[nonce])
        message = self.message(channel, text, BOT, components=body.get("components") or [])
        self.messages[channel].append(message)
        if nonce:
            self._nonces[nonce] = message
        return _json(message)

    async def _file(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers
        self.file_requests.append(request.match_info["name"])
        data = self.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)


TOO_LONG = "Must be 2000 or fewer in length."


def _guild_channel(number: int, kind: int, name: str) -> dict[str, Any]:
    fields = {"id": str(number), "type": kind, "name": name, "guild_id": str(GUILD)}
    return {**fields, "position": 0, "permission_overwrites": [], "last_message_id": None}


def _member() -> dict[str, Any]:
    fields = {"roles": [], "deaf": False, "mute": False, "flags": 0}
    return {**fields, "joined_at": "2020-01-01T00:00:00+00:00"}


def _resource(path: str) -> str:
    parts = [part for part in path.split("/") if not part.isdigit()]
    return parts[1] if len(parts) > 1 and parts[0] == "channels" else path


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _response(data: Any, status: int, headers: dict[str, str]) -> web.Response:
    """A JSON response without a charset: the client library parses no other."""
    headers = {"Content-Type": "application/json", **headers}
    return web.Response(body=json.dumps(data).encode(), status=status, headers=headers)


def _json(data: Any, status: int = 200) -> web.Response:
    return _response(data, status, {})
