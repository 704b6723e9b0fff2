"""Sessions of Codex CLI: items for the model, and events from which its screen is drawn."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import text_in
from hermes_import.writers.conversation import NativeTool, iso_time, json_line, with_native_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_core.json_values import JsonData
    from hermes_import.writers.conversation import (
        Fields,
        HandedCall,
        HandedConversation,
        HandedMessage,
    )

VERSION: Final = "0.169.0"  # whose files these are like
NO_TIME: Final = {"secs": 0, "nanos": 0}
COMMAND: Final = "exec_command"
TOOLS: Final = {"terminal": NativeTool(COMMAND, {"command": "cmd", "cwd": "workdir"}, ["command"])}


class CodexWriter:
    """Writes sessions of Codex CLI."""

    label = "Codex CLI"
    program = "codex"
    package = "@openai/codex"

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._root = Path(environ.get("CODEX_HOME") or home / ".codex")

    def path(self, talk: HandedConversation) -> Path:
        at = time.localtime(talk.last_at)
        name = f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', at)}-{talk.native_id}.jsonl"
        return self._root / "sessions" / time.strftime("%Y/%m/%d", at) / name

    def pieces(self, talk: HandedConversation) -> Iterator[bytes]:
        lines = CodexLines(talk)
        yield lines.header()
        for message in with_native_tools(talk.messages, TOOLS):
            yield from lines.of(message)
        yield from lines.end_turn()

    def import_command(self, path: Path) -> list[str]:
        del path
        return []

    def resume_command(self, native_id: str) -> list[str]:
        return [self.program, "resume", native_id]


class CodexLines:
    """The lines of messages, numbered, in turns that begin with a prompt."""

    def __init__(self, talk: HandedConversation) -> None:
        self._talk = talk
        self._ordinal = 0
        self._turn = 0
        self._last_answer = ""
        self._last: HandedMessage | None = None
        self._calls: dict[str, HandedCall] = {}

    def header(self) -> bytes:
        """The first line; without a model provider, of which Codex would allow no other one."""
        talk = self._talk
        at = iso_time(talk.started_at)
        payload: dict[str, JsonData] = {
            "session_id": talk.native_id,
            "id": talk.native_id,
            "timestamp": at,
            "cwd": talk.cwd,
            "originator": "codex_cli_rs",
            "cli_version": VERSION,
            "source": "cli",
            "thread_source": "user",
            "history_mode": "paginated",
        }
        if talk.git_branch:
            payload["git"] = {"branch": talk.git_branch}
        return json_line(self._numbered({"timestamp": at}, "session_meta", payload))

    def of(self, message: HandedMessage) -> Iterator[bytes]:
        """The lines of a message."""
        if message.role == "user":
            yield from self.end_turn()
            yield from self._prompt(message)
        elif message.role == "assistant":
            yield from self._answer(message)
        else:
            yield from self._result(message)
        self._last = message

    def end_turn(self) -> Iterator[bytes]:
        """The end of the turn, if one has begun."""
        if self._turn and self._last is not None:
            answer = self._last_answer or None
            yield self._event(self._last, "task_complete", last_agent_message=answer)

    @property
    def _turn_id(self) -> str:
        return f"{self._talk.native_id}-{self._turn}"

    def _prompt(self, message: HandedMessage) -> Iterator[bytes]:
        self._turn += 1
        self._last_answer = ""
        yield self._event(message, "task_started")
        urls = [each.url for each in message.pictures]
        content: list[JsonData] = [{"type": "input_text", "text": message.text}]
        content += [{"type": "input_image", "image_url": url} for url in urls]
        yield self._item(message, type="message", role="user", content=content)
        shown: list[JsonData] = [{"type": "text", "text": message.text, "text_elements": []}]
        shown += [{"type": "image", "image_url": url} for url in urls]
        yield self._shown(message, type="UserMessage", id=message.uid, content=shown)

    def _answer(self, message: HandedMessage) -> Iterator[bytes]:
        if message.text.strip():
            self._last_answer = message.text
            shown = [{"type": "Text", "text": message.text}]
            yield self._shown(message, type="AgentMessage", id=message.uid, content=shown)
            content = [{"type": "output_text", "text": message.text}]
            yield self._item(message, type="message", role="assistant", content=content)
        for call in message.calls:
            self._calls[call.call_id] = call
            yield self._item(
                message,
                type="function_call",
                name=call.name,
                arguments=json.dumps(call.arguments, ensure_ascii=False),
                call_id=call.call_id,
            )

    def _result(self, message: HandedMessage) -> Iterator[bytes]:
        call, output = self._calls[message.call_id], message.text
        if call.name == COMMAND:
            output = f"Process exited with code {message.exit_code}\nOutput:\n{message.text}"
            yield self._command(message, text_in(call.arguments, "cmd"))
        else:
            yield self._other_tool(message, call)
        yield self._item(
            message, type="function_call_output", call_id=message.call_id, output=output
        )

    def _command(self, message: HandedMessage, command: str) -> bytes:
        return self._shown(
            message,
            type="CommandExecution",
            id=message.call_id,
            command=["bash", "-lc", command],
            cwd=Path(self._talk.cwd).as_uri(),
            parsed_cmd=[{"type": "unknown", "cmd": command}],
            source="agent",
            status="failed" if message.is_error else "completed",
            aggregated_output=message.text,
            exit_code=message.exit_code,
            duration=NO_TIME,
        )

    def _other_tool(self, message: HandedMessage, call: HandedCall) -> bytes:
        """A tool that Codex lacks, as it shows those of servers."""
        return self._shown(
            message,
            type="McpToolCall",
            id=call.call_id,
            server="hermes",
            tool=call.name,
            arguments=call.arguments,
            status="failed" if message.is_error else "completed",
            result={"content": [{"type": "text", "text": message.text}]},
            duration=NO_TIME,
        )

    def _item(self, message: HandedMessage, /, **item: JsonData) -> bytes:
        """A line for the model."""
        return self._line(message, "response_item", item)

    def _shown(self, message: HandedMessage, /, **item: JsonData) -> bytes:
        """A line for the screen."""
        at = message.milliseconds
        return self._event(
            message,
            "item_completed",
            thread_id=self._talk.native_id,
            item=item,
            started_at_ms=at,
            completed_at_ms=at,
        )

    def _event(self, message: HandedMessage, kind: str, /, **facts: JsonData) -> bytes:
        payload = {"type": kind, "turn_id": self._turn_id, **facts}
        return self._line(message, "event_msg", payload)

    def _line(self, message: HandedMessage, kind: str, payload: Fields) -> bytes:
        return message.record(self._numbered({"timestamp": message.time}, kind, payload))

    def _numbered(self, line: Fields, kind: str, payload: Fields) -> Fields:
        ordinal, self._ordinal = self._ordinal, self._ordinal + 1
        return {**line, "ordinal": ordinal, "type": kind, "payload": payload}
