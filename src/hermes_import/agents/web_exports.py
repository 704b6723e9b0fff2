"""Exports of web services: Claude.ai, ChatGPT, Open WebUI. An archive with JSON, or the JSON.

A conversation with edited messages is a tree; the branch that the service shows is imported,
and messages of other branches are counted as not imported.
"""

from __future__ import annotations

import codecs
import json
import logging
import re
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from hermes_core.errors import HermesError, UsageError
from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import joined, seconds_of, title_of, tool_call, tool_result
from hermes_import.files import ExportFiles, file_unit, is_regular
from hermes_import.line_files import DAMAGED_RECORD, UNEXPECTED
from hermes_state.imports import rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import IO

    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_import.sources import Unit


CHUNK_BYTES: Final = 1 << 20
MAX_ITEM_CHARACTERS: Final = 1 << 28
MARGIN_CHARACTERS: Final = 16  # an error so close to the end may be one of a cut value
SPACE: Final = re.compile(r"[ \t\r\n]*")
UNTERMINATED: Final = "Unterminated string"


class DamagedJsonError(HermesError):
    """A file is not JSON, or ends too early."""


def items_of(file: IO[bytes]) -> Iterator[JsonValue]:
    """The items of the array in a file; a value that is not an array is the only item."""
    text = JsonText(file)
    if text.peek() != "[":
        yield text.take_value()
        return
    text.skip()
    while (following := text.peek()) != "]":
        if following == ",":
            text.skip()
        yield text.take_value()


