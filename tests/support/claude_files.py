"""Writes histories as Claude Code does: one line per content block."""

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
class ClaudeFile:
    """A file of one conversation."""

    home: Path
    session_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    cwd: str = "/home/ada/project"
    now: float = START

    @property
    def path(self) -> Path:
        folder = self.home / ".claude" / "projects" / self.cwd.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.session_id}.jsonl"

    def write(self, *records: dict[str, Any]) -> ClaudeFile:
        """Append records."""
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        return self

    def exchange(self, prompt: str, answer: str) -> ClaudeFile:
        """Append a prompt and its answer."""
        return self.write(self.prompt(prompt), *self.answer(answer))

    def prompt(self, text: str) -> dict[str, Any]:
        return self._record("user", {"role": "user", "content": text})

    def answer(self, text: str) -> list[dict[str, Any]]:
        """The records of an answer: its blocks, each with the usage of the whole."""
        message_id = f"msg_{uuid.uuid4().hex}"
        blocks = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": text}]
        return [self._answer(message_id, block) for block in blocks]

    def _answer(self, message_id: str, block: dict[str, Any]) -> dict[str, Any]:
        message = {
            "id": message_id, "role": "assistant", "model": "claude-test", "content": [block],
            "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 5},
        }  # fmt: skip
        return {**self._record("assistant", message), "requestId": "req_1"}

    def _record(self, kind: str, message: dict[str, Any]) -> dict[str, Any]:
        self.now += 1
        return {
            "type": kind, "message": message, "uuid": str(uuid.uuid4()), "cwd": self.cwd,
            "timestamp": datetime.fromtimestamp(self.now, UTC).isoformat(),
            "sessionId": self.session_id, "gitBranch": "main",
        }  # fmt: skip
