"""A conversation to be handed to another agent: what the model sees of it.

Thinking is left out: its signature belongs to the model that wrote it, and others refuse it.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_core.json_values import number_in, object_in, objects_in, parse_object, text_in
from hermes_core.media_store import embed_media
from hermes_core.messages import plain_text
from hermes_import.line_files import NO_MESSAGE, OWN_FIELD
from hermes_state.messages.rows import as_turn
from hermes_state.portable.readable import NoRedaction
from hermes_state.portable.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from hermes_core.json_values import JsonData, JsonObject
    from hermes_core.messages import Message
    from hermes_state.portable.readable import Redacts
    from hermes_state.store import SessionDB

    Fields: TypeAlias = Mapping[str, JsonData]

DATA_URL: Final = re.compile(r"data:([\w.+/-]+);base64,([A-Za-z0-9+/=]+)")
MAX_NAME: Final = 64
VALID_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}")  # of calls, for all providers
NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
INTERRUPTED: Final = "No result: the turn was interrupted."
RESULT_TEXTS: Final = ("output", "content")  # of the results of tools of Hermes


class SentPicture(NamedTuple):
    """A picture of a prompt, as base64."""

    mime: str
    data: str

    @property
    def url(self) -> str:
        """The picture as a `data:` URL."""
        return f"data:{self.mime};base64,{self.data}"


class HandedCall(NamedTuple):
    """A tool call."""

    call_id: str
    name: str
    arguments: JsonObject


class HandedMessage(NamedTuple):
    """A message; `uid` is its identity, by which the importer recognizes it."""

    uid: str
    role: str  # user, assistant or tool
    text: str
    at: float
    pictures: Sequence[SentPicture] = ()
    calls: Sequence[HandedCall] = ()
    call_id: str = ""  # of a tool result
    tool_name: str = ""
    is_error: bool = False
    exit_code: int = 0

    @property
    def time(self) -> str:
        """When it was written, in ISO format."""
        return iso_time(self.at)

    @property
    def milliseconds(self) -> int:
        """When it was written, since 1970."""
        return int(self.at * 1000)

    def record(self, fields: Fields) -> bytes:
        """A line of JSON that stands for the message."""
        return json_line({**fields, OWN_FIELD: self.uid})


class HandedConversation(NamedTuple):
    """A conversation; `native_id` is its ID in the other agent, the same for the same messages."""

    session_id: str
    native_id: str
    title: str
    cwd: str
    git_branch: str
    model: str
    started_at: float
    messages: Sequence[HandedMessage]

    @property
    def last_at(self) -> float:
        """When its last message was written."""
        return self.messages[-1].at


class NativeTool(NamedTuple):
    """A tool of another agent that does the same as one of Hermes, and the names of arguments."""

    name: str
    arguments: Mapping[str, str]  # by the names of Hermes; a call without one of `required` differs
    required: Sequence[str]


def with_native_tools(
    messages: Iterable[HandedMessage], tools: Mapping[str, NativeTool]
) -> list[HandedMessage]:
    """Messages with the tools of the other agent, where it has the same ones."""
    named: dict[str, str] = {}
    changed = []
    for message in messages:
        calls = [_native_call(call, tools) for call in message.calls]
        named |= {call.call_id: call.name for call in calls}
        tool_name = named.get(message.call_id, message.tool_name)
        changed.append(message._replace(calls=calls, tool_name=tool_name))
    return changed


def _native_call(call: HandedCall, tools: Mapping[str, NativeTool]) -> HandedCall:
    tool = tools.get(call.name)
    if tool is None or not all(name in call.arguments for name in tool.required):
        return call
    arguments = {tool.arguments.get(name, name): value for name, value in call.arguments.items()}
    return call._replace(name=tool.name, arguments=arguments)


def read_conversation(
    db: SessionDB, session_id: str, agent: str, *, is_redacted: bool = False
) -> HandedConversation:
    """The conversation to be handed to an agent; UsageError if it has no messages."""
    row = db.sessions.find(session_id)
    redactor: Redacts = Redactor() if is_redacted else NoRedaction()
    identities = db.messages.identities(session_id)
    messages = [
        handed
        for each in db.messages.rows(session_id)
        if (handed := _message(identities[each.id], as_turn(each), redactor)) is not None
    ]
    messages = list(_with_all_results(messages))
    if row is None or not messages:
        raise UsageError(f"{session_id} has no messages to hand off. Write one first.")
    return HandedConversation(
        session_id,
        _native_id(agent, messages, "redacted" if is_redacted else ""),
        redactor.text(row.title or ""),
        folder_of(db, session_id),
        row.git_branch or "",
        row.model or "unknown",
        row.started_at,
        messages,
    )


def folder_of(db: SessionDB, session_id: str) -> str:
    """The folder in which a conversation continues: its own, as other programs name it."""
    row = db.sessions.find(session_id)
    return str(Path(row.cwd).resolve() if row is not None and row.cwd else Path.cwd())


def _native_id(agent: str, messages: Sequence[HandedMessage], mark: str) -> str:
    parts = [agent, mark, *(message.uid for message in messages)]
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=16).digest()
    return str(uuid.UUID(bytes=digest, version=4))


def _message(uid: str, message: Message, redactor: Redacts) -> HandedMessage | None:
    """A message as it is handed over; None for one without content."""
    role, at = message.get("role") or "", message.get("timestamp") or 0.0
    content = redactor.value(message.get("content"))
    if role == "tool":
        return _result(HandedMessage(uid, role, plain_text(content), at), message)
    if role not in {"user", "assistant"}:
        return None
    pictures = _pictures(content)
    if isinstance(content, list) and pictures:
        content = [part for part in content if not _is_picture(part)]
    calls = [_call(call, redactor) for call in _calls(message)]
    text = plain_text(content)
    if not text.strip() and not pictures and not calls:
        return None
    return HandedMessage(uid, role, text, at, pictures, calls)


def _calls(message: Message) -> list[JsonObject]:
    found: JsonObject = {"calls": list(message.get("tool_calls") or ())}  # type: ignore[arg-type]
    return objects_in(found, "calls")


def _call(call: JsonObject, redactor: Redacts) -> HandedCall:
    function = object_in(call, "function")
    arguments = parse_object(redactor.text(text_in(function, "arguments"))) or {}
    return HandedCall(text_in(call, "id"), text_in(function, "name") or "unknown", arguments)


def _result(handed: HandedMessage, message: Message) -> HandedMessage:
    """A tool result as text: the tools of Hermes answer with JSON."""
    facts = parse_object(handed.text) or {}
    exit_code = number_in(facts, "exit_code")
    texts = [text_in(facts, name) for name in (*RESULT_TEXTS, "error")]
    text = "\n".join(filter(None, texts)) or handed.text
    if any(isinstance(facts.get(name), str) for name in RESULT_TEXTS) and not any(texts):
        text = ""
    return handed._replace(
        text=text,
        call_id=message.get("tool_call_id") or "",
        is_error=bool(facts.get("error") or exit_code),
        exit_code=exit_code,
    )


def _pictures(content: object) -> list[SentPicture]:
    """The pictures of a prompt whose files are still here."""
    embedded: JsonObject = {"parts": embed_media(content)}
    urls = [text_in(object_in(part, "image_url"), "url") for part in objects_in(embedded, "parts")]
    found = (DATA_URL.fullmatch(url) for url in urls)
    return [SentPicture(match[1], match[2]) for match in found if match]


def _is_picture(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "image_url"


def _with_all_results(messages: Iterable[HandedMessage]) -> Iterator[HandedMessage]:
    """The messages as each model accepts them.

    Each call has an ID of its own and a result; a result without a call is left out.
    """
    open_calls: list[tuple[str, HandedCall]] = []  # with the IDs that the model has given
    taken: set[str] = set()
    at = 0.0
    for message in messages:
        at = message.at
        if message.role != "tool":
            yield from _missing(open_calls, at)
            open_calls = [(call.call_id, _renamed(call, taken)) for call in message.calls]
            yield message._replace(calls=[call for _, call in open_calls])
            continue
        found = next((each for each in open_calls if each[0] == message.call_id), None)
        if found is not None:
            open_calls.remove(found)
            call = found[1]
            yield message._replace(call_id=call.call_id, tool_name=call.name)
    yield from _missing(open_calls, at)


def _renamed(call: HandedCall, taken: set[str]) -> HandedCall:
    """A call with a valid ID that no other one has, and a valid name."""
    call_id = call.call_id
    if call_id in taken or not VALID_NAME.fullmatch(call_id):
        call_id = f"call_hermes_{len(taken)}"
    taken.add(call_id)
    return call._replace(call_id=call_id, name=NOT_IN_NAMES.sub("_", call.name)[:MAX_NAME])


def _missing(calls: Iterable[tuple[str, HandedCall]], at: float) -> Iterator[HandedMessage]:
    for _, call in calls:
        yield HandedMessage(
            NO_MESSAGE, "tool", INTERRUPTED, at, (), (), call.call_id, call.name, is_error=True
        )


def iso_time(at: float) -> str:
    """A time in ISO format, as the agents write it."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_line(value: Fields) -> bytes:
    """An object as a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"
