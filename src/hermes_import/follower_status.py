"""What the process that follows other agents reports, in a file for other processes."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import write_atomically
from hermes_core.instance_record import is_lock_held
from hermes_core.json_values import number_in, object_in, text_in
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hermes_core.json_values import JsonObject

LOCK_NAME: Final = "import.lock"
STATUS_NAME: Final = "import.json"


def lock_path() -> Path:
    """The lock of the process that follows."""
    return hermes_home() / "run" / LOCK_NAME


class FollowerStatus(NamedTuple):
    """The process, its restarts after failures, and what fails now."""

    pid: int = 0
    started_at: float = 0.0
    restarts: int = 0
    last_failure: str = ""
    failed_at: float = 0.0
    failing: Mapping[str, str] = MappingProxyType({})  # agents whose import fails now

    @property
    def is_running(self) -> bool:
        """Whether a process follows."""
        return is_lock_held(lock_path())

    def with_failure(self, text: str, at: float, agent: str = "") -> FollowerStatus:
        """After a failure, of an agent or of the follower itself."""
        failing = {**self.failing, agent: text} if agent else dict(self.failing)
        return self._replace(last_failure=text, failed_at=at, failing=failing)

    def without_failure(self, agent: str) -> FollowerStatus:
        """After an import from an agent without failures."""
        return self._replace(failing={k: v for k, v in self.failing.items() if k != agent})

    def save(self) -> None:
        """Write the file."""
        text = json.dumps({**self._asdict(), "failing": dict(self.failing)})
        write_atomically(hermes_home() / "run" / STATUS_NAME, text, is_synced=False)


def read_status() -> FollowerStatus | None:
    """What was reported last; None if nothing ever was."""
    try:
        stored: object = json.loads((hermes_home() / "run" / STATUS_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return _status(stored) if isinstance(stored, dict) else None


def _status(stored: JsonObject) -> FollowerStatus:
    failing = object_in(stored, "failing")
    return FollowerStatus(
        number_in(stored, "pid"),
        float(number_in(stored, "started_at")),
        number_in(stored, "restarts"),
        text_in(stored, "last_failure"),
        float(number_in(stored, "failed_at")),
        {agent: text_in(failing, agent) for agent in failing},
    )
