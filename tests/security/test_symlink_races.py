"""Symbolic links that change between the review of a call and the opening of its file."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.permissions.approvals import ApprovalGuard, Approvals, Caller, CommandLimits
from hermes_agent.sandbox.runner import ProgramLaunch, start_in_bubblewrap, start_in_landlock
from hermes_agent.tools.base import ToolContext
from hermes_agent.tools.files import SeenFiles, file_tools
from hermes_agent.tools.patch import patch_tool
from hermes_agent.tools.prompter import NonInteractivePrompter
from hermes_agent.turn_control import Cancel
from hermes_agent.turn_hooks import no_plugins
from hermes_core.media_store import of_home
from security.conftest import SECRET, START_UP_FILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import Popen

    from security.conftest import CanaryHome


class FileCall:
    """A call of a file tool in two steps: it is reviewed, then it runs."""

    def __init__(self, canary: CanaryHome, tool: str, **arguments: Any) -> None:
        approvals = Approvals("workspace", is_sandboxed=True)
        self._guard = ApprovalGuard(approvals, no_plugins, "test")
        limits = CommandLimits(approvals, self._guard, None)  # type: ignore[arg-type]
        seen = SeenFiles()
        own = [*file_tools(limits, of_home(), seen, lambda _path: None), patch_tool(limits, seen)]
        tools = {item.name: item for item in own}
        self._tool, self._arguments = tools[tool], arguments
        self._context = ToolContext(
            "s", "t", "c1", canary.workspace, Cancel(), NonInteractivePrompter(), print
        )

    def with_same_id(self, **arguments: Any) -> FileCall:
        other = copy.copy(self)
        other._arguments = arguments
        return other

    def review(self) -> str | None:
        return self._guard(self._tool.name, self._arguments, self._context)

    def run(self) -> str:
        return self._tool.run(self._arguments, self._context)


def point(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@pytest.fixture
def plain(canary: CanaryHome) -> Path:
    folder = canary.workspace / "plain"
    folder.mkdir()
    (folder / "id_ed25519").write_text("harmless\n")
    (folder / ".bashrc").write_text("harmless\n")
    return folder


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_link_that_changes_after_the_review_reads_no_secret(
    canary: CanaryHome, plain: Path, is_folder: bool
) -> None:
    link = canary.workspace / "link"
    name = "id_ed25519"
    point(link, plain if is_folder else plain / name)
    call = FileCall(canary, "read_file", path=f"link/{name}" if is_folder else "link")
    assert call.review() is None
    point(link, canary.home / ".ssh" if is_folder else canary.home / ".ssh" / name)
    result = call.run()
    assert SECRET not in result
    assert "harmless" in result


def test_a_folder_that_becomes_a_link_reads_no_secret(canary: CanaryHome, plain: Path) -> None:
    call = FileCall(canary, "read_file", path="plain/id_ed25519")
    assert call.review() is None
    plain.rename(canary.workspace / "old")
    plain.symlink_to(canary.home / ".ssh")
    assert SECRET not in call.run()


@pytest.mark.parametrize("tool", ["write_file", "patch"])
def test_a_folder_that_becomes_a_link_writes_nothing_outside(
    canary: CanaryHome, plain: Path, tool: str
) -> None:
    arguments = {"content": "evil"} if tool == "write_file" else {"new_string": "evil"}
    call = FileCall(canary, tool, path="plain/.bashrc", old_string="harmless", **arguments)
    before = canary.state()
    assert call.review() is None
    plain.rename(canary.workspace / "old")
    plain.symlink_to(canary.home)
    call.run()
    assert canary.state() == before
    assert (canary.home / ".bashrc").read_text() == START_UP_FILE


def test_a_file_that_becomes_a_link_is_replaced_and_not_followed(
    canary: CanaryHome, plain: Path
) -> None:
    call = FileCall(canary, "write_file", path="plain/.bashrc", content="mine")
    assert call.review() is None
    point(plain / ".bashrc", canary.home / ".bashrc")
    call.run()
    assert (canary.home / ".bashrc").read_text() == START_UP_FILE


def test_a_refused_call_leaves_nothing_for_the_next_one(canary: CanaryHome, plain: Path) -> None:
    approvals = Approvals("workspace", is_sandboxed=True)
    guard = ApprovalGuard(approvals, no_plugins, "test")
    context = ToolContext(
        "s", "t", "call_0", canary.workspace, Cancel(), NonInteractivePrompter(), print
    )
    assert guard("read_file", {"path": str(canary.secrets[0])}, context) is not None
    assert guard("read_file", {"path": "plain/id_ed25519"}, context) is None
    real = approvals.real_path(canary.workspace / "plain/id_ed25519", "call_0")
    assert real.samefile(plain / "id_ed25519")


@pytest.mark.parametrize("path", ["plain/id_ed25519", "link"])
def test_a_second_call_with_the_same_id_has_a_review_of_its_own(
    canary: CanaryHome, plain: Path, path: str
) -> None:
    link = canary.workspace / "link"
    point(link, plain / "id_ed25519")
    first = FileCall(canary, "read_file", path="link")
    second = first.with_same_id(path=path)
    assert (first.review(), second.review()) == (None, None)
    second.run()
    point(link, canary.home / ".ssh" / "id_ed25519")
    assert SECRET not in first.run()


def test_a_listed_folder_that_becomes_a_link_shows_no_secret(
    canary: CanaryHome, plain: Path
) -> None:
    call = FileCall(canary, "read_file", path="plain")
    assert call.review() is None
    (canary.home / ".ssh" / "work-server").write_text("")
    plain.rename(canary.workspace / "old")
    plain.symlink_to(canary.home / ".ssh")
    assert "work-server" not in call.run()


def test_a_pipe_does_not_block_a_reader(canary: CanaryHome) -> None:
    os.mkfifo(canary.workspace / "pipe")
    call = FileCall(canary, "read_file", path="pipe")
    assert call.review() is None
    assert "not a regular file" in call.run()


@pytest.mark.parametrize("start", [start_in_bubblewrap, start_in_landlock])
def test_a_git_directory_that_becomes_a_link_opens_no_other_folder(
    canary: CanaryHome, tmp_path: Path, start: Callable[[ProgramLaunch], Popen[bytes]]
) -> None:
    approvals = Approvals("workspace", is_sandboxed=True)
    caller = Caller("s", "t", canary.workspace)
    policy = approvals.policy("true", caller, canary.workspace, tmp_path)
    (canary.workspace / ".git").rename(canary.workspace / "old")
    (canary.workspace / ".git").symlink_to(canary.home / "notes")
    before = canary.state()
    command = ("/bin/sh", "-c", "touch inside; touch ../notes/new")
    launch = ProgramLaunch(command, canary.workspace, policy, {"PATH": "/usr/bin:/bin"})
    start(launch).wait(60)
    assert (canary.workspace / "inside").exists()
    assert canary.state() == before