class JsonText:
    """The text of a file behind what was taken of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._decoder = json.JSONDecoder(parse_constant=lambda _name: None)
        self._text = ""
        self._at = 0  # in the text
        self._dropped = 0  # characters before the text

    def peek(self) -> str:
        """The next character that is not white space."""
        while True:
            space = SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read(CHUNK_BYTES):
                raise self._damage()

    def skip(self) -> None:
        """Skip a character."""
        self._at += 1

    def take_value(self) -> JsonValue:
        """The value that begins here."""
        self.peek()
        while True:
            try:
                value: JsonValue
                value, self._at = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                self._read_more(error)
            except RecursionError as error:
                raise self._damage() from error
            else:
                return value

    def _read_more(self, error: json.JSONDecodeError) -> None:
        """Read more of a value, unless it is damaged; as much again, to parse it seldom."""
        is_cut = error.msg.startswith(UNTERMINATED)
        is_cut = is_cut or error.pos > len(self._text) - MARGIN_CHARACTERS
        length = len(self._text) - self._at
        if not is_cut or length > MAX_ITEM_CHARACTERS or not self._read(max(CHUNK_BYTES, length)):
            raise self._damage() from error

    def _read(self, size: int) -> bool:
        """Read on, and drop what was taken; False at the end of the file."""
        data = self._file.read(size)
        self._dropped += self._at
        self._text = self._text[self._at :] + self._decode(data, not data)
        self._at = 0
        return bool(data)

    def _damage(self) -> DamagedJsonError:
        return DamagedJsonError(f"not complete JSON after character {self._dropped + self._at}")


log = logging.getLogger(__name__)

NAMES: Final = "conversations"  # the beginning of the names of JSON files in an archive
OTHER_BRANCH: Final = "message of another branch"
NO_CONVERSATION: Final = "(not a conversation)"
EMPTY_FIELDS: Final = frozenset({"content_type", "parts", "text"})  # of a message without text
# What reading an archive raises: damaged, encrypted, of an unknown method.
ARCHIVE_ERRORS: Final = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)


def items_in(path: Path) -> Iterator[JsonValue]:
    """The conversations of an archive or file, one at a time."""
    if path.suffix != ".zip":
        with path.open("rb") as file:
            yield from items_of(file)
        return
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if Path(name).name.startswith(NAMES) and name.endswith(".json"):
                with archive.open(name) as file:
                    yield from items_of(file)


def _first_item(path: Path) -> JsonObject:
    """The first conversation of an export; an empty object if it has none."""
    try:
        first = next(items_in(path), None)
    except DamagedJsonError:
        return {}
    except ARCHIVE_ERRORS as error:
        raise UsageError(f"Cannot read the archive {path}: {error}. Download it again.") from error
    return first if isinstance(first, dict) else {}


class WebExport(ExportFiles):
    """An export that the user has downloaded."""

    mark: ClassVar[str]  # a field that its conversations have

    def root_at(self, path: Path) -> Path | None:
        """*path*, if it is an export of this service."""
        files = _files_at(path)
        return path if files and self.mark in _first_item(files[0]) else None

    def units(self, root: Path) -> Iterator[Unit]:
        """The files of an export."""
        units = (file_unit(path) for path in _files_at(root))
        yield from (unit for unit in units if unit is not None)

    def read(self, unit: Unit, before: rows.UnitState | None) -> ExportReading:
        """Read the export."""
        del before
        return ExportReading(unit, self)

    def conversation(self, item: JsonObject) -> rows.ImportedConversation:
        """What is known of a conversation."""
        raise NotImplementedError

    def messages(self, item: JsonObject, unknown: Counter[str]) -> list[rows.ImportedMessage]:
        """The messages of a conversation."""
        raise NotImplementedError


class ExportReading:
    """One pass over an export."""

    def __init__(self, unit: Unit, source: WebExport) -> None:
        self._unit = unit
        self._source = source
        self.unknown: Counter[str] = Counter()

    def parts(self) -> Iterator[rows.ImportedPart]:
        """All conversations."""
        for item in items_in(self._unit.path):
            try:
                part = self._part(item)
            except UNEXPECTED as error:
                log.warning("conversation unreadable: %s: %r", self._unit.path, error)
                self.unknown[DAMAGED_RECORD] += 1
                continue
            if part is None:
                self.unknown[NO_CONVERSATION] += 1
            else:
                yield part

    def _part(self, item: JsonValue) -> rows.ImportedPart | None:
        """A conversation; None if it is not one."""
        if not isinstance(item, dict) or self._source.mark not in item:
            return None
        conversation = self._source.conversation(item)
        if not conversation.native_id:
            return None
        messages = _with_times(self._source.messages(item, self.unknown), conversation.started_at)
        started_at = conversation.started_at or min((each.at for each in messages), default=0.0)
        return rows.ImportedPart(
            conversation._replace(started_at=started_at), messages, is_last=True
        )

    def state(self) -> rows.UnitState:
        """The export is read completely."""
        return rows.UnitState(self._unit.revision, unknown=self.unknown)


def _files_at(path: Path) -> list[Path]:
    """The files of an export: a file, or those of a folder."""
    if path.suffix in {".json", ".zip"} and is_regular(path):
        return [path]
    return sorted(each for each in path.glob(f"{NAMES}*.json") if is_regular(each))


def _with_times(messages: list[rows.ImportedMessage], start: float) -> list[rows.ImportedMessage]:
    """Messages; one without a time has that of the message before it."""
    timed = []
    for message in messages:
        start = message.at or start
        timed.append(message._replace(at=start))
    return timed


def branch_of(nodes: Mapping[str, JsonObject], last_id: str, parent_field: str) -> list[JsonObject]:
    """The nodes of a tree from its root to one of them."""
    branch: list[JsonObject] = []
    seen: set[str] = set()
    while last_id in nodes and last_id not in seen:
        seen.add(last_id)
        branch.append(nodes[last_id])
        last_id = text_in(nodes[last_id], parent_field)
    return branch[::-1]


def _shown(nodes: Mapping[str, JsonObject], last_id: str) -> str:
    """The last message of the branch that the service shows; the newest one if it is not known."""
    return last_id if last_id in nodes else next(reversed(list(nodes)), "")


def count_others(unknown: Counter[str], all_messages: int, of_branch: int) -> None:
    """Count the messages that are not on the branch that the service shows."""
    if all_messages > of_branch:
        unknown[OTHER_BRANCH] += all_messages - of_branch


class ClaudeAi(WebExport):
    """The export of Claude.ai: Settings, Privacy, Export data."""

    name = "claude-ai"
    label = "Claude.ai"
    mark = "chat_messages"

    def conversation(self, item: JsonObject) -> rows.ImportedConversation:
        return rows.ImportedConversation(
            text_in(item, "uuid"),
            seconds_of(item.get("created_at")),
            title=title_of(text_in(item, "name")),
            model=text_in(item, "model") or None,
        )

    def messages(self, item: JsonObject, unknown: Counter[str]) -> list[rows.ImportedMessage]:
        messages: list[rows.ImportedMessage] = []
        for record in objects_in(item, "chat_messages"):
            key, at = text_in(record, "uuid"), seconds_of(record.get("created_at"))
            blocks = objects_in(record, "content")
            if record.get("sender") == "human":
                text = _claude_prompt(record, blocks)
                messages.append(rows.ImportedMessage(key, "user", text, at))
            elif record.get("sender") == "assistant":
                messages += _claude_answer(key, record, blocks, at)
            else:
                unknown[f"sender/{record.get('sender')}"] += 1
        return messages


def _claude_prompt(record: JsonObject, blocks: list[JsonObject]) -> str:
    attached = [
        f"[{text_in(each, 'file_name')}]\n{text_in(each, 'extracted_content')}".rstrip()
        for field in ("attachments", "files")
        for each in objects_in(record, field)
    ]
    text = joined([text_in(block, "text") for block in blocks]) or text_in(record, "text")
    return joined([text, *attached])


def _claude_answer(
    key: str, record: JsonObject, blocks: list[JsonObject], at: float
) -> list[rows.ImportedMessage]:
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    texts = [text_in(block, "text") for block in blocks if block.get("type") == "text"]
    names = {text_in(call, "id"): text_in(call, "name") for call in calls}
    answer = rows.ImportedMessage(
        key,
        "assistant",
        joined(texts) or text_in(record, "text"),
        at,
        [tool_call(text_in(c, "id"), text_in(c, "name"), c.get("input")) for c in calls],
        reasoning=joined([text_in(block, "thinking") for block in blocks]) or None,
    )
    results = [
        rows.ImportedMessage(
            f"{key}:{number}",
            "tool",
            tool_result(
                joined([text_in(part, "text") for part in objects_in(block, "content")]),
                is_error=bool(block.get("is_error")),
            ),
            at,
            tool_call_id=text_in(block, "tool_use_id"),
            tool_name=text_in(block, "name") or names.get(text_in(block, "tool_use_id")),
            finish_reason="error" if block.get("is_error") else None,
        )
        for number, block in enumerate(blocks)
        if block.get("type") == "tool_result"
    ]
    return [answer, *results]


class ChatGpt(WebExport):
    """The export of ChatGPT: Settings, Data controls, Export data."""

    name = "chatgpt"
    label = "ChatGPT"
    mark = "mapping"

    def conversation(self, item: JsonObject) -> rows.ImportedConversation:
        return rows.ImportedConversation(
            text_in(item, "conversation_id") or text_in(item, "id"),
            seconds_of(item.get("create_time")),
            title=title_of(text_in(item, "title")),
            model=text_in(item, "default_model_slug") or None,
            is_archived=bool(item.get("is_archived")),
        )

    def messages(self, item: JsonObject, unknown: Counter[str]) -> list[rows.ImportedMessage]:
        mapping = object_in(item, "mapping")
        nodes = {name: object_in(mapping, name) for name in mapping}
        branch = [
            message
            for node in branch_of(nodes, _shown(nodes, text_in(item, "current_node")), "parent")
            if (message := object_in(node, "message"))
        ]
        count_others(unknown, sum(bool(n.get("message")) for n in nodes.values()), len(branch))
        messages: list[rows.ImportedMessage] = []
        thoughts: list[str] = []
        for message in branch:
            role = text_in(object_in(message, "author"), "role")
            content = object_in(message, "content")
            text = _gpt_text(content)
            if content.get("content_type") in {"thoughts", "reasoning_recap"}:
                thoughts += [text_in(each, "content") for each in objects_in(content, "thoughts")]
            elif role in {"user", "assistant", "tool"} and text:
                messages.append(_gpt_message(message, role, text, thoughts))
                thoughts = [] if role == "assistant" else thoughts
            elif role != "system" and set(content) - EMPTY_FIELDS:
                unknown[f"content/{text_in(content, 'content_type')}"] += 1
        return messages


def _gpt_text(content: JsonObject) -> str:
    parts = content.get("parts")
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    files = [
        f"[{text_in(part, 'content_type')}]" for part in objects_in(content, "parts")
    ]  # pictures and recordings are not in the JSON
    return joined([*texts, *files, text_in(content, "text"), text_in(content, "result")])


def _gpt_message(
    message: JsonObject, role: str, text: str, thoughts: list[str]
) -> rows.ImportedMessage:
    return rows.ImportedMessage(
        text_in(message, "id"),
        role,
        text,
        seconds_of(message.get("create_time")),
        tool_name=text_in(object_in(message, "author"), "name") or None if role == "tool" else None,
        reasoning=joined(thoughts) or None if role == "assistant" else None,
    )


class OpenWebUi(WebExport):
    """The export of Open WebUI: Settings, Chats, Export Chats."""

    name = "open-webui"
    label = "Open WebUI"
    mark = "chat"

    def conversation(self, item: JsonObject) -> rows.ImportedConversation:
        chat = object_in(item, "chat")
        models = chat.get("models")
        first = models[0] if isinstance(models, list) and models else None
        return rows.ImportedConversation(
            text_in(item, "id") or text_in(chat, "id"),
            seconds_of(item.get("created_at") or chat.get("timestamp")),
            title=title_of(text_in(item, "title") or text_in(chat, "title")),
            model=first if isinstance(first, str) else None,
            is_archived=bool(item.get("archived")),
        )

    def messages(self, item: JsonObject, unknown: Counter[str]) -> list[rows.ImportedMessage]:
        chat = object_in(item, "chat")
        history = object_in(chat, "history")
        tree = object_in(history, "messages")
        nodes = {name: node for name in tree if (node := object_in(tree, name))}
        records = objects_in(chat, "messages")
        if nodes:
            last = _shown(nodes, text_in(history, "currentId"))
            records = branch_of(nodes, last, "parentId")
            count_others(unknown, len(nodes), len(records))
        messages: list[rows.ImportedMessage] = []
        for record in records:
            if record.get("role") in {"user", "assistant", "tool"}:
                messages.append(_webui_message(record))
            elif record.get("role") != "system":
                unknown[f"role/{record.get('role')}"] += 1
        return messages


def _webui_message(record: JsonObject) -> rows.ImportedMessage:
    role, model = text_in(record, "role"), text_in(record, "model")
    usage = object_in(record, "usage") or object_in(record, "info")
    is_counted = role == "assistant" and bool(usage)
    return rows.ImportedMessage(
        text_in(record, "id"),
        role,
        text_in(record, "content"),
        seconds_of(record.get("timestamp")),
        usage=rows.ImportedUsage(
            model,
            number_in(usage, "prompt_tokens") or number_in(usage, "prompt_eval_count"),
            number_in(usage, "completion_tokens") or number_in(usage, "eval_count"),
        )
        if is_counted
        else None,
    )
