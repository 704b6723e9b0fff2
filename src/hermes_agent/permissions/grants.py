"""Grants: what a person has allowed, as rules that can be listed, edited and removed.

A rule is a pattern key such as `network`, or `run: COMMAND`. The command of a rule is compared
with the whole text; a last `*` stands for any further words of one simple command.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Final

from hermes_agent.permissions.verdicts import EXACT_KEYS
from hermes_core.atomic_files import folder_locked
from hermes_core.clock import SystemClock
from hermes_core.json_files import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from hermes_agent.tools.base import ApprovalRequest
    from hermes_core.clock import Clock

ANSWERS: Final = ("once", "session", "always", "deny")
RUN_PREFIX: Final = "run: "
# A wildcard never reaches into a second command, nor covers what a comment asks for.
SHELL_OPERATORS: Final = re.compile(r"[;&|`$()<>\n\\#]")


def suggested_rules(request: ApprovalRequest) -> tuple[str, ...]:
    """The rules that `session` and `always` add: keys where they say enough, else the command."""
    if set(request.pattern_keys) & EXACT_KEYS or not request.may_always:
        return (f"{RUN_PREFIX}{request.command}",)
    return request.pattern_keys


def is_covered(request: ApprovalRequest, rules: Iterable[str]) -> bool:
    """Whether rules allow everything that is asked for."""
    granted = set(rules)
    if any(_matches(rule, request.command) for rule in granted):
        return True
    keys = set(request.pattern_keys)
    return request.may_always and not keys & EXACT_KEYS and keys <= granted


def _matches(rule: str, command: str) -> bool:
    if not rule.startswith(RUN_PREFIX):
        return False
    pattern = rule.removeprefix(RUN_PREFIX).strip()
    if pattern == command.strip():
        return True
    is_prefix = pattern.endswith(" *") and not SHELL_OPERATORS.search(command)
    return is_prefix and command.strip().startswith(pattern[:-1])


class Grants:
    """The answers that were given. An answer never covers more than its rule names.

    once     this session, this turn, this very command, one time
    session  the rules, in this session
    always   the rules, kept in a file
    deny     this session, this turn, this very command
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._once: list[tuple[str, str, str]] = []
        self._denied: list[tuple[str, str, str]] = []
        self._session_rules: dict[str, set[str]] = {}

    def settle(self, request: ApprovalRequest, answer: str, rules: Iterable[str] = ()) -> None:
        """Record an answer; anything but the known ones means no. *rules* replace the suggested."""
        call = (request.session_id, request.turn_id, request.command)
        chosen = tuple(rules) or suggested_rules(request)
        with self._lock:
            self._forget_other_turns(request)
            if answer == "once":
                self._once.append(call)
            elif answer in {"session", "always"}:
                self._session_rules.setdefault(request.session_id, set()).update(chosen)
            else:
                self._denied.append(call)
        if answer == "always" and request.may_always:
            self.add(chosen)

    def covers(self, request: ApprovalRequest) -> bool:
        """Whether an answer covers what is asked now; `once` is used up by it."""
        call = (request.session_id, request.turn_id, request.command)
        with self._lock:
            if call in self._once:
                self._once.remove(call)
                return True
        return is_covered(request, self.rules(request.session_id))

    def rules(self, session_id: str) -> set[str]:
        """The rules of a session, and those that are kept."""
        with self._lock:
            rules = set(self._session_rules.get(session_id, ()))
        return rules | set(self.always())

    def denies(self, request: ApprovalRequest) -> bool:
        """Whether this very call was refused in this turn."""
        with self._lock:
            return (request.session_id, request.turn_id, request.command) in self._denied

    def always(self) -> list[str]:
        """The rules that are kept."""
        data = read_json(self._path, {}, self._clock).value
        rules = data.get("always") if isinstance(data, dict) else None
        return [rule for rule in rules if isinstance(rule, str)] if isinstance(rules, list) else []

    def add(self, rules: Iterable[str]) -> None:
        """Keep rules."""
        with folder_locked(self._path.parent):
            write_json(self._path, {"always": sorted({*self.always(), *rules})})

    def revoke(self, rule: str) -> None:
        """Remove a rule that is kept."""
        with folder_locked(self._path.parent):
            kept = [existing for existing in self.always() if existing != rule]
            write_json(self._path, {"always": kept})

    def _forget_other_turns(self, request: ApprovalRequest) -> None:
        session, turn = request.session_id, request.turn_id
        self._once = [call for call in self._once if call[0] != session or call[1] == turn]
        self._denied = [call for call in self._denied if call[0] != session or call[1] == turn]
