"""An example: writes every session boundary to a file, each event once.

Events are delivered at least once; `event_id` tells a repeat from a new one. This plugin
remembers the ids it has written by reading its own file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes_core import paths

if TYPE_CHECKING:
    from pathlib import Path


class BoundaryLog:
    """The file, and which events it holds."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def boundary(self, *, event_id: str, **facts: Any) -> None:
        """One boundary, written once."""
        if event_id not in self._known():
            self._write({"hook": "on_session_boundary", "event_id": event_id, **facts})

    def finalized(self, **facts: Any) -> None:
        """A session id will not be written to again."""
        self._write({"hook": "on_session_finalize", **facts})

    def reset(self, **facts: Any) -> None:
        """A place has got a new conversation."""
        self._write({"hook": "on_session_reset", **facts})

    def _known(self) -> set[str]:
        if not self._path.exists():
            return set()
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return {json.loads(line).get("event_id") for line in lines if line.endswith("}")}

    def _write(self, entry: dict[str, Any]) -> None:
        paths.private_folder(self._path.parent)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def register(ctx: Any) -> None:
    """Called once, when the plugin is loaded."""
    log = BoundaryLog(paths.logs_path() / "boundaries.jsonl")
    ctx.register_hook("on_session_boundary", log.boundary)
    ctx.register_hook("on_session_finalize", log.finalized)
    ctx.register_hook("on_session_reset", log.reset)
