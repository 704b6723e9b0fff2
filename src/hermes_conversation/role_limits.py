"""What the role of a conversation leaves of its tools, notes, folder and approvals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.memory.facts import AgentMemory
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.tools.base import ToolError, failure, resolve_path
from hermes_agent.tools.prompter import UNAVAILABLE, ApprovalAnswer
from hermes_agent.tools.schedule import OWN_REMINDER, review_call, review_members_call
from hermes_core import paths
from hermes_core.roles import TOOL_RIGHTS, Right, Role, may, may_use_tool
from hermes_core.terminal_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.permissions.approvals import ReviewCall
    from hermes_agent.sandbox.denials import Denial
    from hermes_agent.sandbox.policy import SandboxPolicy
    from hermes_agent.tools.base import Tool, ToolContext
    from hermes_agent.tools.prompter import ApprovalRequest, Prompter
    from hermes_agent.tools.terminal import LimitsCommands
    from hermes_state.store import SessionDB

# Besides the home folder: where files of people and services are, and no programs.
PERSONAL_FOLDERS: Final = (
    "/home", "/root", "/Users", "/srv", "/mnt", "/media", "/var/tmp", "/var/lib", "/var/log",  # noqa: S108 - hidden, not used
    "/var/mail", "/var/www", "/var/backups",
)  # fmt: skip
AFFIRMATIVE_ANSWERS: Final = frozenset({"yes", "y", "ok", "okay", "👍"})
GUEST_FOLDER: Final = "guest"
OWNER_FOLDER: Final = "owner"
OUTSIDE_TEXT: Final = (
    "{path} is outside of {folder}, the only folder with files in this conversation."
)


class PrompterWithoutApprovals:
    """Asks questions of the model; people other than the owner approve own reminders only."""

    def __init__(self, prompter: Prompter) -> None:
        self._prompter = prompter

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask about an own reminder; report that no person can approve anything else."""
        if set(request.pattern_keys) != {OWN_REMINDER}:
            return ApprovalAnswer(UNAVAILABLE)
        question = f"{request.description}: {one_line(request.command)}"
        answer = self._prompter.clarify(question, ["Yes", "No"])
        if answer.strip().rstrip(".!").casefold() in AFFIRMATIVE_ANSWERS:
            return ApprovalAnswer("once")
        return ApprovalAnswer("deny", reason=answer)

    def clarify(self, question: str, choices: list[str]) -> str:
        """Ask a question of the model; the answer."""
        return self._prompter.clarify(question, choices)


def schedule_review(role: Role) -> ReviewCall:
    """How calls of the tool `schedule` are reviewed in conversations of a role."""
    return review_call if may(role, Right.APPROVE) else review_members_call


class FolderLimits:
    """Limits of a role with a folder of its own: no other file of a person is visible."""

    def __init__(self, limits: LimitsCommands) -> None:
        self._limits = limits

    def policy(
        self, command: str, cwd: Path, context: ToolContext, denial: Denial | None = None
    ) -> SandboxPolicy | None:
        """The limits of a command: it sees programs and libraries, and its own folder."""
        if not _is_inside(cwd, context.cwd):
            raise ToolError(OUTSIDE_TEXT.format(path=cwd, folder=context.cwd))
        policy = self._limits.policy(command, cwd, context, denial)
        if policy is None or not find_sandbox().is_available:
            raise ToolError("This command cannot be limited to the folder of this conversation.")
        personal = (Path.home(), *(Path(name) for name in PERSONAL_FOLDERS))
        return policy._replace(
            hidden=(*policy.hidden, *(folder for folder in personal if folder.is_dir())),
            revealed=(*policy.revealed, context.cwd),
            has_network=False,
            has_local_sockets=False,
            is_limited=True,
        )

    def may_exceed(self, command: str, denial: Denial, context: ToolContext) -> bool:
        """Whether a limit may be lifted: it may not."""
        del command, denial, context
        return False

    def only_reads(self, command: str, context: ToolContext) -> bool:
        """Whether a command is known to change nothing."""
        return self._limits.only_reads(command, context)

    def is_hidden(self, path: Path, context: ToolContext) -> bool:
        """Whether a file is hidden: it is outside of the working folder, or hidden from all."""
        return not _is_inside(path, context.cwd) or self._limits.is_hidden(path, context)

    def real_path(self, path: Path, context: ToolContext) -> Path:
        """The real path of a call; it lies in the working folder."""
        real = self._limits.real_path(path, context)
        if not _is_inside(real, context.cwd):
            raise ToolError(OUTSIDE_TEXT.format(path=path, folder=context.cwd))
        return real


def limits_of_role(role: Role, limits: LimitsCommands) -> LimitsCommands:
    """The limits of commands and file searches of a role."""
    return limits if may(role, Right.ALL_FILES) else FolderLimits(limits)


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path leads into a folder, symbolic links followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def prompter_of_role(role: Role, prompter: Prompter) -> Prompter:
    """The prompter, which approves calls only for a role that may."""
    return prompter if may(role, Right.APPROVE) else PrompterWithoutApprovals(prompter)


def tools_of_role(role: Role, tools: Iterable[Tool]) -> list[Tool]:
    """The tools that a role may use; file tools are limited to the working folder."""
    allowed = [tool for tool in tools if may_use_tool(role, tool.name)]
    if may(role, Right.ALL_FILES):
        return allowed
    if not find_sandbox().is_available:  # nothing would keep a command in its folder
        allowed = [tool for tool in allowed if TOOL_RIGHTS.get(tool.name) is not Right.COMMANDS]
    return [
        _in_folder(tool) if TOOL_RIGHTS.get(tool.name) is Right.FILES else tool for tool in allowed
    ]


def _in_folder(tool: Tool) -> Tool:
    """A tool whose `path` must lead into the working folder, symbolic links followed."""

    def run(arguments: dict[str, Any], context: ToolContext) -> str:
        try:
            path = resolve_path(str(arguments.get("path", ".")), context.cwd)
        except ToolError as error:
            return failure(str(error))
        if not _is_inside(path, context.cwd):
            return failure(OUTSIDE_TEXT.format(path=path, folder=context.cwd))
        return tool.run(arguments, context)

    return tool._replace(run=run)


def folder_of_role(role: Role, person: str) -> Path:
    """The working folder of a role that may not choose one."""
    return paths.workspace_path(person if person and may(role, Right.FILES) else GUEST_FOLDER)


def reads_agents_file(role: Role) -> bool:
    """Whether instruction files (AGENTS.md) are read.

    People write to their own folders: there it could be a link to a file of the owner.
    """
    return may(role, Right.ALL_FILES)


def memory_of(role: Role, person: str, db: SessionDB, *, is_private: bool) -> AgentMemory | None:
    """The notes of a conversation; the owner's only where no others read the replies."""
    if not may(role, Right.MEMORY):
        return None
    if role is Role.OWNER:
        return AgentMemory(db) if is_private else None
    return AgentMemory(db, paths.person_memory_path(person)) if person else None
