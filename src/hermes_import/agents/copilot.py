"""GitHub Copilot CLI: one folder per conversation, with all events in one file.

Sub-agents are in the same file, marked by an agent ID. A killed process may write its events
after those of the process that resumed the conversation, so events are ordered by time. The
totals of `session.shutdown` are cumulative; usage is counted by request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import FAILED, INTERRUPTED, seconds_of, title_of, tool_call, tool_result
from hermes_import.files import file_unit
from hermes_import.line_files import LineFiles, LineReading
from hermes_state.imports import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject
    from hermes_import.sources import Unit

EVENTS: Final = "events.jsonl"
TITLES: Final = "workspace.yaml"
KNOWN_PREFIXES: Final = (
    "assistant.", "model.", "session.", "system.", "tool.", "hook.", "subagent.", "permission.",
    "user.",
)  # fmt: skip
SKIPPED: Final = re.compile(rb'\{"type":"(?:system\.message|model\.)')


class AgentEvents:
    """The messages of the conversation or of a sub-agent."""

    def __init__(self) -> None:
        self.messages: list[rows.ImportedMessage] = []
        self._usage: list[rows.ImportedUsage] = []
        self.ended_at: float | None = None
        self.title: str | None = None
        self.model: str | None = None
        self.started_at = 0.0
        self._tools: dict[str, str] = {}
        self._answers: dict[str, str] = {}  # by the request

    def read(self, kind: str, data: JsonObject, at: float, key: str) -> bool:
        """Read an event; whether it is known."""
        self.started_at = self.started_at or at
        if kind == "user.message":
            self.ended_at = None
            self.messages.append(rows.ImportedMessage(key, "user", text_in(data, "content"), at))
        elif kind == "assistant.message":
            self._read_answer(data, at, key)
        elif kind == "tool.execution_complete":
            self._read_result(data, at, key)
        elif kind == "session.usage_record":
            self._usage.append(_tokens(object_in(data, "usage"), key))
        elif kind == "session.compaction_complete" and data.get("success"):
            text = text_in(data, "summaryContent")
            self.messages.append(
                rows.ImportedMessage(key, "user", text, at, is_summary=True, is_copy=True)
            )
        elif kind == "subagent.started":
            self.title = title_of(text_in(data, "agentDescription"))
        elif kind in {"session.shutdown", "subagent.completed"}:
            self.ended_at = at
        elif kind in {"abort", "assistant.abort", "session.error"}:
            self._finish_last(FAILED if kind == "session.error" else INTERRUPTED)
        return kind.startswith(KNOWN_PREFIXES) or kind == "abort"

    @property
    def usage(self) -> list[rows.ImportedUsage]:
        """The usage of the requests; a record may precede the answer."""
        return [each._replace(answer=self._answers.get(each.key, "")) for each in self._usage]

    def _read_answer(self, data: JsonObject, at: float, key: str) -> None:
        self.model = self.model or text_in(data, "model") or None
        self._answers.setdefault(text_in(data, "apiCallId"), key)
        requests = objects_in(data, "toolRequests")
        calls = [
            tool_call(text_in(each, "toolCallId"), text_in(each, "name"), each.get("arguments"))
            for each in requests
        ]
        self._tools |= {text_in(each, "toolCallId"): text_in(each, "name") for each in requests}
        self.messages.append(
            rows.ImportedMessage(
                key,
                "assistant",
                text_in(data, "content"),
                at,
                calls,
                reasoning=text_in(data, "reasoningText") or None,
                finish_reason="tool_calls" if calls else "stop",
            )
        )

    def _read_result(self, data: JsonObject, at: float, key: str) -> None:
        call_id = text_in(data, "toolCallId")
        code = number_in(object_in(data, "shellExecution"), "exitCode")
        is_error = data.get("success") is False or code != 0
        error = text_in(object_in(data, "error"), "message")
        text = text_in(object_in(data, "result"), "content") or error
        self.messages.append(
            rows.ImportedMessage(
                key,
                "tool",
                tool_result(text, is_error=is_error, exit_code=code),
                at,
                tool_call_id=call_id,
                tool_name=self._tools.get(call_id),
                finish_reason=FAILED if is_error else None,
            )
        )

    def _finish_last(self, reason: str) -> None:
        if self.messages and self.messages[-1].role == "assistant":
            self.messages[-1] = self.messages[-1]._replace(finish_reason=reason)


class CopilotReading(LineReading):
    """One pass over a file, always from its beginning."""

    skipped = SKIPPED

    def parts(self) -> Iterator[rows.ImportedPart]:
        self._records: list[tuple[float, JsonObject]] = []
        for _ in super().parts():
            pass  # there are no messages before all events are read
        self._records.sort(key=lambda pair: pair[0])
        agents: dict[str, AgentEvents] = {"": AgentEvents()}
        for at, record in self._records:
            events = agents.setdefault(text_in(record, "agentId"), AgentEvents())
            kind = text_in(record, "type")
            if not events.read(kind, object_in(record, "data"), at, text_in(record, "id")):
                self.unknown[kind] += 1
        for agent_id, events in agents.items():
            yield self._agent_part(agent_id, events)

    def read_record(self, record: JsonObject) -> None:
        data = object_in(record, "data")
        if record.get("type") == "session.start" and "id" not in self.about:
            context = object_in(data, "context")
            self.about |= {
                "id": text_in(data, "sessionId"),
                "cwd": text_in(context, "cwd"),
                "branch": text_in(context, "branch"),
            }
        self._records.append((seconds_of(record.get("timestamp")), record))

    def conversation(self) -> rows.ImportedConversation | None:
        return None

    def _agent_part(self, agent_id: str, events: AgentEvents) -> rows.ImportedPart:
        session_id = text_in(self.about, "id") or self.unit.path.parent.name
        conversation = rows.ImportedConversation(
            agent_id or session_id,
            events.started_at,
            rows.ConversationKind.SUBAGENT if agent_id else rows.ConversationKind.MAIN,
            session_id if agent_id else None,
            events.title if agent_id else self._title(),
            text_in(self.about, "cwd") or None,
            text_in(self.about, "branch") or None,
            events.model,
        )
        return rows.ImportedPart(
            conversation, events.messages, events.usage, events.ended_at, is_last=True
        )

    def _title(self) -> str | None:
        """The name that the user gave the conversation."""
        try:
            text = self.unit.path.with_name(TITLES).read_text(encoding="utf-8")
        except OSError:
            return None
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        return title_of(fields.get("name")) if fields.get("user_named") == "true" else None


def _tokens(usage: JsonObject, key: str) -> rows.ImportedUsage:
    cached, written = number_in(usage, "cacheReadTokens"), number_in(usage, "cacheWriteTokens")
    return rows.ImportedUsage(
        text_in(usage, "model"),
        max(0, number_in(usage, "inputTokens") - cached - written),
        number_in(usage, "outputTokens"),
        cached,
        written,
        number_in(usage, "reasoningTokens"),
        key=text_in(usage, "apiCallId") or key,
    )


class Copilot(LineFiles):
    """The history of GitHub Copilot CLI."""

    name = "copilot"
    label = "GitHub Copilot CLI"
    home_folder = ".copilot"
    variable = "COPILOT_HOME"
    reading = CopilotReading
    folders = ("session-state",)

    def units_at(self, root: Path, paths: Iterable[Path]) -> Iterator[Unit]:
        """The files of events; the file beside each has its title, which may change alone."""
        files = {path.with_name(EVENTS) if path.name == TITLES else path for path in paths}
        for unit in super().units_at(root, sorted(files)):
            beside = file_unit(unit.path.with_name(TITLES))
            yield unit._replace(revision=f"{unit.revision}:{beside and beside.revision}")

    def has_conversation(self, path: Path) -> bool:
        """Whether a file is one of events."""
        return path.name.startswith(EVENTS)
