"""The conversation as a file for shell hooks: JSON lines as Claude Code writes them.

A file is written when a hook runs, readable by the user only, and removed with the conversation.
"""

from __future__ import annotations

import json
import logging
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hermes_agent.shell_hooks.events import hook_tool
from hermes_core.atomic_files import write_atomically
from hermes_core.json_values import parse_object
from hermes_core.paths import hermes_home
from hermes_state.messages.rows import HOOK_ROLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_state.messages.rows import MessageRow
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

FOLDER_NAME: Final = "hook_transcripts"
ABANDONED_SECONDS: Final = 24 * 3600.0  # after which a file of a crashed process is removed


class Transcripts:
    """Writes and removes the files of the conversations of one agent."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._folder = hermes_home() / FOLDER_NAME
        self._written: dict[str, tuple[int, int, str]] = {}  # what the file of a session contains

    def write(self, session_id: str, answer: str = "") -> str:
        """The path of the transcript as it is now; it ends with an *answer* not stored yet."""
        path = self._path(session_id)
        rows = self._db.messages.rows(session_id)
        content = (len(rows), rows[-1].id if rows else 0, answer)
        if self._written.get(session_id) == content and path.exists():
            return str(path)
        lines = [*_lines(session_id, rows), *_pending(session_id, answer)]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        try:
            if session_id not in self._written:
                self._remove_abandoned()
            write_atomically(path, text, is_synced=False)
        except OSError as error:
            log.warning("transcript for hooks not written: %s", error)
            return ""
        self._written[session_id] = content
        return str(path)

    def close(self) -> None:
        """Remove the files."""
        for session_id in self._written:
            self._path(session_id).unlink(missing_ok=True)
        self._written.clear()

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', session_id)}.jsonl"

    def _remove_abandoned(self) -> None:
        now = time.time()
        for path in self._folder.glob("*.jsonl"):
            if _is_older(path, now - ABANDONED_SECONDS):
                path.unlink(missing_ok=True)


def _is_older(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime < moment
    except OSError:
        return False


def _lines(session_id: str, rows: list[MessageRow]) -> Iterator[JsonObject]:
    previous: str | None = None
    for row in rows:
        kind = "assistant" if row.role == "assistant" else "system"
        message: JsonObject = {"role": kind, "content": _content(row)}
        if row.role in {"user", "tool"}:
            kind, message["role"] = "user", "user"
        name = str(row.id)
        moment = datetime.fromtimestamp(row.timestamp, UTC).isoformat()
        # Not a prompt of the user, as Claude Code marks it.
        mark: JsonObject = {"isMeta": True} if row.shown_role == HOOK_ROLE else {}
        yield {
            "type": kind,
            **mark,
            "uuid": name,
            "parentUuid": previous,
            "sessionId": session_id,
            "timestamp": moment.replace("+00:00", "Z"),
            "message": message,
        }
        previous = name


def _pending(session_id: str, answer: str) -> Iterator[JsonObject]:
    if answer:
        content: list[JsonValue] = [{"type": "text", "text": answer}]
        message: JsonObject = {"role": "assistant", "content": content}
        yield {"type": "assistant", "sessionId": session_id, "message": message}


def _content(row: MessageRow) -> JsonValue:
    text = _text(row)
    if row.role == "tool":
        return [{"type": "tool_result", "tool_use_id": row.tool_call_id, "content": text}]
    if row.role != "assistant":
        return text
    parts: list[JsonValue] = []
    if row.reasoning:
        parts.append({"type": "thinking", "thinking": row.reasoning})
    if text:
        parts.append({"type": "text", "text": text})
    return parts + list(_calls(row))


def _text(row: MessageRow) -> str:
    if isinstance(row.content, str):
        return row.content
    parts = row.content if isinstance(row.content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _calls(row: MessageRow) -> Iterator[JsonValue]:
    for call in row.tool_calls if isinstance(row.tool_calls, list) else []:
        function = call["function"]
        tool = hook_tool(function["name"], parse_object(function["arguments"]) or {})
        yield {"type": "tool_use", "id": call["id"], "name": tool.name, "input": tool.input}
