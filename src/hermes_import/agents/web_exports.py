"""Exports of web services: Claude.ai, ChatGPT, Open WebUI. An archive with JSON, or the JSON.

A conversation with edited messages is a tree; the branch that the service shows is imported,
and messages of other branches are counted as not imported.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import orjson

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import joined, title_of, tool_call, tool_result
from hermes_import.export_files import ExportFiles
from hermes_import.times import seconds_of
from hermes_state.imports.rows import (
    ImportedConversation,
    ImportedMessage,
    ImportedPart,
    ImportedUsage,
    UnitState,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_core.json_values import JsonObject
    from hermes_import.sources import Unit

NAMES: Final = "conversations"  # the beginning of the names of JSON files in an archive
OTHER_BRANCH: Final = "message of another branch"


def conversations_in(path: Path) -> Iterator[JsonObject]:
    """The conversations of an export."""
    for content in _contents(path):
        try:
            value = orjson.loads(content)
        except orjson.JSONDecodeError:
            continue
        items = value if isinstance(value, list) else [value]
        yield from (item for item in items if isinstance(item, dict))


def _contents(path: Path) -> Iterator[bytes]:
    if path.is_dir():
        for file in sorted(path.glob(f"{NAMES}*.json")):
            yield file.read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if Path(name).name.startswith(NAMES) and name.endswith(".json"):
                    yield archive.read(name)
    else:
        yield path.read_bytes()


class WebExport(ExportFiles):
    """An export that the user has downloaded."""

    mark: ClassVar[str]  # a field that its conversations have

    def root_at(self, path: Path) -> Path | None:
        """*path*, if it is an export of this service."""
        is_file = path.suffix in {".json", ".zip"} or path.is_dir()
        if not is_file or (path.is_dir() and not list(path.glob(f"{NAMES}*.json"))):
            return None
        first = next(conversations_in(path), None)
        return path if first is not None and self.mark in first else None

    def read(self, unit: Unit, before: UnitState | None) -> ExportReading:
        """Read the export."""
        del before
        return ExportReading(unit, self)

    def conversation(self, item: JsonObject) -> ImportedConversation:
        """What is known of a conversation."""
        raise NotImplementedError

    def messages(self, item: JsonObject, unknown: Counter[str]) -> list[ImportedMessage]:
        """The messages of a conversation."""
        raise NotImplementedError


class ExportReading:
    """One pass over an export."""

    def __init__(self, unit: Unit, source: WebExport) -> None:
        self._unit = unit
        self._source = source
        self.unknown: Counter[str] = Counter()

    def parts(self) -> Iterator[ImportedPart]:
        """All conversations, the oldest first."""
        parts = []
        for item in conversations_in(self._unit.path):
            messages = self._source.messages(item, self.unknown)
            parts.append(ImportedPart(self._source.conversation(item), messages, is_last=True))
        yield from sorted(parts, key=lambda part: part.conversation.started_at)

    def state(self) -> UnitState:
        """The export is read completely."""
        return UnitState(self._unit.revision, unknown=self.unknown)


def branch_of(nodes: Mapping[str, JsonObject], last_id: str, parent_field: str) -> list[JsonObject]:
    """The nodes of a tree from its root to one of them."""
    branch: list[JsonObject] = []
    seen: set[str] = set()
    while last_id in nodes and last_id not in seen:
        seen.add(last_id)
        branch.append(nodes[last_id])
        last_id = text_in(nodes[last_id], parent_field)
    return branch[::-1]


def count_others(unknown: Counter[str], all_messages: int, of_branch: int) -> None:
    """Count the messages that are not on the branch that the service shows."""
    if all_messages > of_branch:
        unknown[OTHER_BRANCH] += all_messages - of_branch


class ClaudeAi(WebExport):
    """The export of Claude.ai: Settings, Privacy, Export data."""

    name = "claude-ai"
    label = "Claude.ai"
    mark = "chat_messages"

    def conversation(self, item: JsonObject) -> ImportedConversation:
        return ImportedConversation(
            text_in(item, "uuid"),
            seconds_of(item.get("created_at")),
            title=title_of(text_in(item, "name")),
            model=text_in(item, "model") or None,
        )

    def messages(self, item: JsonObject, unknown: Counter[str]) -> list[ImportedMessage]:
        messages: list[ImportedMessage] = []
        for record in objects_in(item, "chat_messages"):
            key, at = text_in(record, "uuid"), seconds_of(record.get("created_at"))
            blocks = objects_in(record, "content")
            if record.get("sender") == "human":
                text = _claude_prompt(record, blocks)
                messages.append(ImportedMessage(key, "user", text, at))
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
) -> list[ImportedMessage]:
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    texts = [text_in(block, "text") for block in blocks if block.get("type") == "text"]
    names = {text_in(call, "id"): text_in(call, "name") for call in calls}
    answer = ImportedMessage(
        key,
        "assistant",
        joined(texts) or text_in(record, "text"),
        at,
        [tool_call(text_in(c, "id"), text_in(c, "name"), c.get("input")) for c in calls],
        reasoning=joined([text_in(block, "thinking") for block in blocks]) or None,
    )
    results = [
        ImportedMessage(
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

    def conversation(self, item: JsonObject) -> ImportedConversation:
        return ImportedConversation(
            text_in(item, "conversation_id") or text_in(item, "id"),
            seconds_of(item.get("create_time")),
            title=title_of(text_in(item, "title")),
            model=text_in(item, "default_model_slug") or None,
            is_archived=bool(item.get("is_archived")),
        )

    def messages(self, item: JsonObject, unknown: Counter[str]) -> list[ImportedMessage]:
        mapping = object_in(item, "mapping")
        nodes = {name: object_in(mapping, name) for name in mapping}
        branch = [
            message
            for node in branch_of(nodes, text_in(item, "current_node"), "parent")
            if (message := object_in(node, "message"))
        ]
        count_others(unknown, sum(bool(n.get("message")) for n in nodes.values()), len(branch))
        messages: list[ImportedMessage] = []
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
        return messages


def _gpt_text(content: JsonObject) -> str:
    parts = content.get("parts")
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    files = [
        f"[{text_in(part, 'content_type')}]" for part in objects_in(content, "parts")
    ]  # pictures and recordings are not in the JSON
    return joined([*texts, *files, text_in(content, "text"), text_in(content, "result")])


def _gpt_message(message: JsonObject, role: str, text: str, thoughts: list[str]) -> ImportedMessage:
    return ImportedMessage(
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

    def conversation(self, item: JsonObject) -> ImportedConversation:
        chat = object_in(item, "chat")
        models = chat.get("models")
        first = models[0] if isinstance(models, list) and models else None
        return ImportedConversation(
            text_in(item, "id") or text_in(chat, "id"),
            seconds_of(item.get("created_at") or chat.get("timestamp")),
            title=title_of(text_in(item, "title") or text_in(chat, "title")),
            model=first if isinstance(first, str) else None,
            is_archived=bool(item.get("archived")),
        )

    def messages(self, item: JsonObject, unknown: Counter[str]) -> list[ImportedMessage]:
        chat = object_in(item, "chat")
        history = object_in(chat, "history")
        tree = object_in(history, "messages")
        nodes = {name: node for name in tree if (node := object_in(tree, name))}
        records = objects_in(chat, "messages")
        if nodes:
            records = branch_of(nodes, text_in(history, "currentId"), "parentId")
            count_others(unknown, len(nodes), len(records))
        return [_webui_message(record) for record in records if record.get("role") != "system"]


def _webui_message(record: JsonObject) -> ImportedMessage:
    role, model = text_in(record, "role"), text_in(record, "model")
    usage = object_in(record, "usage") or object_in(record, "info")
    is_counted = role == "assistant" and bool(usage)
    return ImportedMessage(
        text_in(record, "id"),
        role,
        text_in(record, "content"),
        seconds_of(record.get("timestamp")),
        usage=ImportedUsage(
            model,
            number_in(usage, "prompt_tokens") or number_in(usage, "prompt_eval_count"),
            number_in(usage, "completion_tokens") or number_in(usage, "eval_count"),
        )
        if is_counted
        else None,
    )
