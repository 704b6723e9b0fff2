"""Facts that go with a log entry, for programs that read the log."""

from __future__ import annotations

from typing import Any


def log_fields(**found: Any) -> dict[str, Any]:
    """The `extra` of a log call; facts that are not known are left out."""
    return {"facts": {name: value for name, value in found.items() if value is not None}}
