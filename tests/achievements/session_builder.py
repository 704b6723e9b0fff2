"""Builds a session view for metrics, without a store or a scanner."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from hermes_achievements.calendar import Calendar
from hermes_achievements.metrics.session_view import SessionView
from hermes_achievements.scan.history import ScannedMessage, ScannedSession
from hermes_achievements.scan.ledger_entries import read_facts

MONDAY_NOON = datetime(2026, 1, 5, 12, tzinfo=UTC).timestamp()


class SessionBuilder:
    """Builds the rows of a session; every step takes a second."""

    def __init__(self, at: float = MONDAY_NOON, **session: Any) -> None:
        self._session = ScannedSession("s", started_at=at, **session)
        self._rows: list[ScannedMessage] = []
        self._at = at

    def wait(self, seconds: float) -> SessionBuilder:
        self._at += seconds
        return self

    def send(self, text: str = "please", **columns: Any) -> SessionBuilder:
        return self._add("user", text.encode(), length=len(text), **columns)

    def reply(self, text: str = "done") -> SessionBuilder:
        return self._add("assistant", text.encode())

    def call_tool(self, tool: str, result: Any = "ok", **arguments: Any) -> SessionBuilder:
        self.call_tools((tool, arguments))
        content = result if isinstance(result, str) else json.dumps(result)
        return self._add("tool", content.encode(), tool_name=tool, call_id=f"c{self._rows[-1].id}")

    def call_tools(self, *calls: tuple[str, dict[str, Any]]) -> SessionBuilder:
        """Add a message that calls several tools, without results."""
        number = len(self._rows) + 1
        stored = [
            {"id": f"c{number}", "function": {"name": tool, "arguments": json.dumps(arguments)}}
            for tool, arguments in calls
        ]
        return self._add("assistant", None, tool_calls=json.dumps(stored).encode())

    def run_shell(
        self, command: str, exit_code: int = 0, output: str = "", **more: Any
    ) -> SessionBuilder:
        result = {"output": output, "exit_code": exit_code, "error": None}
        return self.call_tool("terminal", result, command=command, **more)

    def repeat(self, number: int, command: str, exit_code: int = 0) -> SessionBuilder:
        for _ in range(number):
            self.run_shell(command, exit_code)
        return self

    def _add(self, role: str, content: bytes | None, **columns: Any) -> SessionBuilder:
        self._at += 1
        self._rows.append(ScannedMessage(len(self._rows) + 1, role, self._at, content, **columns))
        return self

    def session(self, zone: str = "UTC") -> SessionView:
        return SessionView(read_facts(self._session, self._rows, ()), Calendar(ZoneInfo(zone)))
