"""Grants: what a person has allowed, as rules that can be listed, edited and removed.

A rule is a pattern key such as `network`, or `run: COMMAND`. The command of a rule is compared
with the whole text; a last `*` stands for further words of one simple command that are not
options: an option can change what the command does or name another program.
"""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Final

from hermes_agent.permissions.verdicts import EXACT_KEYS
from hermes_core.atomic_files import folder_locked
from hermes_core.clock import SystemClock
from hermes_core.errors import UsageError
from hermes_core.json_files import read_json, write_json
from hermes_state.files import RULES_FILE, RULES_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from hermes_agent.tools.prompter import ApprovalAnswer, ApprovalRequest
    from hermes_core.clock import Clock
    from hermes_state.files import FileRepository

RUN_PREFIX: Final = "run: "
GRANTS_FILE: Final = RULES_FILE
SHARED_NAME: Final = RULES_NAME  # of the file in a database
KEY_PATTERN: Final = re.compile(r"[a-z][a-z0-9]*([-_:.][A-Za-z0-9_.-]+)*")
# A wildcard never reaches into a second command, nor covers what a comment asks for.
WILDCARD_WORD: Final = re.compile(r"--(verbose|quiet|dry-run)|[^-+:'\"\s][^'\"\s]*")
SHELL_OPERATORS: Final = re.compile(r"[;&|`$()<>\n\\#]")


def suggested_rules(request: ApprovalRequest) -> tuple[str, ...]:
    """The rules that `session` and `always` add: keys where they say enough, else the command."""
    if set(request.pattern_keys) & EXACT_KEYS or not request.may_always:
        return (f"{RUN_PREFIX}{request.command}",)
    return request.pattern_keys


def check_rule(rule: str) -> str:
    """Return a rule that a person wrote, without surrounding blanks; refuse an invalid one."""
    rule = rule.strip()
    key = rule.removeprefix(RUN_PREFIX).strip() if rule.startswith(RUN_PREFIX) else rule
    if rule in EXACT_KEYS:
        raise UsageError(f"{rule!r} covers too much for a rule; name the command: `run: COMMAND`.")
    if not key or (key == rule and not KEY_PATTERN.fullmatch(rule)):
        raise UsageError(
            f"{rule!r} is not a rule. Write `run: COMMAND` (a trailing ` *` matches any further "
            "words) or a permission such as `network`."
        )
    if rule.startswith(RUN_PREFIX) and key == "*":
        raise UsageError("`run: *` would allow every command; use the mode `full` for that.")
    return rule


def parse_rules(text: str) -> tuple[str, ...]:
    """The rules in a text, one on each line."""
    return tuple(check_rule(line) for line in text.splitlines() if line.strip())


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
    if not is_prefix or not command.strip().startswith(pattern[:-1]):
        return False
    return all(map(WILDCARD_WORD.fullmatch, command.strip()[len(pattern) - 1 :].split()))


class Grants:
    """The answers that were given. An answer never covers more than its rule names.

    once     this session, this turn, this very command, one time
    session  the rules, in this session
    always   the rules, kept in a file
    deny     this session, this turn, this very command
    """

    def __init__(
        self,
        path: Path | None,
        clock: Clock | None = None,
        rules: tuple[str, ...] = (),
        shared: FileRepository | None = None,
    ) -> None:
        self._path = path
        self._shared = shared  # instead of the file, if several nodes share the history
        self._fixed_rules = frozenset(rules)  # of every session of this process
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._once: list[tuple[str, str, str]] = []
        self._denied: dict[tuple[str, str, str], str] = {}
        self._session_rules: dict[str, set[str]] = {}

    def settle(self, request: ApprovalRequest, answer: ApprovalAnswer) -> None:
        """Record an answer; anything but the known choices means no."""
        call = (request.session_id, request.turn_id, request.command)
        rules = answer.rules or suggested_rules(request)
        with self._lock:
            self._forget_other_turns(request)
            if answer.choice == "once":
                self._once.append(call)
            elif answer.choice in {"session", "always"}:
                self._session_rules.setdefault(request.session_id, set()).update(rules)
                if not is_covered(request, rules):  # a rule that was edited
                    self._once.append(call)
            else:
                self._denied[call] = answer.reason
        if answer.choice == "always" and request.may_always:
            self.add(rules)

    def allow_in(self, session_id: str, rules: Iterable[str]) -> None:
        """Add rules to a session."""
        with self._lock:
            self._session_rules.setdefault(session_id, set()).update(rules)

    def revoke_in(self, session_id: str, rule: str) -> bool:
        """Remove a rule of a session; whether it was there."""
        with self._lock:
            rules = self._session_rules.get(session_id, set())
            is_known = rule in rules
            rules.discard(rule)
        return is_known

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
            rules = {*self._fixed_rules, *self._session_rules.get(session_id, ())}
        return rules | set(self.always())

    def denial(self, request: ApprovalRequest) -> str | None:
        """The reason that was given when this very call was denied in this turn, or None."""
        with self._lock:
            return self._denied.get((request.session_id, request.turn_id, request.command))

    def always(self) -> list[str]:
        """The rules that are kept; none without a file."""
        if self._path is None:
            return []
        stored = self._shared.get(SHARED_NAME) if self._shared is not None else None
        return self._in_file() if stored is None else _rules_of(json.loads(stored))

    def _in_file(self) -> list[str]:
        if self._path is None:
            return []
        return _rules_of(read_json(self._path, {}, self._clock).value)

    def add(self, rules: Iterable[str]) -> None:
        """Keep rules."""
        added = set(rules)
        self._change(lambda kept: sorted({*kept, *added}))

    def revoke(self, rule: str) -> bool:
        """Remove a rule that is kept; whether it was there."""
        before = self._change(lambda kept: [item for item in kept if item != rule])
        return rule in before

    def _change(self, change: Callable[[list[str]], list[str]]) -> list[str]:
        """Change the rules that are kept; returns those before."""
        before: list[str] = []
        if self._path is None:
            return before

        def replace(stored: bytes | None) -> bytes:
            before[:] = self._in_file() if stored is None else _rules_of(json.loads(stored))
            return json.dumps({"always": change(before)}).encode()

        if self._shared is not None:
            self._shared.change(SHARED_NAME, replace)
            return before
        with folder_locked(self._path.parent):
            before = self._in_file()
            after = change(before)
            if after != before:
                write_json(self._path, {"always": after})
        return before

    def _forget_other_turns(self, request: ApprovalRequest) -> None:
        session, turn = request.session_id, request.turn_id
        self._once = [call for call in self._once if call[0] != session or call[1] == turn]
        self._denied = {
            call: reason
            for call, reason in self._denied.items()
            if call[0] != session or call[1] == turn
        }


def _rules_of(data: object) -> list[str]:
    rules = data.get("always") if isinstance(data, dict) else None
    return [rule for rule in rules if isinstance(rule, str)] if isinstance(rules, list) else []
