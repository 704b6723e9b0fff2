"""Approvals: the mode, the findings and the grants make the verdict."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes_agent.permissions import path_zones
from hermes_agent.permissions.command_review import CommandReview, CommandReviewer
from hermes_agent.permissions.file_access import FileAccess, ReviewedPaths
from hermes_agent.permissions.grants import GRANTS_FILE, Grants, suggested_rules
from hermes_agent.permissions.limits import (
    LIFTED_LIMITS,
    CommandPlace,
    Limit,
    build_policy,
    lift,
    program_folders,
)
from hermes_agent.permissions.path_zones import PathContext
from hermes_agent.permissions.verdicts import (
    SANDBOX_KEYS,
    Allow,
    Level,
    NeedsApproval,
    Refuse,
    RiskFinding,
)
from hermes_agent.sandbox import bubblewrap
from hermes_agent.sandbox.policy import git_folders
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.tools.base import ToolError
from hermes_agent.tools.patch import preview_change
from hermes_agent.tools.prompter import DENIED, UNAVAILABLE, ApprovalAnswer, ApprovalRequest
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_agent.mcp.config import McpServerConfig
    from hermes_agent.permissions.verdicts import Verdict
    from hermes_agent.sandbox.denials import Denial
    from hermes_agent.sandbox.policy import SandboxPolicy
    from hermes_agent.tools.base import ToolContext
    from hermes_agent.tools.jobs import Jobs
    from hermes_agent.turn_hooks import HookInvoker
    from hermes_core.json_values import JsonObject

    # How a call of some other tool is shown and what is found in it, or why it is refused.
    ReviewCall = Callable[[JsonObject, ToolContext], tuple[str, CommandReview] | Refuse]


class ApprovalGuard:
    """Lets a call pass, asks about it, or refuses it."""

    def __init__(
        self, approvals: Approvals, announce: HookInvoker, surface: str, session_key: str = ""
    ) -> None:
        self._approvals = approvals
        self._announce = announce
        self._surface = surface
        self._session_key = session_key  # of the chat; empty in a terminal
        self._asking = threading.Lock()  # a person answers one question at a time

    def __call__(self, tool: str, arguments: JsonObject, context: ToolContext) -> str | None:
        """Why *tool* may not be called like this; None when it may."""
        with self._asking:  # an answer for once is for the call that asked
            verdict = self._approvals.decide(tool, arguments, context)
            if isinstance(verdict, NeedsApproval):
                answer = self._ask(verdict.request, context)
                if answer.choice == UNAVAILABLE:
                    return f"{verdict.request.description}. {NOBODY_TO_ASK}"
                self._approvals.settle(verdict.request, answer)
                verdict = self._approvals.decide(tool, arguments, context)
        if isinstance(verdict, Refuse):
            return verdict.reason
        return "The command was not approved." if isinstance(verdict, NeedsApproval) else None

    def allow(self, finding: RiskFinding, command: str, context: ToolContext) -> bool:
        """Whether what a command ran into is allowed, by a grant or by a person asked now."""
        caller = Caller(context.session_id, context.turn_id, context.cwd)
        with self._asking:
            verdict = self._approvals.allow(finding, command, caller)
            if isinstance(verdict, NeedsApproval):
                self._approvals.settle(verdict.request, self._ask(verdict.request, context))
                verdict = self._approvals.allow(finding, command, caller)
        return isinstance(verdict, Allow)

    def _ask(self, request: ApprovalRequest, context: ToolContext) -> ApprovalAnswer:
        facts = {
            "command": request.command,
            "description": request.description,
            "pattern_key": request.pattern_keys[0] if request.pattern_keys else "",
            "pattern_keys": list(request.pattern_keys),
            "session_id": request.session_id,
            "session_key": self._session_key,
            "surface": self._surface,
        }
        self._announce("pre_approval_request", **facts)
        request = request._replace(call_id=context.call_id)
        answer = DENIED if context.cancel.is_requested else context.prompter.approve(request)
        self._announce("post_approval_response", **facts, choice=answer.choice)
        return answer


DENIED_BY_USER = "The user denied this. Do not try it again in another way."
NOBODY_TO_ASK = (
    "This needs approval, but no user can be asked in this conversation. Continue without it, and "
    "report what needs approval."
)
Mode = Literal["plan", "workspace", "full"]
MODES: tuple[Mode, ...] = ("plan", "workspace", "full")
FILE_TOOLS = frozenset({"write_file", "patch"})
READING_TOOLS = frozenset({"read_file", "search_files", "send_file"})
NUL_IN_PATH = "A path cannot contain NUL characters."
HIDDEN_FILE = "{path} belongs to Hermes or holds credentials: tools cannot open it in any mode."
# What acts later, by the user's programs, the scheduler or a prompt: asked for in full mode, too.
ALWAYS_ASKED_KEYS = frozenset(
    {"home-dotfile", "git-internals", "schedule", "own-reminder", "memory"}
)
HARMLESS_PROGRAMS = frozenset({"cd", "echo", "printf", "true", ":"})
PLAN_KEYS = frozenset(
    {"write", "write-outside", "write-unknown", "home-dotfile", "git-internals", "hermes-files",
     "network", "git-push", "forge", "cloud", "publish", "ssh", "containers", "local-socket",
     "schedule", "own-reminder"}
)  # fmt: skip


def parse_mode(name: str) -> Mode:
    """The mode called *name*."""
    mode = next((mode for mode in MODES if mode == name), None)
    if mode is None:
        raise UsageError(f"Unknown mode {name!r}. Choose {', '.join(MODES)}.")
    return mode


class Caller(NamedTuple):
    """Who wants to do something, and where that one may work."""

    session_id: str
    turn_id: str
    workspace: Path


class Approvals:
    """Decides what may be done.

    plan       nothing is written and the network is not used
    workspace  free inside the working folder; what is risky is asked for
    full       everything runs but what never does; what may be such a thing is asked for

    Without a sandbox only programs that are known to read run unasked.
    """

    def __init__(
        self,
        mode: Mode = "workspace",
        *,
        is_sandboxed: bool,
        free: tuple[Path, ...] = (),
        grants: Grants | None = None,
        own_pid: int | None = None,
        call_reviews: Mapping[str, ReviewCall] | None = None,
        has_allowed_hosts: bool = False,
    ) -> None:
        self.mode = mode
        self.is_sandboxed = is_sandboxed
        self._has_allowed_hosts = has_allowed_hosts
        self._call_reviews = dict(call_reviews or {})
        self._free = free
        self._hermes_home = hermes_home()
        self._own_pid = own_pid or os.getpid()
        self.grants = grants or Grants(self._hermes_home / GRANTS_FILE)
        self._reviewed_paths = ReviewedPaths()
        self.is_hidden = FileAccess(self._hermes_home, Path.home()).is_hidden

    def description(self, *, may_ask: bool) -> str:
        """The mode and what it allows, for the model."""
        more = "what needs more is asked for" if may_ask else "what needs more is refused"
        if self.mode == "plan":
            return "plan (reads only, without network)"
        if self.mode == "full":
            return "full (commands run without a sandbox and without asking)"
        if not self.is_sandboxed:
            return "workspace (commands that may change something are asked for)"
        network = "network for allowed hosts only" if self._has_allowed_hosts else "without network"
        return f"workspace (commands run in a sandbox, {network}; {more})"

    def decide(self, tool: str, arguments: JsonObject, context: ToolContext) -> Verdict:
        """Whether a tool may be called like this."""
        caller = Caller(context.session_id, context.turn_id, context.cwd)
        if any("\0" in str(arguments.get(name)) for name in ("path", "cwd")):
            return Refuse(NUL_IN_PATH)
        if tool == "terminal":
            cwd = Path(str(arguments.get("cwd") or "."))
            return self.command(str(arguments.get("command") or ""), caller, _home(cwd))
        if tool in FILE_TOOLS | READING_TOOLS:
            return self._file(tool, arguments, caller, context.call_id)
        if tool in self._call_reviews:
            reviewed = self._call_reviews[tool](arguments, context)
            if isinstance(reviewed, Refuse):
                return reviewed
            shown, review = reviewed
            return self._verdict(review, shown, caller)
        return Allow()

    def _file(self, tool: str, arguments: JsonObject, caller: Caller, call_id: str) -> Verdict:
        path = caller.workspace / _home(Path(str(arguments.get("path") or ".")))
        real = self._reviewed_paths.note(call_id, path)
        if self.is_hidden(real, caller.workspace):
            return Refuse(HIDDEN_FILE.format(path=path))
        if tool in READING_TOOLS:
            return Allow()
        verdict = self.write(tool, str(real), caller)
        return _with_diff(verdict, tool, arguments, real)

    def real_path(self, path: Path, call_id: str) -> Path:
        """The real path that was reviewed for a call; a call without a review is refused."""
        real = self._reviewed_paths.pop(call_id, path)
        if real is None:
            raise ToolError(f"{path} was not checked for this call. Call the tool again.")
        return real

    def command(self, text: str, caller: Caller, cwd: Path | None = None) -> Verdict:
        """Whether a shell command may run in *cwd*, which is the working folder without it."""
        folder = caller.workspace / (cwd or "")
        review = self._review(text, caller, folder)
        shown = text if folder == caller.workspace else f"cd {folder} && {text}"
        return self._verdict(review, shown, caller, folder)

    def only_reads(self, command: str, caller: Caller) -> bool:
        """Whether a command is known to change nothing."""
        paths = self._context(caller, caller.workspace)
        return CommandReviewer(paths).review(command).only_reads

    def write(self, tool: str, path: str, caller: Caller) -> Verdict:
        """Whether a file may be written."""
        target = str(caller.workspace / _home(Path(path)))
        context = self._context(caller, caller.workspace)
        write_findings = tuple(path_zones.write_findings(target, context))
        write = RiskFinding("write", "changes files", Level.WRITE)
        return self._verdict(
            CommandReview((*write_findings, write), False), f"{tool} {target}", caller
        )

    def settle(self, request: ApprovalRequest, answer: ApprovalAnswer) -> None:
        """Take the answer to a request in; then decide again."""
        self.grants.settle(request, answer)

    def _context(self, caller: Caller, folder: Path) -> PathContext:
        return PathContext(
            home=Path.home(),
            hermes_home=self._hermes_home,
            free=(*self._workspace(caller), *self._free),
            bases=(Path(os.path.normpath(folder)),),
            own_pid=self._own_pid,
        )

    def _private_folders(self, caller: Caller) -> tuple[Path, ...]:
        """Where a command writes a folder of its own instead of the real one.

        Not where the project lies: what is written beside it there would be lost.
        """
        has_own = self.is_sandboxed and find_sandbox().name == "bubblewrap" and self.mode != "full"
        folder = bubblewrap.TEMPORARY
        return (folder,) if has_own and not caller.workspace.is_relative_to(folder) else ()

    @staticmethod
    def _workspace(caller: Caller) -> tuple[Path, ...]:
        """The working folder; the root of all files is not one."""
        is_root = caller.workspace == Path(caller.workspace.anchor)
        return () if is_root else (caller.workspace,)

    def _verdict(
        self, review: CommandReview, shown: str, caller: Caller, folder: Path | None = None
    ) -> Verdict:
        for finding in review.findings:
            if finding.level == Level.FLOOR:
                return Refuse(f"Not allowed in any mode: this {finding.reason}.")
            if self.mode == "plan" and finding.key in PLAN_KEYS:
                return Refuse(f"Plan mode: this {finding.reason}.")
        asked = self._asked(review)
        if not asked:
            return Allow()
        request = _request(asked, shown, caller, folder or caller.workspace)
        reason = self.grants.denial(request)
        if reason is not None:
            return Refuse(f"{DENIED_BY_USER} The user said: {reason}" if reason else DENIED_BY_USER)
        return Allow() if self.grants.covers(request) else NeedsApproval(request)

    def _review(self, command: str, caller: Caller, folder: Path) -> CommandReview:
        """What a command does, except what the sandbox decides when it happens."""
        context = self._context(caller, folder)._replace(private=self._private_folders(caller))
        review = CommandReviewer(context).review(command)
        if not self.is_sandboxed:
            return review
        left = tuple(each for each in review.findings if not self._is_left_to_sandbox(each))
        return review._replace(findings=left)

    def _is_left_to_sandbox(self, finding: RiskFinding) -> bool:
        """Whether the sandbox decides: with allowed hosts it knows which host is reached."""
        is_host = finding.key == "network" and self._has_allowed_hosts and self.mode == "workspace"
        return is_host or finding.key in SANDBOX_KEYS

    def _asked(self, review: CommandReview) -> list[RiskFinding]:
        least = Level.DOUBT if self.mode == "full" else Level.RISK
        asked = [
            finding
            for finding in review.findings
            if finding.level >= least
            or finding.key in ALWAYS_ASKED_KEYS
            or self._uncovers_secrets(finding, review)
        ]
        if not self.is_sandboxed and self.mode != "full" and not review.only_reads:
            asked.append(
                RiskFinding("not-reading", "runs without a sandbox and may change anything")
            )
        return asked

    def _uncovers_secrets(self, finding: RiskFinding, review: CommandReview) -> bool:
        """Whether a limit that hides secrets in every mode is lifted for more than its program.

        Commands with privileges run outside of the sandbox. Credentials are uncovered for all
        of a command line, so other programs in it would see them, too.
        """
        lifted = LIFTED_LIMITS.get(finding.key, Limit.NONE)
        if not self.is_sandboxed or not lifted & (Limit.PRIVILEGES | Limit.CREDENTIALS):
            return False
        return Limit.PRIVILEGES in lifted or len(review.programs - HARMLESS_PROGRAMS) > 1

    def policy(
        self, command: str, caller: Caller, cwd: Path, temporary: Path
    ) -> SandboxPolicy | None:
        """The limits under which an allowed command runs; None for none."""
        findings = self._review(command, caller, cwd).findings
        place = CommandPlace(
            caller.workspace, self._hermes_home, Path.home(), temporary, self._free
        )
        granted = Limit.NETWORK if "network" in self.grants.rules(caller.session_id) else Limit.NONE
        return build_policy(self.mode, findings, place, granted)

    def server_policy(
        self, server: McpServerConfig, workspace: Path, temporary: Path
    ) -> SandboxPolicy | None:
        """The limits of an MCP server's program; its settings were written by the owner."""
        if not server.is_sandboxed:
            return None
        writable = (*self._free, *server.writable)
        place = CommandPlace(workspace, self._hermes_home, Path.home(), temporary, writable)
        granted = Limit.NETWORK if server.has_network else Limit.NONE
        policy = build_policy(self.mode, (), place, granted)
        if policy is None:
            return None
        # A server runs on between calls, so its changes of git settings cannot be undone.
        settings = tuple(folder / "config" for folder in git_folders(workspace))
        return policy._replace(
            visible=(*policy.visible, *program_folders(server.command)),
            protected=(*policy.protected, *settings),
            has_network=policy.has_network and server.has_network,
        )

    def allow(self, finding: RiskFinding, shown: str, caller: Caller) -> Verdict:
        """Whether something that a command was found to want is allowed."""
        return self._verdict(CommandReview((finding,), False), shown, caller)


