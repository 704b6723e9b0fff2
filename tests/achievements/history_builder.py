"""Writes sessions into a real store and surveys them."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from hermes_achievements.catalogue import load
from hermes_achievements.scan.survey import SurveyRequest, survey
from hermes_conversation.purge_hook import keep_facts
from hermes_state import SessionDB
from hermes_state.ledger.file import open_ledger
from hermes_state.ledger.history import open_history

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_achievements.scan.survey import HistorySurvey

NOON = 1_767_614_400.0  # 2026-01-05 12:00 UTC, a Monday
MINUTE = 60.0
HOUR = 3600.0
DAY = 86_400.0


class HistoryBuilder:
    """Builds a history step by step; every step takes a second."""

    def __init__(self, path: Path | None = None) -> None:
        self.db = SessionDB(path, purge_hook=keep_facts)
        self.now = NOON
        self.session = ""
        self._number = 0

    def close(self) -> None:
        self.db.close()

    def start(self, session_id: str, source: str = "cli", **facts: Any) -> HistoryBuilder:
        self.db.create_session(session_id, source, **facts)
        self.session = session_id
        return self

    def wait(self, seconds: float) -> HistoryBuilder:
        self.now += seconds
        return self

    def send(self, text: str = "please do") -> int:
        return self._store("user", text)

    def reply(self, text: str = "done") -> int:
        return self._store("assistant", text)

    def call_tool(
        self, tool: str, arguments: dict[str, Any] | None = None, result: Any = "ok"
    ) -> int:
        """Add a tool call and its result; returns the ID of the result row."""
        self._number += 1
        call = f"call_{self.session}_{self._number}"
        function = {"name": tool, "arguments": json.dumps(arguments or {})}
        calls = [{"id": call, "type": "function", "function": function}]
        self._store("assistant", "", tool_calls=calls)
        content = result if isinstance(result, str) else json.dumps(result)
        return self._store("tool", content, tool_name=tool, tool_call_id=call)

    def run_shell(self, command: str, exit_code: int = 0, output: str = "") -> int:
        result = {"output": output, "exit_code": exit_code, "error": None}
        return self.call_tool("terminal", {"command": command}, result)

    def _store(self, role: str, content: str, **columns: Any) -> int:
        self.now += 1
        return self.db.append_message(self.session, role, content, timestamp=self.now, **columns)

    def request(self, **changes: Any) -> SurveyRequest:
        path = self.db.db_path
        request = SurveyRequest(
            functools.partial(open_history, str(path)),
            functools.partial(open_ledger, path),
            "UTC",
            load().achievements,
            {},
            processes=0,
        )
        return request._replace(**changes)

    def survey(self, **changes: Any) -> HistorySurvey:
        return survey(self.request(**changes))

    def values(self, **changes: Any) -> dict[str, int]:
        """The current values of the history."""
        return self.survey(**changes).values

    def total(self, metric: str) -> int:
        return self.values().get(f"total_{metric}", 0)
