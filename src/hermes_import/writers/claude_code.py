"""Sessions of Claude Code: a line per prompt, tool result and block of an answer."""

from __future__ import annotations

import functools
import re
import string
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_import.writers.conversation import NativeTool, json_line, with_native_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_core.json_values import JsonData
    from hermes_import.writers.conversation import Fields, HandedConversation, HandedMessage

VERSION: Final = "2.1.328"  # whose files these are like
MAX_PROJECT_NAME: Final = 200
DIGITS: Final = string.digits + string.ascii_lowercase
TOOLS: Final = {
    "terminal": NativeTool("Bash", {}, ["command"]),
    "read_file": NativeTool("Read", {"path": "file_path"}, ["path"]),
    "write_file": NativeTool("Write", {"path": "file_path"}, ["path", "content"]),
    "patch": NativeTool("Edit", {"path": "file_path"}, ["path", "old_string", "new_string"]),
    "search_files": NativeTool("Grep", {}, ["pattern"]),
}
NO_TOKENS: Final = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}
NAMESPACE: Final = uuid.UUID("6f1d3a52-6a0e-4c2b-9d57-3f7f2b0c9a41")  # of the IDs of records


class ClaudeCodeWriter:
    """Writes sessions of Claude Code."""

    label = "Claude Code"
    program = "claude"
    package = "@anthropic-ai/claude-code"

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._root = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")

    def path(self, talk: HandedConversation) -> Path:
        return self._root / "projects" / project_name(talk.cwd) / f"{talk.native_id}.jsonl"

    def pieces(self, talk: HandedConversation) -> Iterator[bytes]:
        if talk.title:
            title = {"customTitle": talk.title, "sessionId": talk.native_id}
            yield json_line({"type": "custom-title", **title})
        lines = ClaudeLines(talk)
        for message in with_native_tools(talk.messages, TOOLS):
            yield from lines.of(message)

    def import_command(self, path: Path) -> list[str]:
        del path
        return []

    def resume_command(self, native_id: str) -> list[str]:
        return [self.program, "--resume", native_id]


def project_name(folder: str) -> str:
    """The name of the folder with the sessions of a project; a long one ends with a hash."""
    data = folder.encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(data[place : place + 2], "little") for place in range(0, len(data), 2)]
    name = re.sub(r"[^a-zA-Z0-9]", "-", "".join(map(chr, units)))
    if len(name) <= MAX_PROJECT_NAME:
        return name
    value = functools.reduce(lambda before, unit: (before * 31 + unit) % (1 << 32), units, 0)
    value = min(value, (1 << 32) - value)  # without the sign of 32 bits
    digits = ""
    while value:
        value, digit = divmod(value, len(DIGITS))
        digits = DIGITS[digit] + digits
    return f"{name[:MAX_PROJECT_NAME]}-{digits or 0}"


class ClaudeLines:
    """The lines of messages, each of which names the one before it."""

    def __init__(self, talk: HandedConversation) -> None:
        self._talk = talk
        self._last: str | None = None
        self._count = 0

    def of(self, message: HandedMessage) -> Iterator[bytes]:
        """The lines of a message."""
        if message.role == "assistant":
            blocks = _answer_blocks(message)
            reason = "tool_use" if message.calls else "end_turn"
            for block in blocks:
                yield self._line(message, "assistant", self._answer(message, block, reason))
        elif message.role == "tool":
            yield self._line(message, "user", {"role": "user", "content": [_result(message)]})
        else:
            yield self._line(message, "user", {"role": "user", "content": _prompt(message)})

    def _answer(self, message: HandedMessage, block: Fields, reason: str) -> Fields:
        return {
            "id": f"msg_hermes_{message.uid}",
            "type": "message",
            "role": "assistant",
            "model": self._talk.model,
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": NO_TOKENS,
        }

    def _line(self, message: HandedMessage, kind: str, content: Fields) -> bytes:
        talk, before = self._talk, self._last
        self._count += 1
        self._last = str(uuid.uuid5(NAMESPACE, f"{talk.native_id}:{self._count}"))
        return message.record(
            {
                "parentUuid": before,
                "isSidechain": False,
                "type": kind,
                "message": content,
                "uuid": self._last,
                "timestamp": message.time,
                "userType": "external",
                "entrypoint": "cli",
                "cwd": talk.cwd,
                "sessionId": talk.native_id,
                "version": VERSION,
                "gitBranch": talk.git_branch,
            }
        )


def _answer_blocks(message: HandedMessage) -> Iterator[Fields]:
    if message.text.strip():
        yield {"type": "text", "text": message.text}
    for call in message.calls:
        yield {
            "type": "tool_use",
            "id": call.call_id,
            "name": call.name,
            "input": call.arguments,
        }


def _result(message: HandedMessage) -> Fields:
    text = message.text
    if message.exit_code:
        text = f"Exit code {message.exit_code}\n{text}"
    return {
        "type": "tool_result",
        "tool_use_id": message.call_id,
        "content": text,
        "is_error": message.is_error,
    }


def _prompt(message: HandedMessage) -> JsonData:
    if not message.pictures:
        return message.text
    blocks: list[JsonData] = [{"type": "text", "text": message.text}] if message.text else []
    for picture in message.pictures:
        source = {"type": "base64", "media_type": picture.mime, "data": picture.data}
        blocks.append({"type": "image", "source": source})
    return blocks
