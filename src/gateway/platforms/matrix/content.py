"""What is sent to Matrix: the contents of events, from Markdown.

An event has room for 65,536 bytes. What is said twice (as HTML) is left out where it does
not fit, and an edit carries its text once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from gateway.platforms import markdown

if TYPE_CHECKING:
    from gateway.platforms.base import Outgoing

LONGEST_TEXT: Final = 12_000  # characters of four bytes each leave room for what is around them
LARGEST_CONTENT: Final = 60_000  # bytes
SHOWN_OF_EDIT: Final = 200  # characters, for clients that know no edits


def html_of(text: str) -> str:
    """Markdown as HTML; HTML in it stays what it looks like."""
    return str(markdown.reader(has_breaks=True).render(text)).strip()


def message_of(outgoing: Outgoing, *, is_plain: bool = False) -> dict[str, Any]:
    """A text as the content of an event."""
    content = {**_text(outgoing.text, is_plain=is_plain), "m.mentions": {}}
    relation = relation_of(outgoing)
    return content | ({"m.relates_to": relation} if relation else {})


def edit_of(outgoing: Outgoing, message_id: str) -> dict[str, Any]:
    """A text in the place of another."""
    return {
        "msgtype": "m.text",
        "body": f"* {outgoing.text[:SHOWN_OF_EDIT]}",
        "m.mentions": {},
        "m.new_content": {**_text(outgoing.text), "m.mentions": {}},
        "m.relates_to": {"rel_type": "m.replace", "event_id": message_id},
    }


def file_of(outgoing: Outgoing, name: str, mime: str, size: int, url: str) -> dict[str, Any]:
    """A file that was uploaded; the text is its caption."""
    kind = {"image": "m.image", "audio": "m.audio", "video": "m.video"}
    content: dict[str, Any] = {
        "msgtype": kind.get(mime.partition("/")[0], "m.file"),
        "body": outgoing.text or name,
        "filename": name,
        "url": url,
        "info": {"mimetype": mime, "size": size},
        "m.mentions": {},
    }
    relation = relation_of(outgoing)
    return content | ({"m.relates_to": relation} if relation else {})


def relation_of(outgoing: Outgoing) -> dict[str, Any]:
    """What it belongs to: a thread, a message it answers, or nothing."""
    answered = outgoing.reply_to or outgoing.thread_id
    reply = {"m.in_reply_to": {"event_id": answered}} if answered else {}
    if not outgoing.thread_id:
        return reply
    thread = {"rel_type": "m.thread", "event_id": outgoing.thread_id}
    return {**thread, "is_falling_back": not outgoing.reply_to, **reply}


def _text(text: str, *, is_plain: bool = False) -> dict[str, Any]:
    plain = {"msgtype": "m.text", "body": text}
    rendered = "" if is_plain else html_of(text)
    if not rendered or rendered == f"<p>{text}</p>":
        return plain
    rich = {**plain, "format": "org.matrix.custom.html", "formatted_body": rendered}
    size = len(json.dumps(rich, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return rich if size <= LARGEST_CONTENT else plain
