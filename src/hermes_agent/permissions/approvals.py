"""Approvals: the mode, what was found and what was granted make the verdict."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hermes_agent.permissions import file_writes
from hermes_agent.permissions.command_review import CommandReview, CommandReviewer
from hermes_agent.permissions.path_zones import PathContext
from hermes_agent.permissions.verdicts import (
    EXACT_KEYS,
    Allow,
    Level,
    NeedsApproval,
    Refuse,
    RiskFinding,
)
from hermes_agent.tools.base import ApprovalRequest
from hermes_core.atomic_files import folder_locked
from hermes_core.clock import SystemClock
from hermes_core.json_files import read_json, write_json
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_agent.permissions.verdicts import Verdict
    from hermes_agent.tools.base import ToolContext
    from hermes_agent.turn_hooks import HookInvoker
    from hermes_core.clock import Clock

    # How a call of some other tool is shown and what is found in it, or why it is refused.
    JudgesCall = Callable[[dict[str, Any], ToolContext], tuple[str, CommandReview] | Refuse]

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

    def always(self) -> list[str]:
        """The pattern keys that are granted for good."""
        result = read_json(self._path, {}, self._clock).value
        keys = result.get("always") if isinstance(result, dict) else None
        return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []

    def revoke(self, key: str) -> None:
        """Ask again for what was granted for good."""
        with folder_locked(self._path.parent):
            write_json(
                self._path, {"always": [granted for granted in self.always() if granted != key]}
            )

    def _keep(self, keys: tuple[str, ...]) -> None:
        with folder_locked(self._path.parent):
            write_json(self._path, {"always": sorted({*self.always(), *keys})})

    def _forget_other_turns(self, request: ApprovalRequest) -> None:
        session, turn = request.session_id, request.turn_id
        self._once = [item for item in self._once if item[0] != session or item[1] == turn]
        self._denied = [item for item in self._denied if item[0] != session or item[1] == turn]


class ApprovalGuard:
    """Lets a call pass, asks about it, or refuses it."""

    def __init__(self, approvals: Approvals, announce: HookInvoker, surface: str) -> None:
        self._approvals = approvals
        self._announce = announce
        self._surface = surface
        self._asking = threading.Lock()  # a person answers one question at a time

    def __call__(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> str | None:
        """Why *tool* may not be called like this; None when it may."""
        with self._asking:  # an answer for once is for the call that asked
            verdict = self._approvals.decide(tool, arguments, context)
            if isinstance(verdict, NeedsApproval):
                self._approvals.settle(verdict.request, self._ask(verdict.request, context))
                verdict = self._approvals.decide(tool, arguments, context)
        if isinstance(verdict, Refuse):
            return verdict.reason
        return "The command was not approved." if isinstance(verdict, NeedsApproval) else None

    def _ask(self, request: ApprovalRequest, context: ToolContext) -> str:
        facts = {
            "command": request.command,
            "description": request.description,
            "pattern_key": request.pattern_keys[0] if request.pattern_keys else "",
            "pattern_keys": list(request.pattern_keys),
            "session_key": request.session_id,
            "surface": self._surface,
        }
        self._announce("pre_approval_request", **facts)
        choice = "deny" if context.cancel.is_requested else context.asks.approve(request)
        self._announce("post_approval_response", **facts, choice=choice)
        return choice


Mode = Literal["read_only", "workspace", "full"]
MODES: tuple[Mode, ...] = ("read_only", "workspace", "full")
FILE_TOOLS = frozenset({"write_file", "patch"})
WRITE_KEYS = frozenset({"write", "write-outside", "home-dotfile", "git-internals", "hermes-files"})


class Caller(NamedTuple):
    """Who wants to do something, and where that one may work."""

    session_id: str
    turn_id: str
    workspace: Path


class Approvals:
    """Decides what may be done.

    read_only  programs that only read run; others are asked for; writing is refused
    workspace  free inside the working folder; what is risky is asked for
    full       everything runs but what never does; what may be such a thing is asked for
    """

    def __init__(
        self,
        mode: Mode = "workspace",
        *,
        free: tuple[Path, ...] = (),
        grants: Grants | None = None,
        own_pid: int | None = None,
        judges: Mapping[str, JudgesCall] | None = None,
    ) -> None:
        self.mode = mode
        self._judges = dict(judges or {})
        self._free = free
        self._hermes_home = hermes_home()
        self._own_pid = own_pid or os.getpid()
        self.grants = grants or Grants(self._hermes_home / "approvals.json")

    def decide(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> Verdict:
        """Whether a tool may be called like this."""
        caller = Caller(context.session_id, context.turn_id, context.cwd)
        if tool == "terminal":
            cwd = Path(str(arguments.get("cwd") or "."))
            return self.command(str(arguments.get("command") or ""), caller, _home(cwd))
        if tool in FILE_TOOLS:
            return self.write(tool, str(arguments.get("path") or ""), caller)
        if tool in self._judges:
            judged = self._judges[tool](arguments, context)
            if isinstance(judged, Refuse):
                return judged
            shown, judgement = judged
            return self._verdict(judgement, shown, caller)
        return Allow()

    def command(self, text: str, caller: Caller, cwd: Path | None = None) -> Verdict:
        """Whether a shell command may run in *cwd*, which is the working folder without it."""
        folder = caller.workspace / (cwd or "")
        judgement = CommandReviewer(self._ground(caller, folder)).judge(text)
        shown = text if folder == caller.workspace else f"cd {folder} && {text}"
        return self._verdict(judgement, shown, caller)

    def write(self, tool: str, path: str, caller: Caller) -> Verdict:
        """Whether a file may be written."""
        target = str(caller.workspace / _home(Path(path)))
        ground = self._ground(caller, caller.workspace)
        write_findings = tuple(file_writes.write_findings(target, ground))
        write = RiskFinding("write", "changes files", Level.WRITE)
        return self._verdict(
            CommandReview((*write_findings, write), False), f"{tool} {target}", caller
        )

    def settle(self, request: ApprovalRequest, answer: str) -> None:
        """Take the answer to a request in; then decide again."""
        self.grants.settle(request, answer)

    def _ground(self, caller: Caller, folder: Path) -> PathContext:
        return PathContext(
            home=Path.home(),
            hermes_home=self._hermes_home,
            free=(caller.workspace, *self._free),
            bases=(Path(os.path.normpath(folder)),),
            own_pid=self._own_pid,
        )

    def _verdict(self, judgement: CommandReview, shown: str, caller: Caller) -> Verdict:
        for finding in judgement.findings:
            if finding.level == Level.FLOOR:
                return Refuse(f"Not allowed in any mode: this {finding.reason}.")
            if self.mode == "read_only" and finding.key in WRITE_KEYS:
                return Refuse(f"Read-only mode: this {finding.reason}.")
        asked = self._asked(judgement)
        if not asked:
            return Allow()
        request = _request(asked, shown, caller)
        if self.grants.denies(request):
            return Refuse("The user denied this. Do not try it again in another way.")
        return Allow() if self.grants.covers(request) else NeedsApproval(request)

    def _asked(self, judgement: CommandReview) -> list[RiskFinding]:
        least = Level.DOUBT if self.mode == "full" else Level.RISK
        asked = [finding for finding in judgement.findings if finding.level >= least]
        if self.mode == "read_only" and not judgement.only_reads:
            asked.append(RiskFinding("not-reading", "may change something"))
        return asked


def _home(path: Path) -> Path:
    """`~` as the tools read it; a home that nobody has stays as it is written."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _request(asked: list[RiskFinding], shown: str, caller: Caller) -> ApprovalRequest:
    keys = tuple(sorted({finding.key for finding in asked}))
    is_doubt = any(finding.level == Level.DOUBT for finding in asked)
    description = "; ".join(dict.fromkeys(finding.reason for finding in asked))
    return ApprovalRequest(
        caller.session_id,
        caller.turn_id,
        shown,
        description[:1].upper() + description[1:],
        keys,
        may_always=not is_doubt and not EXACT_KEYS & set(keys),
    )
