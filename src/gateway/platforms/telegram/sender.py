"""Sends texts and files to Telegram: as HTML, or as plain text if Telegram rejects that.

A message holds 4096 UTF-16 units of visible text. The gateway splits at 4000 characters; a text
that has more units (e.g. hundreds of emoji) is split again here.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiogram.exceptions import AiogramError, TelegramMigrateToChat
from aiogram.methods import (
    EditMessageText,
    SendAudio,
    SendChatAction,
    SendDocument,
    SendMessage,
    SendPhoto,
    SetMessageReaction,
)
from aiogram.types import (
    FSInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    ReactionTypeEmoji,
    ReplyParameters,
)

from gateway.platforms.base import ErrorKind, SendResult, split_text, utf16_length
from gateway.platforms.deduplication import RecentItems
from gateway.platforms.markdown import parse_tree, split_lines
from gateway.platforms.telegram.results import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from aiogram import Bot
    from aiogram.methods import TelegramMethod
    from aiogram.types import ReactionTypeUnion
    from markdown_it.tree import SyntaxTreeNode

    from gateway.platforms.base import Button, OutgoingMessage
    from gateway.platforms.telegram.results import TokenRedactor

INLINE_TAGS: Final = {"strong": "b", "em": "i", "s": "s"}
RULE_TEXT: Final = "———"
INDENT: Final = "  "


class RenderedText(NamedTuple):
    """A text as HTML, and its visible part, which the length limit applies to."""

    html: str
    shown: str


def render_html(markdown: str) -> RenderedText:
    """*markdown* for `parse_mode=HTML`."""
    tree, lines = parse_tree(markdown), split_lines(markdown)
    return RenderedText(
        *(_HtmlRenderer(lines, tags).blocks(tree.children).strip() for tags in (True, False))
    )


class _HtmlRenderer:
    """Renders a syntax tree, with tags or without."""

    def __init__(self, lines: list[str], has_tags: bool) -> None:
        self._lines = lines
        self._has_tags = has_tags

    def _tag(self, name: str, inner: str, attribute: str = "") -> str:
        if not self._has_tags or not inner:
            return inner
        return f"<{name}{attribute}>{inner}</{name}>"

    def _text(self, text: str) -> str:
        return escape(text, quote=False) if self._has_tags else text

    # Blocks

    def blocks(self, nodes: Iterable[SyntaxTreeNode], between: str = "\n\n", depth: int = 0) -> str:
        """Blocks below each other; *depth* is the list nesting."""
        return between.join(filter(None, (self._block(node, depth) for node in nodes)))

    def _block(self, node: SyntaxTreeNode, depth: int) -> str:
        if node.type in {"bullet_list", "ordered_list"}:
            return self._list(node, depth)
        kinds = {
            "heading": self._heading,
            "fence": self._code,
            "code_block": self._code,
            "blockquote": self._quote,
            "table": self._source,
        }
        return RULE_TEXT if node.type == "hr" else kinds.get(node.type, self._inside)(node)

    def _heading(self, node: SyntaxTreeNode) -> str:
        return self._tag("b", self._inside(node))

    def _code(self, node: SyntaxTreeNode) -> str:
        code = self._text(node.content.rstrip("\n"))
        language = node.info.split(maxsplit=1)[0] if node.info.strip() else ""
        if language:
            code = self._tag("code", code, f' class="language-{escape(language)}"')
        return self._tag("pre", code)

    def _source(self, node: SyntaxTreeNode) -> str:
        first, end = node.map or (0, 0)
        return self._tag("pre", self._text("\n".join(self._lines[first:end]).strip("\n")))

    def _quote(self, node: SyntaxTreeNode) -> str:
        """A block quote; Telegram does not support nested ones."""
        is_outer = not any(ancestor.type == "blockquote" for ancestor in _ancestors(node))
        inner = self.blocks(node.children)
        return self._tag("blockquote", inner) if is_outer else inner

    def _list(self, node: SyntaxTreeNode, depth: int) -> str:
        first = int(node.attrs.get("start", 1))
        is_ordered = node.type == "ordered_list"
        items = []
        for number, item in enumerate(node.children, first):
            mark = f"{number}." if is_ordered else "•"
            inner = self.blocks(item.children, "\n", depth + 1)
            items.append(f"{INDENT * depth}{mark} {inner}".rstrip())
        return "\n".join(items)

    # Inline

    def _inside(self, node: SyntaxTreeNode) -> str:
        return "".join(self._inline(child) for child in node.children)

    def _inline(self, node: SyntaxTreeNode) -> str:
        if node.type in INLINE_TAGS:
            return self._tag(INLINE_TAGS[node.type], self._inside(node))
        if node.type == "code_inline":
            return self._tag("code", self._text(node.content))
        if node.type == "link":
            return self._link(str(node.attrs.get("href", "")), self._inside(node))
        if node.type == "image":
            address = str(node.attrs.get("src", ""))
            return self._link(address, self._text(node.content) or self._text(address))
        if node.type in {"softbreak", "hardbreak"}:
            return "\n"
        return self._inside(node) if node.children else self._text(node.content)

    def _link(self, address: str, inner: str) -> str:
        return self._tag("a", inner, f' href="{escape(address)}"') if address else inner


def _ancestors(node: SyntaxTreeNode) -> Iterable[SyntaxTreeNode]:
    while node.parent is not None:
        node = node.parent
        yield node


log = logging.getLogger(__name__)

MAX_CHUNK_CHARS: Final = 4000  # characters
MAX_TEXT_UNITS: Final = 4096  # UTF-16 units, as shown
MAX_CAPTION_UNITS: Final = 1024
MAX_PHOTO_BYTES: Final = 10 * 1024 * 1024
PHOTO_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/webp"})
AUDIO_TYPES: Final = frozenset({"audio/mpeg", "audio/mp4"})  # with a player in Telegram
SHORT_LABEL_CHARS: Final = 16
SEND_SECONDS: Final = 30
FILE_SECONDS: Final = 300
UNCHANGED_ERROR: Final = "message is not modified"  # an edit without changes is a success
MAX_PARTIAL_SENDS: Final = 100
GENERAL_TOPIC: Final = "1"  # the first topic of a forum; its ID must not be sent


class FormattedText(NamedTuple):
    """A text and its parse mode."""

    text: str
    mode: str | None


class TelegramSender:
    """Sends the requests of one bot."""

    def __init__(self, bot: Bot, clean: TokenRedactor) -> None:
        self._bot = bot
        self._clean = clean
        self._partial = RecentItems(MAX_PARTIAL_SENDS)  # by key and text: how many parts are sent

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file."""
        outgoing = outgoing._replace(text=_sendable(outgoing.text))
        if outgoing.file is not None:
            return await self._send_file(outgoing, outgoing.file)
        return await self._send_parts(outgoing)

    async def _send_parts(self, outgoing: OutgoingMessage) -> SendResult:
        """Send all parts; a retry sends only the missing ones."""
        parts = _parts(outgoing.text)
        first = int(self._partial.forget((outgoing.key, outgoing.text)) or 0)
        result = SendResult(False, error="empty text", error_kind=ErrorKind.BAD_FORMAT)
        for place in range(first, len(parts)):
            reply_to = outgoing.reply_to if place == 0 else None
            buttons = outgoing.buttons if place == len(parts) - 1 else ()
            part = outgoing._replace(text=parts[place], reply_to=reply_to, buttons=buttons)
            result = await self._send_text(part)
            if not result.success:
                if place:
                    self._partial.add((outgoing.key, outgoing.text), str(place))
                break
        return result

    async def _send_text(self, outgoing: OutgoingMessage) -> SendResult:
        def method(form: FormattedText) -> TelegramMethod[Any]:
            return SendMessage(
                text=form.text,
                parse_mode=form.mode,
                reply_markup=_keyboard(outgoing.buttons),
                **_target(outgoing),
            )

        return await self._send_formatted(outgoing.text, method)

    async def _send_formatted(
        self,
        text: str,
        method: Callable[[FormattedText], TelegramMethod[Any]],
        seconds: int = SEND_SECONDS,
    ) -> SendResult:
        """Send as HTML; if Telegram rejects the format, as plain text."""
        result = SendResult(False)
        for form in _forms(text):
            result = await self._request(method(form), seconds)
            if result.error_kind is not ErrorKind.BAD_FORMAT:
                break
            log.info("Telegram rejected the formatted text: %s", result.error)
        return result

    async def _request(
        self, method: TelegramMethod[Any], seconds: int = SEND_SECONDS
    ) -> SendResult:
        try:
            bot = await self._bot(method, request_timeout=seconds)
        except TelegramMigrateToChat as error:
            if getattr(method, "chat_id", None) == error.migrate_to_chat_id:
                return failure(error, self._clean(error))
            moved = method.model_copy(update={"chat_id": error.migrate_to_chat_id})
            return await self._request(moved, seconds)
        except AiogramError as error:
            text = self._clean(error)
            return SendResult(True) if UNCHANGED_ERROR in text else failure(error, text)
        return SendResult(True, str(bot.message_id) if isinstance(bot, Message) else None)

    # Files

    async def _send_file(self, outgoing: OutgoingMessage, file: Path) -> SendResult:
        """Send a file with its caption; a text that is too long is sent before it."""
        kind = await asyncio.to_thread(_kind_of, file)
        if kind is None:
            return SendResult(False, None, f"file not found: {file.name}", ErrorKind.NOT_FOUND)
        if utf16_length(render_html(outgoing.text).shown) > MAX_CAPTION_UNITS:
            sent = await self._send_parts(outgoing)
            if not sent.success:
                return sent
            outgoing = outgoing._replace(text="", reply_to=sent.message_id)
        if kind != "document":
            result = await self._send_as(kind, outgoing, file)
            if result.error_kind not in {ErrorKind.BAD_FORMAT, ErrorKind.TOO_LONG}:
                return result
        return await self._send_as("document", outgoing, file)

    async def _send_as(self, kind: str, outgoing: OutgoingMessage, file: Path) -> SendResult:
        def method(form: FormattedText) -> TelegramMethod[Any]:
            caption, sent = form.text or None, FSInputFile(file)
            facts = {"caption": caption, "parse_mode": form.mode, **_target(outgoing)}
            if kind == "photo":
                return SendPhoto(photo=sent, **facts)
            if kind == "audio":
                return SendAudio(audio=sent, **facts)
            return SendDocument(document=sent, **facts)

        return await self._send_formatted(outgoing.text, method, FILE_SECONDS)

    # Edits, typing, reactions

    async def edit(self, outgoing: OutgoingMessage, message_id: str) -> SendResult:
        """Replace the text of a message."""

        def method(form: FormattedText) -> TelegramMethod[Any]:
            return EditMessageText(
                chat_id=chat_of(outgoing.chat_id),
                message_id=int(message_id),
                text=form.text,
                parse_mode=form.mode,
            )

        result = await self._send_formatted(_sendable(outgoing.text), method)
        return result._replace(message_id=message_id) if result.success else result

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show the typing indicator."""
        thread = _number(thread_id)
        await self._try(
            SendChatAction(chat_id=chat_of(chat_id), action="typing", message_thread_id=thread)
        )

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Set an emoji reaction; an empty one removes it."""
        reaction: list[ReactionTypeUnion] = [ReactionTypeEmoji(emoji=emoji)] if emoji else []
        await self._try(
            SetMessageReaction(
                chat_id=chat_of(chat_id),
                message_id=int(message_id),
                reaction=reaction,
            )
        )

    async def _try(self, method: TelegramMethod[Any]) -> None:
        result = await self._request(method)
        if not result.success:
            log.info("Telegram %s failed: %s", type(method).__name__, result.error)


