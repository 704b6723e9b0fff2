"""Numbers of failed tool calls: read from the statistics, stored for lists to sort by."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_achievements.activity import Activity
    from hermes_dashboard.analytics.analysis import Analysis
    from hermes_state import SessionDB


class ToolErrorCounts:
    """Stores the numbers of failed tool calls of sessions whose statistics changed."""

    def __init__(self, db: SessionDB, analysis: Analysis) -> None:
        self._db = db
        self._analysis = analysis
        self._lock = threading.Lock()
        self._edition: int | None = None
        self._stored: dict[str, Activity] = {}

    def update(self) -> None:
        """Store the numbers that changed; a history that is opened for reading keeps its own."""
        data = self._analysis.data()
        if self._db.engine.read_only:
            return
        with self._lock:
            if data.edition == self._edition:
                return
            changed = {
                session_id: failures_of(activity)
                for session_id, activity in data.activities.items()
                if self._stored.get(session_id) is not activity
            }
            if changed:
                self._db.sort_values.set_tool_errors(changed)
            self._edition, self._stored = data.edition, data.activities


def failures_of(activity: Activity) -> int:
    """The number of failed tool calls of a session."""
    return sum(use.failures for day in activity.days for use in day.tools)
