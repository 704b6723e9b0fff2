"""The agent cannot change the program that it runs in, wherever that lies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from hermes_agent.sandbox import bubblewrap
from hermes_agent.sandbox.runner import find_sandbox
from hermes_core.config.file import ConfigFile
from security.conftest import CanaryHome, needs_bubblewrap, run_in_mode
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HIDDEN_WRITER = """
import os, sys
for name in sys.argv[1:]:
    try: open(name, "w").write("import os")
    except OSError as error: print(error.errno)
try: os.rename("tools", "other")
except OSError as error: print(error.errno)
"""


@pytest.fixture
def program(canary: CanaryHome, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The virtual environment of Hermes, two levels below the working folder."""
    folder = canary.workspace / "tools" / "venv"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "known.py").write_text("")
    monkeypatch.setattr(sys, "prefix", str(folder))
    return folder


@pytest.fixture(params=[pytest.param("bubblewrap", marks=needs_bubblewrap), "landlock"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "landlock":
        monkeypatch.setattr(bubblewrap, "PROGRAM", "bwrap-that-is-missing")
    find_sandbox.cache_clear()
    yield request.param
    find_sandbox.cache_clear()


@pytest.mark.parametrize("mode", ["workspace", "full"])
def test_a_command_cannot_write_program_files(
    canary: CanaryHome, program: Path, backend: str, mode: str
) -> None:
    (canary.workspace / "write.py").write_text(HIDDEN_WRITER)
    names = f"{program}/lib/zz.pth {program}/lib/known.py"
    (result,) = run_in_mode(canary, mode, f"python3 write.py {names}", reply="always")
    assert find_sandbox().name == backend
    assert sorted(path.name for path in (program / "lib").iterdir()) == ["known.py"]
    assert (program / "lib" / "known.py").read_text() == ""
    assert program.is_dir(), result


def test_a_command_that_names_program_files_is_refused_with_another_place(
    canary: CanaryHome, program: Path
) -> None:
    (result,) = run_in_mode(canary, "full", f"echo x > {program}/lib/zz.pth", reply="always")
    assert "Work in another folder" in result["error"]


def test_the_file_tools_do_not_write_program_files(canary: CanaryHome, program: Path) -> None:
    ConfigFile.of_home().set("agent.approvals", "full")
    step = tool_call_step("write_file", {"path": f"{program}/lib/zz.pth", "content": "import os"})
    with open_conversation(canary.workspace, step, reply="always") as agent:
        (result,) = agent.results()
    assert "changes the program files of Hermes" in result["error"]
    assert not (program / "lib" / "zz.pth").exists()


@needs_bubblewrap
def test_a_folder_below_the_program_stays_readable(canary: CanaryHome, program: Path) -> None:
    (result,) = run_in_mode(canary, "workspace", f"ls {program}/lib; echo x > free.txt")
    assert result["output"].split() == ["known.py"]
    assert (canary.workspace / "free.txt").exists()
