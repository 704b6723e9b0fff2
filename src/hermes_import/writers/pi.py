"""Sessions of pi: an entry per message, each of which names the one before it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_import.writers.conversation import NativeTool, iso_time, json_line, with_native_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_core.json_values import JsonData
    from hermes_import.writers.conversation import Fields, HandedConversation, HandedMessage

FORMAT_VERSION: Final = 3
PROVIDER: Final = "hermes"  # of the model that wrote the answers; pi continues with its own
TOOLS: Final = {
    "terminal": NativeTool("bash", {}, ["command"]),
    "read_file": NativeTool("read", {}, ["path"]),
    "write_file": NativeTool("write", {}, ["path", "content"]),
    "patch": NativeTool(
        "edit",
        {"old_string": "oldText", "new_string": "newText"},
        ["path", "old_string", "new_string"],
    ),
    "search_files": NativeTool("grep", {}, ["pattern"]),
}
NO_TOKENS: Final[Fields] = {
    **dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens"), 0),
    "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), 0),
}


class PiWriter:
    """Writes sessions of pi."""

    label = "pi"
    program = "pi"
    package = "@earendil-works/pi-coding-agent"

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._root = Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")

    def path(self, talk: HandedConversation) -> Path:
        folder = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", talk.cwd))
        name = f"{re.sub(r'[:.]', '-', iso_time(talk.last_at))}_{talk.native_id}.jsonl"
        return self._root / "sessions" / f"--{folder}--" / name

    def pieces(self, talk: HandedConversation) -> Iterator[bytes]:
        at = iso_time(talk.started_at)
        header: Fields = {
            "version": FORMAT_VERSION,
            "id": talk.native_id,
            "timestamp": at,
            "cwd": talk.cwd,
        }
        yield json_line({"type": "session", **header})
        last: str | None = None
        if talk.title:
            last = f"{0:08x}"
            entry: Fields = {"id": last, "parentId": None, "timestamp": at, "name": talk.title}
            yield json_line({"type": "session_info", **entry})
        for number, message in enumerate(with_native_tools(talk.messages, TOOLS), 1):
            entry_id = f"{number:08x}"
            yield message.record(
                {
                    "type": "message",
                    "id": entry_id,
                    "parentId": last,
                    "timestamp": message.time,
                    "message": _message(talk, message),
                }
            )
            last = entry_id

    def import_command(self, path: Path) -> list[str]:
        del path
        return []

    def resume_command(self, native_id: str) -> list[str]:
        return [self.program, "--session", native_id]


def _message(talk: HandedConversation, message: HandedMessage) -> Fields:
    text = message.text
    if message.exit_code:
        text = f"{text}\n\nCommand exited with code {message.exit_code}"
    texts: list[JsonData] = [{"type": "text", "text": text}] if text else []
    timestamp = {"timestamp": message.milliseconds}
    if message.role == "user":
        images: list[JsonData] = [{"type": "image", "data": each.data, "mimeType": each.mime}
                  for each in message.pictures]  # fmt: skip
        return {"role": "user", "content": [*texts, *images], **timestamp}
    if message.role == "tool":
        return {
            "role": "toolResult",
            "toolCallId": message.call_id,
            "toolName": message.tool_name,
            "content": texts or [{"type": "text", "text": ""}],
            "isError": message.is_error,
            **timestamp,
        }
    calls: list[JsonData] = [
        {"type": "toolCall", "id": call.call_id, "name": call.name, "arguments": call.arguments}
        for call in message.calls
    ]
    return {
        "role": "assistant",
        "content": [*texts, *calls],
        "api": "openai-completions",
        "provider": PROVIDER,
        "model": talk.model,
        "usage": NO_TOKENS,
        "stopReason": "toolUse" if calls else "stop",
        **timestamp,
    }