class CommandLimits:
    """The sandbox limits of commands, by the mode and by what was approved."""

    def __init__(self, approvals: Approvals, guard: ApprovalGuard, jobs: Jobs) -> None:
        self._approvals = approvals
        self._guard = guard
        self._jobs = jobs

    def policy(
        self, command: str, cwd: Path, context: ToolContext, denial: Denial | None = None
    ) -> SandboxPolicy | None:
        """The limits of an allowed command; None for none."""
        caller = Caller(context.session_id, context.turn_id, context.cwd)
        policy = self._approvals.policy(command, caller, cwd, self._jobs.temporary)
        return policy if policy is None or denial is None else lift(policy, denial)

    def only_reads(self, command: str, context: ToolContext) -> bool:
        """Whether a command is known to change nothing."""
        caller = Caller(context.session_id, context.turn_id, context.cwd)
        return self._approvals.only_reads(command, caller)

    def is_hidden(self, path: Path, context: ToolContext) -> bool:
        """Whether a file is hidden from the tools."""
        return self._approvals.is_hidden(path, context.cwd)

    def real_path(self, path: Path, context: ToolContext) -> Path:
        """The real path that was reviewed before the call."""
        return self._approvals.real_path(path, context.call_id)

    def may_exceed(self, command: str, denial: Denial, context: ToolContext) -> bool:
        """Whether a person allows what the sandbox denied.

        The comment keeps a rule for the command itself from covering this, too.
        """
        finding = RiskFinding(denial.access.value, denial.reason)
        return self._guard.allow(finding, f"{command}  # {denial.reason}", context)


