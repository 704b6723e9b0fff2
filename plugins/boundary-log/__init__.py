"""Example plugin: logs every session boundary event once.

Events are delivered at least once; `event_id` identifies repeats. The plugin reads its own
file to find the IDs it has written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes_core import paths

if TYPE_CHECKING:
    from pathlib import Path


class BoundaryLog:
    """The log file and the events in it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def boundary(self, *, event_id: str, **facts: Any) -> None:
        """Log a boundary event, unless it is already logged."""
        if event_id not in self._logged_ids():
            self._write({"hook": "on_session_boundary", "event_id": event_id, **facts})

    def finalized(self, **facts: Any) -> None:
        """Log that a session is final."""
        self._write({"hook": "on_session_finalize", **facts})

    def reset(self, **facts: Any) -> None:
        """Log that a chat has a new session."""
        self._write({"hook": "on_session_reset", **facts})

    def _logged_ids(self) -> set[str]:
        if not self._path.exists():
            return set()
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return {json.loads(line).get("event_id") for line in lines if line.endswith("}")}

    def _write(self, entry: dict[str, Any]) -> None:
        paths.private_folder(self._path.parent)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def register(ctx: Any) -> None:
    """Register the callbacks; called once, when the plugin is loaded."""
    log = BoundaryLog(paths.logs_path() / "boundaries.jsonl")
    ctx.register_hook("on_session_boundary", log.boundary)
    ctx.register_hook("on_session_finalize", log.finalized)
    ctx.register_hook("on_session_reset", log.reset)
