"""A server on loopback with the documented Bot API of Telegram.

Updates are stored until a `getUpdates` with a higher offset confirms them; the others are
delivered again. Faults are planned per method and occur once each.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import time
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import ClientSession, web

from support.loopback import LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN = "4242:AAH-the-secret-part-of-the-token"
BOT = {"id": 4242, "is_bot": True, "first_name": "Hermes", "username": "HermesBot"}
ANN = {"id": 7, "is_bot": False, "first_name": "Ann", "last_name": "L.", "username": "ann"}
TAGS = {"b", "i", "u", "s", "a", "code", "pre", "blockquote", "tg-spoiler", "strong", "em"}
MAX_TEXT_UNITS, MAX_CAPTION_UNITS = 4096, 1024


class Fault(NamedTuple):
    """A fault of one request."""

    status: int = 0
    description: str = ""
    parameters: dict[str, Any] | None = None
    is_cut: bool = False  # the connection ends without a response, after the request took effect
    is_cut_in_body: bool = False
    only_formatted: bool = False  # only requests with parse_mode fail
    body: str | None = None  # instead of JSON


class ApiError(Exception):
    """An error response."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        self.status = status
        self.description = description
        self.parameters = parameters


class ParsedHtml(HTMLParser):
    """HTML as Telegram parses it: entities and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self.entities: list[tuple[str, str]] = []
        self._open: list[tuple[str, int]] = []
        self.feed(text)
        self.close()
        if self._open:
            raise ApiError(400, f"Bad Request: can't parse entities: no end of {self._open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            raise ApiError(400, f'Bad Request: can\'t parse entities: Unsupported tag "{tag}"')
        self._open.append((tag, len(self.text)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            raise ApiError(400, "Bad Request: can't parse entities: Unexpected end tag")
        _, start = self._open.pop()
        self.entities.append((tag, self.text[start:]))

    def handle_data(self, data: str) -> None:
        self.text += data


class SentMessage(NamedTuple):
    """A message of the bot, as its recipient sees it."""

    message_id: int
    chat_id: int
    text: str
    entities: list[tuple[str, str]]
    fields: dict[str, Any]  # of the request
    file: bytes | None = None


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


class TelegramServer(LoopbackServer[Fault]):
    """A Bot API with one bot; a chat exists once it has sent a message."""

    cancels_disconnected = True  # a killed client must not hold a long poll

    def __init__(self) -> None:
        super().__init__()
        self.is_revoked = False
        self.me: dict[str, Any] = dict(BOT)
        self.updates: dict[int, dict[str, Any]] = {}
        self.delivered: list[int] = []  # including repeated deliveries
        self.confirmed: list[int] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.sent: list[SentMessage] = []
        self.files: dict[str, bytes] = {}
        self.without_buttons: list[int] = []  # messages whose buttons were removed
        self.commands: list[str] = []  # the command menu
        self.bodies: list[bytes] = []  # sent instead of the next responses with updates
        self.file_gate: asyncio.Event | None = None  # files are served once it is set
        self.chats: set[int] = set()
        self.blocked: set[int] = set()
        self.topics: set[int] = set()
        self.webhook: dict[str, Any] = {}
        self._next_update = 1000
        self._next_message = 100
        self._changed = asyncio.Condition()
        self._poller: object = None

    # Life cycle

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/bot{token}/{method}", self._serve)
        router.add_get("/file/bot{token}/{path:.*}", self._serve_file)

    @property
    def base_url(self) -> str:
        return self.address

    def count(self, method: str) -> int:
        """The number of requests for a method."""
        return sum(name == method for name, _fields in self.requests)

    # User actions

    async def send_as_user(self, text: str | None = None, chat: int = 7, **fields: Any) -> int:
        """Send a message from a user; return its ID."""
        message = self.message(text, chat, **fields)
        await self.add("message", message)
        return int(message["message_id"])

    def message(self, text: str | None = None, chat: int = 7, **fields: Any) -> dict[str, Any]:
        """A message in Telegram's format; negative chat IDs are groups."""
        self.chats.add(chat)
        self._next_message += 1
        chat_object = (
            {"id": chat, "type": "private", "first_name": "Ann", "last_name": "L."}
            if chat > 0
            else {"id": chat, "type": "supergroup", "title": "Garden"}
        )
        result = {"message_id": self._next_message, "date": int(time.time()), "chat": chat_object}
        result |= {"from": ANN} | ({"text": text} if text is not None else {}) | fields
        return result

    async def add(self, kind: str, content: dict[str, Any]) -> int:
        """Add an update; return its ID."""
        self._next_update += 1
        update = {"update_id": self._next_update, kind: content}
        async with self._changed:
            self.updates[self._next_update] = update
            self._changed.notify_all()
        return self._next_update

    async def deliver(self, url: str, update_id: int, secret: str | None = None) -> int:
        """Call a webhook with an update; return the status, 200 confirms."""
        headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
        async with ClientSession() as client:
            body = io.BytesIO(json.dumps(self.updates[update_id]).encode())
            async with client.post(url, data=body, headers=headers) as response:
                if response.status == 200:
                    self._confirm(update_id + 1)
                return response.status

    # Requests

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        form = await request.post()
        fields = {name: _value(value) for name, value in form.items()}
        self.requests.append((method, fields))
        fault = self._fault(method, fields)
        try:
            if request.match_info["token"] != TOKEN or self.is_revoked:
                raise ApiError(401, "Unauthorized")
            if fault is not None and fault.status:
                raise ApiError(fault.status, fault.description, **(fault.parameters or {}))
            result = await self._respond(method, fields)
        except ApiError as error:
            return _error_response(error, fault)
        body = json.dumps({"ok": True, "result": result}).encode()
        if method == "getUpdates" and result and self.bodies:
            body = self.bodies.pop(0)
        if fault is not None and (fault.is_cut or fault.is_cut_in_body):
            return await _cut(request, body if fault.is_cut_in_body else None)
        return web.Response(body=body, content_type="application/json")

    def _fault(self, method: str, fields: dict[str, Any]) -> Fault | None:
        planned = self._faults.get(method, [])
        if planned and planned[0].only_formatted and not fields.get("parse_mode"):
            return None
        return self.next_fault(method)

    async def _serve_file(self, request: web.Request) -> web.StreamResponse:
        fault = self._fault("file", {})
        path = request.match_info["path"].removeprefix("files/")
        if request.match_info["token"] != TOKEN or path not in self.files:
            return web.json_response({"ok": False, "description": "Not Found"}, status=404)
        if self.file_gate is not None:
            await self.file_gate.wait()
        if fault is not None:
            return await _cut(request, self.files[path])
        return web.Response(body=self.files[path])

    async def _respond(self, method: str, fields: dict[str, Any]) -> Any:
        handlers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "getMe": lambda _fields: self.me,
            "getFile": self._file,
            "sendMessage": self._message,
            "sendPhoto": self._with_file,
            "sendDocument": self._with_file,
            "sendAudio": self._with_file,
            "editMessageText": self._edit,
            "editMessageReplyMarkup": self._remove_buttons,
            "answerCallbackQuery": lambda _fields: True,
            "setMyCommands": self._set_commands,
            "sendChatAction": self._acknowledge,
            "setMessageReaction": self._acknowledge,
            "setWebhook": self._set_webhook,
            "deleteWebhook": self._delete_webhook,
        }
        if method == "getUpdates":
            return await self._get_updates(fields)
        if method not in handlers:
            raise ApiError(404, "Not Found")
        return handlers[method](fields)

    # Updates

    async def _get_updates(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        if self.webhook:
            raise ApiError(409, "Conflict: can't use getUpdates method while webhook is active")
        offset, poll = int(fields.get("offset") or 0), object()
        async with self._changed:
            self._poller = poll
            self._changed.notify_all()
            self._confirm(offset)
            seconds = int(fields.get("timeout") or 0)
            if not self.updates and not seconds:
                return []
            waiting = self._changed.wait_for(lambda: self.updates or self._poller is not poll)
            try:
                await asyncio.wait_for(waiting, None if self.updates else seconds)
            except TimeoutError:
                return []
            if self._poller is not poll:
                raise ApiError(409, "Conflict: terminated by other getUpdates request")
            limit = int(fields.get("limit") or 100)
            updates = sorted(self.updates)[:limit]
            self.delivered += updates
            return [self.updates[update_id] for update_id in updates]

    def _confirm(self, offset: int) -> None:
        for update in [update for update in self.updates if update < offset]:
            del self.updates[update]
            self.confirmed.append(update)

    def _set_webhook(self, fields: dict[str, Any]) -> bool:
        if not str(fields["url"]).startswith("https://"):
            raise ApiError(400, "Bad Request: bad webhook: An HTTPS URL must be provided")
        self.webhook = fields
        return True

    def _delete_webhook(self, fields: dict[str, Any]) -> bool:
        self.webhook = {}
        if fields.get("drop_pending_updates") in {"true", "True", "1"}:
            self.updates.clear()
        return True

    # Messages of the bot

    def _chat(self, fields: dict[str, Any]) -> int:
        chat = int(fields["chat_id"])
        if chat not in self.chats:
            raise ApiError(400, "Bad Request: chat not found")
        if chat in self.blocked:
            raise ApiError(403, "Forbidden: bot was blocked by the user")
        thread = fields.get("message_thread_id")
        if thread and int(thread) not in self.topics:
            raise ApiError(400, "Bad Request: message thread not found")
        return chat

    def _text(self, text: str, fields: dict[str, Any], limit: int) -> ParsedHtml:
        if fields.get("parse_mode") == "HTML":
            result = ParsedHtml(text)
        else:
            result = ParsedHtml("")
            result.text = text
        if utf16_length(result.text) > limit:
            what = "message caption" if limit == MAX_CAPTION_UNITS else "message"
            raise ApiError(400, f"Bad Request: {what} is too long")
        return result

    def _message(self, fields: dict[str, Any]) -> dict[str, Any]:
        chat = self._chat(fields)
        text = self._text(str(fields.get("text") or ""), fields, MAX_TEXT_UNITS)
        if not text.text.strip():
            raise ApiError(400, "Bad Request: message text is empty")
        return self._store(chat, text, fields)

    def _with_file(self, fields: dict[str, Any]) -> dict[str, Any]:
        chat = self._chat(fields)
        text = self._text(str(fields.get("caption") or ""), fields, MAX_CAPTION_UNITS)
        field = next(name for name in ("photo", "audio", "document") if name in fields)
        data = fields[str(fields[field]).removeprefix("attach://")]
        if field == "photo" and not data.startswith((b"\x89PNG", b"\xff\xd8")):
            raise ApiError(400, "Bad Request: IMAGE_PROCESS_FAILED")
        return self._store(chat, text, fields, data)

    def _store(
        self, chat: int, parsed: ParsedHtml, fields: dict[str, Any], file: bytes | None = None
    ) -> dict[str, Any]:
        self._next_message += 1
        number = self._next_message
        self.sent.append(SentMessage(number, chat, parsed.text, parsed.entities, fields, file))
        return self._message_object(number, chat, parsed.text)

    def _message_object(self, number: int, chat: int, text: str) -> dict[str, Any]:
        chat_object = {"id": chat, "type": "private" if chat > 0 else "supergroup"}
        result = {
            "message_id": number,
            "date": int(time.time()),
            "chat": chat_object,
            "from": self.me,
        }
        return {**result, "text": text}

    def _edit(self, fields: dict[str, Any]) -> dict[str, Any]:
        chat, number = self._chat(fields), int(fields["message_id"])
        for index, message in enumerate(self.sent):
            if (message.chat_id, message.message_id) == (chat, number):
                text = self._text(str(fields["text"]), fields, MAX_TEXT_UNITS)
                if text.text == message.text:
                    raise ApiError(400, "Bad Request: message is not modified: it is the same")
                self.sent[index] = message._replace(text=text.text, entities=text.entities)
                return self._message_object(number, chat, text.text)
        raise ApiError(400, "Bad Request: message to edit not found")

    def _remove_buttons(self, fields: dict[str, Any]) -> dict[str, Any]:
        number = int(fields["message_id"])
        self.without_buttons.append(number)
        return self._message_object(number, int(fields["chat_id"]), "")

    def _set_commands(self, fields: dict[str, Any]) -> bool:
        commands = json.loads(fields["commands"])
        for command in commands:
            assert re.fullmatch("[a-z0-9_]{1,32}", command["command"]), command
            assert 1 <= len(command["description"]) <= 256, command
        assert len(commands) <= 100
        self.commands = [command["command"] for command in commands]
        return True

    def buttons(self, sent: SentMessage) -> dict[str, str]:
        """The labels of the buttons below a message, and their data."""
        markup = _value(sent.fields.get("reply_markup")) or {}
        rows = (json.loads(markup) if isinstance(markup, str) else markup).get(
            "inline_keyboard", []
        )
        assert all(len(key["callback_data"].encode()) <= 64 for row in rows for key in row)
        return {key["text"]: key["callback_data"] for row in rows for key in row}

    async def press(self, sent: SentMessage, label: str, user: dict[str, Any] | None = None) -> int:
        """Press a button below a message."""
        message = self._message_object(sent.message_id, sent.chat_id, sent.text)
        self._next_message += 1
        return await self.add(
            "callback_query",
            {
                "id": str(self._next_message),
                "from": user or ANN,
                "message": message,
                "chat_instance": "1",
                "data": self.buttons(sent)[label],
            },
        )

    def _acknowledge(self, fields: dict[str, Any]) -> bool:
        self._chat(fields)
        return True

    def _file(self, fields: dict[str, Any]) -> dict[str, Any]:
        name = str(fields["file_id"])
        if name not in self.files:
            raise ApiError(400, "Bad Request: invalid file_id")
        result = {"file_id": name, "file_unique_id": name, "file_path": f"files/{name}"}
        return {**result, "file_size": len(self.files[name])}


def _value(value: Any) -> Any:
    return value.file.read() if isinstance(value, web.FileField) else value


def _error_response(error: ApiError, fault: Fault | None) -> web.Response:
    if fault is not None and fault.body is not None:
        return web.Response(text=fault.body, status=error.status, content_type="text/html")
    body: dict[str, Any] = {"ok": False, "error_code": error.status}
    body["description"] = error.description
    if error.parameters:
        body["parameters"] = error.parameters
    return web.json_response(body, status=error.status)


async def _cut(request: web.Request, body: bytes | None) -> web.StreamResponse:
    """End the connection: before the response, or in the middle of *body*."""
    answer = web.StreamResponse()
    if body is not None:
        answer.content_length = len(body)
        await answer.prepare(request)
        await answer.write(body[: len(body) // 2])
    assert request.transport is not None
    request.transport.close()
    return answer