def _keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    """The buttons below a message, two in a row unless their labels are long."""
    if not buttons:
        return None
    keys = [InlineKeyboardButton(text=item.label, callback_data=item.data) for item in buttons]
    per_row = 2 if max(len(item.label) for item in buttons) <= SHORT_LABEL_CHARS else 1
    rows = [keys[first : first + per_row] for first in range(0, len(keys), per_row)]
    return InlineKeyboardMarkup(inline_keyboard=rows)


def _kind_of(file: Path) -> str | None:
    """How a file is sent: `photo`, `audio` or `document`; None if it does not exist."""
    if not file.is_file():
        return None
    mime = mimetypes.guess_type(file.name)[0]
    if mime in AUDIO_TYPES:
        return "audio"
    is_photo = mime in PHOTO_TYPES and file.stat().st_size <= MAX_PHOTO_BYTES
    return "photo" if is_photo else "document"


def _sendable(text: str) -> str:
    """A text without lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _parts(text: str) -> list[str]:
    """The messages of a text."""
    if utf16_length(render_html(text).shown) <= MAX_TEXT_UNITS:
        return [text]
    return split_text(text, MAX_TEXT_UNITS, utf16_length)


def _forms(text: str) -> list[FormattedText]:
    page = render_html(text)
    fits = page.shown and utf16_length(page.shown) <= MAX_TEXT_UNITS
    return (
        [FormattedText(page.html, "HTML"), FormattedText(text, None)]
        if fits
        else [FormattedText(text, None)]
    )


def _target(outgoing: OutgoingMessage) -> dict[str, Any]:
    """The request parameters for chat, topic and reply."""
    reply_to = _number(outgoing.reply_to)
    return {
        "chat_id": chat_of(outgoing.chat_id),
        "message_thread_id": _number(
            outgoing.thread_id if outgoing.thread_id != GENERAL_TOPIC else None
        ),
        "reply_parameters": ReplyParameters(message_id=reply_to, allow_sending_without_reply=True)
        if reply_to is not None
        else None,
    }


def chat_of(chat_id: str) -> int | str:
    """The chat parameter: a number or an @channel."""
    number = _number(chat_id)
    return chat_id if number is None else number


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text else None
    except ValueError:
        return None
