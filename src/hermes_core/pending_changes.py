"""Changes that a web page requested and that wait for a confirmation in a terminal.

A page may not grant anything: its request is stored here, and `hermes dashboard confirm CODE`
shows it and applies it. The file is private, because a change may contain a credential.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from hermes_core.atomic_files import folder_locked
from hermes_core.clock import SystemClock
from hermes_core.errors import UsageError
from hermes_core.json_files import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_core.clock import Clock

ChangeKind = Literal[
    "setting", "plugin", "job", "platform", "pairing", "role", "mcp_server", "webhook_route"
]
ChangeState = Literal["pending", "applied"]

FILE_NAME: Final = "pending-changes.json"
CODE_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no 0 and O, no 1 and I
CODE_CHARACTERS: Final = 6
EXPIRY_SECONDS: Final = 15 * 60
SHOWN_SECONDS: Final = 10 * 60  # how long an applied change stays listed
MAX_PENDING: Final = 20
TOO_MANY: Final = (
    "Too many changes wait for confirmation. Confirm or cancel some of them: "
    "`hermes dashboard confirm` lists them."
)


@dataclass(frozen=True)
class PendingChange:
    """A requested change: what it concerns, and the new value (None: the default)."""

    code: str
    kind: ChangeKind
    name: str
    value: str | None
    requested_at: float
    expires_at: float
    applied_at: float | None = None

    @property
    def state(self) -> ChangeState:
        """Whether it was applied."""
        return "pending" if self.applied_at is None else "applied"


class PendingChanges:
    """The changes of a Hermes folder; the file may be changed by several processes."""

    def __init__(self, home: Path, clock: Clock | None = None) -> None:
        self.path = home / "run" / FILE_NAME
        self._clock = clock or SystemClock()

    def add(self, kind: ChangeKind, name: str, value: str | None) -> PendingChange:
        """Store a change; it replaces an earlier pending one of the same thing."""
        now = self._clock.now()
        code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARACTERS))
        change = PendingChange(code, kind, name, value, now, now + EXPIRY_SECONDS)

        def append(changes: list[PendingChange]) -> list[PendingChange]:
            others = [
                each
                for each in changes
                if each.state == "applied" or (each.kind, each.name) != (kind, name)
            ]
            if sum(each.state == "pending" for each in others) >= MAX_PENDING:
                raise UsageError(TOO_MANY)
            return [*others, change]

        self._update(append)
        return change

    def current(self) -> list[PendingChange]:
        """Pending changes, and those applied a short time ago, oldest first."""
        now = self._clock.now()
        return [change for change in self._read() if _is_current(change, now)]

    def find(self, code: str) -> PendingChange:
        """The pending change with this code, in any case of letters."""
        for change in self.current():
            if change.state == "pending" and change.code == code.strip().upper():
                return change
        raise UsageError(
            f"Unknown or expired code {code!r}. `hermes dashboard confirm` lists pending changes."
        )

    def mark_applied(self, code: str) -> None:
        """Record that a change was applied, without its value."""
        now = self._clock.now()
        self._update(
            lambda changes: [
                replace(change, applied_at=now, value=None) if change.code == code else change
                for change in changes
            ]
        )

    def remove(self, code: str) -> bool:
        """Forget a change; whether there was one."""
        before = {change.code for change in self.current()}
        self._update(lambda changes: [change for change in changes if change.code != code])
        return code in before

    def _update(self, change: Callable[[list[PendingChange]], list[PendingChange]]) -> None:
        with folder_locked(self.path.parent):
            write_json(self.path, [asdict(each) for each in change(self.current())])

    def _read(self) -> list[PendingChange]:
        rows = read_json(self.path, [], self._clock).value
        found = [_parse(row) for row in rows] if isinstance(rows, list) else []
        return [change for change in found if change is not None]


def _is_current(change: PendingChange, now: float) -> bool:
    if change.applied_at is not None:
        return now < change.applied_at + SHOWN_SECONDS
    # A clock that was set back must not prolong a request.
    return change.requested_at - EXPIRY_SECONDS <= now < change.expires_at


def _parse(row: Any) -> PendingChange | None:
    try:
        return PendingChange(**row)
    except TypeError:
        return None  # written by another release