def _home(path: Path) -> Path:
    """`~` as the tools read it; the home of an unknown user stays as it is written."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _with_diff(verdict: Verdict, tool: str, arguments: JsonObject, path: Path) -> Verdict:
    if not isinstance(verdict, NeedsApproval):
        return verdict
    diff = preview_change(tool, arguments, path)
    return NeedsApproval(verdict.request._replace(diff=diff))


def _request(asked: list[RiskFinding], shown: str, caller: Caller, folder: Path) -> ApprovalRequest:
    keys = tuple(sorted({finding.key for finding in asked}))
    is_doubt = any(finding.level == Level.DOUBT for finding in asked)
    description = "; ".join(dict.fromkeys(finding.reason for finding in asked))
    request = ApprovalRequest(
        caller.session_id,
        caller.turn_id,
        shown,
        description[:1].upper() + description[1:],
        keys,
        may_always=not is_doubt,
        folder=str(folder),
        risky_lines=_risky_lines(shown, asked),
    )
    return request._replace(rules=suggested_rules(request))


def _risky_lines(shown: str, asked: list[RiskFinding]) -> tuple[int, ...]:
    """The lines of a command in which something was found."""
    lines: set[int] = set()
    for finding in asked:
        start = shown.find(finding.excerpt) if finding.excerpt else -1
        if start >= 0:
            first = shown.count("\n", 0, start)
            lines.update(range(first, first + finding.excerpt.count("\n") + 1))
    return tuple(sorted(lines))
