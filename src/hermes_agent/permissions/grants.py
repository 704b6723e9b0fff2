"""Answers that were given: once, for a session, always, or no.

`always` is a list of pattern keys in approvals.json, private, shared by all processes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hermes_core.atomic_files import folder_locked
from hermes_core.clock import SystemClock
from hermes_core.json_files import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.tools.base import ApprovalRequest
    from hermes_core.clock import Clock

ANSWERS = ("once", "session", "always", "deny")


class Grants:
    """What has been answered. An answer never covers more than it was given for.

    once     this session, this turn, this very command, one time
    session  this session: the pattern keys, or this very command where keys say too little
    always   the pattern keys; where keys say too little it counts as for the session
    deny     this session, this turn, this very command
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._once: list[tuple[str, str, str]] = []
        self._denied: list[tuple[str, str, str]] = []
        self._commands: set[tuple[str, str]] = set()
        self._keys: dict[str, set[str]] = {}

    def settle(self, request: ApprovalRequest, answer: str) -> None:
        """Take an answer in; one that is none of the four means no."""
        asked = (request.session_id, request.turn_id, request.command)
        with self._lock:
            self._forget_other_turns(request)
            if answer == "once":
                self._once.append(asked)
            elif answer not in {"session", "always"}:
                self._denied.append(asked)
            elif not request.may_always:
                self._commands.add((request.session_id, request.command))
            else:
                self._keys.setdefault(request.session_id, set()).update(request.pattern_keys)
        if answer == "always" and request.may_always:
            self._keep(request.pattern_keys)

    def covers(self, request: ApprovalRequest) -> bool:
        """Whether an answer covers what is asked now; `once` is used up by it."""
        asked = (request.session_id, request.turn_id, request.command)
        with self._lock:
            if asked in self._once:
                self._once.remove(asked)
                return True
            if (request.session_id, request.command) in self._commands:
                return True
            granted = set(self._keys.get(request.session_id, ()))
        if not request.may_always:
            return False
        wanted = set(request.pattern_keys)
        return wanted <= granted or wanted <= granted | set(self.always())

    def denies(self, request: ApprovalRequest) -> bool:
        """Whether this very thing was refused in this turn."""
        with self._lock:
            return (request.session_id, request.turn_id, request.command) in self._denied

    def forget_session(self, session_id: str) -> None:
        """The session is over, and so is what was granted to it."""
        with self._lock:
            self._keys.pop(session_id, None)
            self._commands = {one for one in self._commands if one[0] != session_id}
            self._once = [one for one in self._once if one[0] != session_id]
            self._denied = [one for one in self._denied if one[0] != session_id]

    def always(self) -> list[str]:
        """The pattern keys that are granted for good."""
        found = read_json(self._path, {}, self._clock).value
        keys = found.get("always") if isinstance(found, dict) else None
        return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []

    def revoke(self, key: str) -> None:
        """Ask again for what was granted for good."""
        with folder_locked(self._path.parent):
            write_json(self._path, {"always": [one for one in self.always() if one != key]})

    def _keep(self, keys: tuple[str, ...]) -> None:
        with folder_locked(self._path.parent):
            write_json(self._path, {"always": sorted({*self.always(), *keys})})

    def _forget_other_turns(self, request: ApprovalRequest) -> None:
        session, turn = request.session_id, request.turn_id
        self._once = [one for one in self._once if one[0] != session or one[1] == turn]
        self._denied = [one for one in self._denied if one[0] != session or one[1] == turn]
