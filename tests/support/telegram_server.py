"""A server on loopback that speaks the Bot API of Telegram as it is documented.

Updates are kept until a `getUpdates` with a higher offset confirms them; everything else is
delivered again. Faults are planned per method and happen once each.
"""

from __future__ import annotations

import asyncio
import io
import json
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
LONGEST_TEXT, LONGEST_CAPTION = 4096, 1024


class Fault(NamedTuple):
    """What happens to one request."""

    status: int = 0
    description: str = ""
    parameters: dict[str, Any] | None = None
    is_cut: bool = False  # the connection ends without an answer, after it was done
    is_cut_in_mid_answer: bool = False
    only_formatted: bool = False  # spares requests without parse_mode
    body: str | None = None  # instead of JSON


class RefusalError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        self.status = status
        self.description = description
        self.parameters = parameters


class Formatted(HTMLParser):
    """A text as Telegram reads HTML: entities and what is shown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shown = ""
        self.entities: list[tuple[str, str]] = []
        self._open: list[tuple[str, int]] = []
        self.feed(text)
        self.close()
        if self._open:
            raise RefusalError(400, f"Bad Request: can't parse entities: no end of {self._open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            raise RefusalError(400, f'Bad Request: can\'t parse entities: Unsupported tag "{tag}"')
        self._open.append((tag, len(self.shown)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            raise RefusalError(400, "Bad Request: can't parse entities: Unexpected end tag")
        _, start = self._open.pop()
        self.entities.append((tag, self.shown[start:]))

    def handle_data(self, data: str) -> None:
        self.shown += data


class Stored(NamedTuple):
    """A message that the bot sent, as its reader sees it."""

    message_id: int
    chat_id: int
    text: str
    entities: list[tuple[str, str]]
    facts: dict[str, Any]  # as they were sent
    file: bytes | None = None


def size(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


class TelegramServer(LoopbackServer[Fault]):
    """A Bot API with one bot; chats that write to it exist."""

    cancels_who_is_gone = True  # who is killed waits for nothing any more

    def __init__(self) -> None:
        super().__init__()
        self.is_revoked = False
        self.me: dict[str, Any] = dict(BOT)
        self.updates: dict[int, dict[str, Any]] = {}
        self.delivered: list[int] = []  # also those that came again
        self.forgotten: list[int] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.sent: list[Stored] = []
        self.files: dict[str, bytes] = {}
        self.chats: set[int] = set()
        self.blocked: set[int] = set()
        self.topics: set[int] = set()
        self.webhook: dict[str, Any] = {}
        self._next_update = 1000
        self._next_message = 100
        self._came = asyncio.Condition()
        self._poller: object = None

    # Being there

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/bot{token}/{method}", self._serve)
        router.add_get("/file/bot{token}/{path:.*}", self._serve_file)

    @property
    def base_url(self) -> str:
        return self.address

    def count(self, method: str) -> int:
        """How often a method was asked for."""
        return sum(name == method for name, _facts in self.asked)

    # What people do

    async def say(self, text: str | None = None, chat: int = 7, **facts: Any) -> int:
        """Somebody writes; the id of the message."""
        message = self.message(text, chat, **facts)
        await self.add("message", message)
        return int(message["message_id"])

    def message(self, text: str | None = None, chat: int = 7, **facts: Any) -> dict[str, Any]:
        """A message as Telegram describes it; chats below zero are groups."""
        self.chats.add(chat)
        self._next_message += 1
        place = (
            {"id": chat, "type": "private", "first_name": "Ann", "last_name": "L."}
            if chat > 0
            else {"id": chat, "type": "supergroup", "title": "Garden"}
        )
        result = {"message_id": self._next_message, "date": int(time.time()), "chat": place}
        result |= {"from": ANN} | ({"text": text} if text is not None else {}) | facts
        return result

    async def add(self, kind: str, content: dict[str, Any]) -> int:
        """An update comes to be; its id."""
        self._next_update += 1
        update = {"update_id": self._next_update, kind: content}
        async with self._came:
            self.updates[self._next_update] = update
            self._came.notify_all()
        return self._next_update

    async def deliver(self, url: str, update_id: int, secret: str | None = None) -> int:
        """Call a webhook with an update; the status it answers, 200 confirms."""
        headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
        async with ClientSession() as client:
            body = io.BytesIO(json.dumps(self.updates[update_id]).encode())
            async with client.post(url, data=body, headers=headers) as answer:
                if answer.status == 200:
                    self._forget(update_id + 1)
                return answer.status

    # Serving

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        form = await request.post()
        facts = {name: _value(value) for name, value in form.items()}
        self.asked.append((method, facts))
        fault = self._fault(method, facts)
        try:
            if request.match_info["token"] != TOKEN or self.is_revoked:
                raise RefusalError(401, "Unauthorized")
            if fault is not None and fault.status:
                raise RefusalError(fault.status, fault.description, **(fault.parameters or {}))
            result = await self._done(method, facts)
        except RefusalError as refusal:
            return _refused(refusal, fault)
        body = json.dumps({"ok": True, "result": result}).encode()
        if fault is not None and (fault.is_cut or fault.is_cut_in_mid_answer):
            return await _cut(request, body if fault.is_cut_in_mid_answer else None)
        return web.Response(body=body, content_type="application/json")

    def _fault(self, method: str, facts: dict[str, Any]) -> Fault | None:
        planned = self._faults.get(method, [])
        if planned and planned[0].only_formatted and not facts.get("parse_mode"):
            return None
        return self.planned(method)

    async def _serve_file(self, request: web.Request) -> web.StreamResponse:
        fault = self._fault("file", {})
        path = request.match_info["path"].removeprefix("files/")
        if request.match_info["token"] != TOKEN or path not in self.files:
            return web.json_response({"ok": False, "description": "Not Found"}, status=404)
        if fault is not None:
            return await _cut(request, self.files[path])
        return web.Response(body=self.files[path])

    async def _done(self, method: str, facts: dict[str, Any]) -> Any:
        known: dict[str, Callable[[dict[str, Any]], Any]] = {
            "getMe": lambda _facts: self.me,
            "getFile": self._file,
            "sendMessage": self._message,
            "sendPhoto": self._with_file,
            "sendDocument": self._with_file,
            "editMessageText": self._edit,
            "sendChatAction": self._around,
            "setMessageReaction": self._around,
            "setWebhook": self._set_webhook,
            "deleteWebhook": self._delete_webhook,
        }
        if method == "getUpdates":
            return await self._get_updates(facts)
        if method not in known:
            raise RefusalError(404, "Not Found")
        return known[method](facts)

    # Updates

    async def _get_updates(self, facts: dict[str, Any]) -> list[dict[str, Any]]:
        if self.webhook:
            raise RefusalError(409, "Conflict: can't use getUpdates method while webhook is active")
        offset, mine = int(facts.get("offset") or 0), object()
        async with self._came:
            self._poller = mine
            self._came.notify_all()
            self._forget(offset)
            waiting = self._came.wait_for(lambda: self.updates or self._poller is not mine)
            try:
                await asyncio.wait_for(waiting, int(facts.get("timeout") or 0))
            except TimeoutError:
                return []
            if self._poller is not mine:
                raise RefusalError(409, "Conflict: terminated by other getUpdates request")
            limit = int(facts.get("limit") or 100)
            updates = sorted(self.updates)[:limit]
            self.delivered += updates
            return [self.updates[item] for item in updates]

    def _forget(self, offset: int) -> None:
        for update in [known for known in self.updates if known < offset]:
            del self.updates[update]
            self.forgotten.append(update)

    def _set_webhook(self, facts: dict[str, Any]) -> bool:
        if not str(facts["url"]).startswith("https://"):
            raise RefusalError(400, "Bad Request: bad webhook: An HTTPS URL must be provided")
        self.webhook = facts
        return True

    def _delete_webhook(self, facts: dict[str, Any]) -> bool:
        self.webhook = {}
        if facts.get("drop_pending_updates") in {"true", "True", "1"}:
            self.updates.clear()
        return True

    # Messages of the bot

    def _place(self, facts: dict[str, Any]) -> int:
        chat = int(facts["chat_id"])
        if chat not in self.chats:
            raise RefusalError(400, "Bad Request: chat not found")
        if chat in self.blocked:
            raise RefusalError(403, "Forbidden: bot was blocked by the user")
        thread = facts.get("message_thread_id")
        if thread and int(thread) not in self.topics:
            raise RefusalError(400, "Bad Request: message thread not found")
        return chat

    def _text(self, text: str, facts: dict[str, Any], longest: int) -> Formatted:
        if facts.get("parse_mode") == "HTML":
            result = Formatted(text)
        else:
            result = Formatted("")
            result.shown = text
        if size(result.shown) > longest:
            what = "message caption" if longest == LONGEST_CAPTION else "message"
            raise RefusalError(400, f"Bad Request: {what} is too long")
        return result

    def _message(self, facts: dict[str, Any]) -> dict[str, Any]:
        chat = self._place(facts)
        text = self._text(str(facts.get("text") or ""), facts, LONGEST_TEXT)
        if not text.shown.strip():
            raise RefusalError(400, "Bad Request: message text is empty")
        return self._store(chat, text, facts)

    def _with_file(self, facts: dict[str, Any]) -> dict[str, Any]:
        chat = self._place(facts)
        text = self._text(str(facts.get("caption") or ""), facts, LONGEST_CAPTION)
        field = "photo" if "photo" in facts else "document"
        data = facts[str(facts[field]).removeprefix("attach://")]
        if field == "photo" and not data.startswith((b"\x89PNG", b"\xff\xd8")):
            raise RefusalError(400, "Bad Request: IMAGE_PROCESS_FAILED")
        return self._store(chat, text, facts, data)

    def _store(
        self, chat: int, found: Formatted, facts: dict[str, Any], file: bytes | None = None
    ) -> dict[str, Any]:
        self._next_message += 1
        number = self._next_message
        self.sent.append(Stored(number, chat, found.shown, found.entities, facts, file))
        return self._described(number, chat, found.shown)

    def _described(self, number: int, chat: int, text: str) -> dict[str, Any]:
        place = {"id": chat, "type": "private" if chat > 0 else "supergroup"}
        result = {"message_id": number, "date": int(time.time()), "chat": place, "from": self.me}
        return {**result, "text": text}

    def _edit(self, facts: dict[str, Any]) -> dict[str, Any]:
        chat, number = self._place(facts), int(facts["message_id"])
        for place, item in enumerate(self.sent):
            if (item.chat_id, item.message_id) == (chat, number):
                text = self._text(str(facts["text"]), facts, LONGEST_TEXT)
                if text.shown == item.text:
                    raise RefusalError(400, "Bad Request: message is not modified: it is the same")
                self.sent[place] = item._replace(text=text.shown, entities=text.entities)
                return self._described(number, chat, text.shown)
        raise RefusalError(400, "Bad Request: message to edit not found")

    def _around(self, facts: dict[str, Any]) -> bool:
        self._place(facts)
        return True

    def _file(self, facts: dict[str, Any]) -> dict[str, Any]:
        name = str(facts["file_id"])
        if name not in self.files:
            raise RefusalError(400, "Bad Request: invalid file_id")
        result = {"file_id": name, "file_unique_id": name, "file_path": f"files/{name}"}
        return {**result, "file_size": len(self.files[name])}


def _value(value: Any) -> Any:
    return value.file.read() if isinstance(value, web.FileField) else value


def _refused(refusal: RefusalError, fault: Fault | None) -> web.Response:
    if fault is not None and fault.body is not None:
        return web.Response(text=fault.body, status=refusal.status, content_type="text/html")
    body: dict[str, Any] = {"ok": False, "error_code": refusal.status}
    body["description"] = refusal.description
    if refusal.parameters:
        body["parameters"] = refusal.parameters
    return web.json_response(body, status=refusal.status)


async def _cut(request: web.Request, body: bytes | None) -> web.StreamResponse:
    """End the connection: before the answer, or in the middle of *body*."""
    answer = web.StreamResponse()
    if body is not None:
        answer.content_length = len(body)
        await answer.prepare(request)
        await answer.write(body[: len(body) // 2])
    assert request.transport is not None
    request.transport.close()
    return answer
