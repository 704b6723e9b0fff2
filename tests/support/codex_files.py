"""Writes histories as Codex CLI does: numbered records, forks that hold only what is new."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()


@dataclass
class CodexFile:
    """A file of one conversation."""

    home: Path
    origin: CodexFile | None = None
    thread_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    ordinal: int = 0
    now: float = START

    def __post_init__(self) -> None:
        meta: dict[str, Any] = {"id": self.thread_id, "cwd": "/home/ada/project"}
        if self.origin is not None:
            self.ordinal, self.now = self.origin.ordinal, self.origin.now + 60
            base = {"thread_id": self.origin.thread_id, "end_ordinal_exclusive": self.ordinal}
            meta |= {"forked_from_id": self.origin.thread_id, "history_base": base}
        self.write("session_meta", meta)

    @property
    def path(self) -> Path:
        folder = self.home / ".codex" / "sessions"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"rollout-2026-03-01T12-00-00-{self.thread_id}.jsonl"

    @property
    def session_id(self) -> str:
        return f"codex-{self.thread_id}"

    def write(self, kind: str, payload: dict[str, Any]) -> CodexFile:
        """Append a record."""
        self.now += 1
        record = {"timestamp": self.now, "ordinal": self.ordinal, "type": kind, "payload": payload}
        self.ordinal += 1
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        return self

    def exchange(self, prompt: str, answer: str) -> CodexFile:
        """Append a prompt, its answer, and the usage of the response."""
        self.write("event_msg", {"type": "user_message", "message": prompt})
        content = [{"type": "output_text", "text": answer}]
        self.write("response_item", {"type": "message", "role": "assistant", "content": content})
        usage = {"input_tokens": 10, "output_tokens": 5}
        key = f"{self.thread_id}:{self.ordinal}"
        return self.write("token_usage_record", {"response_id": key, "usage": usage})
