"""The second sandbox: what a command can do where bubblewrap is missing."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from hermes_agent.sandbox import bubblewrap
from hermes_agent.sandbox.runner import find_sandbox
from security.conftest import SECRET, CanaryHome, run_in_mode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(bubblewrap, "PROGRAM", "bwrap-that-is-missing")
    find_sandbox.cache_clear()
    yield
    find_sandbox.cache_clear()


def test_landlock_is_used_and_the_reason_is_known() -> None:
    sandbox = find_sandbox()
    assert sandbox.name == "landlock"
    assert sandbox.is_available
    assert sandbox.problem == "bubblewrap (bwrap) is not installed"


@pytest.mark.parametrize("mode", ["plan", "workspace", "full"])
def test_no_command_reads_a_secret(canary: CanaryHome, mode: str) -> None:
    commands = [
        *(f"cat {path}" for path in canary.secrets),
        "ln -s ~/.ssh link; cat link/*; true",
        "cat /proc/$PPID/environ | tr '\\0' '\\n'; true",
        "cat /proc/self/environ | tr '\\0' '\\n'",
    ]
    for result in run_in_mode(canary, mode, *commands, reply="once"):
        assert SECRET not in result.get("output", ""), result


@pytest.mark.parametrize("mode", ["plan", "workspace"])
def test_no_command_changes_a_file_outside_the_folder(canary: CanaryHome, mode: str) -> None:
    before = canary.state()
    (canary.workspace / "write.py").write_text(
        "import os\n"
        "for name in ('.bashrc', 'new', 'notes/diary.txt'):\n"
        "    try: open(os.path.expanduser('~/' + name), 'a').write('x')\n"
        "    except OSError as error: print(error.errno)\n"
    )
    (result,) = run_in_mode(canary, mode, "python3 write.py")
    assert result["output"].splitlines()[:3] == ["13", "13", "13"]
    assert canary.state() == before


def test_work_in_the_folder_goes_on(canary: CanaryHome) -> None:
    results = run_in_mode(
        canary,
        "workspace",
        "echo hello > new.txt && git add new.txt",
        "git -c user.name=A -c user.email=a@b.c commit -qm first && git log --format=%s",
        "f=$(mktemp) && echo kept > $f && cat $f",
        "cat <(echo substituted)",
    )
    assert [result["exit_code"] for result in results] == [0, 0, 0, 0], results
    assert [result["output"] for result in results[1:]] == ["first\n", "kept\n", "substituted\n"]


def test_no_connection_leaves_the_sandbox(canary: CanaryHome) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        port = server.getsockname()[1]
        run_in_mode(canary, "workspace", f"echo x > /dev/tcp/127.0.0.1/{port}")
        with pytest.raises(TimeoutError):
            server.accept()


def test_hermes_itself_stays_without_limits(canary: CanaryHome) -> None:
    run_in_mode(canary, "plan", "true")
    (canary.home / "notes" / "own.txt").write_text("written by this process")
    assert (canary.hermes / ".env").read_text()


def test_a_link_beside_a_hidden_folder_does_not_open_it(canary: CanaryHome) -> None:
    (canary.home / "keys").symlink_to(canary.home / ".ssh")
    (result,) = run_in_mode(canary, "workspace", "cat ~/keys/id_ed25519 ~/.ssh/id_ed25519")
    assert SECRET not in result["output"]


def test_a_link_in_the_working_folder_does_not_make_its_target_writable(
    canary: CanaryHome, tmp_path: Path
) -> None:
    """Where the working folder contains a hidden one, its entries are allowed one by one."""
    canary.workspace = canary.root
    (canary.root / "link").symlink_to(tmp_path)
    (canary.root / "write.sh").write_text("touch inside/new; touch link/new\n")
    (canary.root / "inside").mkdir()
    run_in_mode(canary, "workspace", "sh write.sh")
    assert (canary.root / "inside" / "new").exists()
    assert not (tmp_path / "new").exists()


def test_a_denied_write_is_offered_again(canary: CanaryHome) -> None:
    diary = canary.home / "notes" / "diary.txt"
    (canary.workspace / "write.py").write_text(f"open({str(diary)!r}, 'a').write('more')\n")
    (result,) = run_in_mode(canary, "workspace", "python3 write.py", reply="once")
    assert result["exit_code"] == 0, result
    assert diary.read_text().endswith("more")


def test_an_allowed_folder_reveals_no_secret_in_it(canary: CanaryHome) -> None:
    (canary.workspace / "write.py").write_text(
        f"open({str(canary.home / 'notes' / 'new.txt')!r}, 'w').write('x')\n"
        f"print(open({str(canary.home / '.netrc')!r}).read())\n"
    )
    (result,) = run_in_mode(canary, "workspace", "python3 write.py", reply="once")
    assert (canary.home / "notes" / "new.txt").exists()
    assert SECRET not in result["output"]


def test_full_mode_does_not_change_startup_files_and_skills(canary: CanaryHome) -> None:
    skill = canary.hermes / "skills" / "s" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("a skill\n")
    (canary.workspace / "link").symlink_to(canary.home)
    before = canary.state()
    (canary.workspace / "write.py").write_text(
        "import sys\nfor name in sys.argv[1:]: open(name, 'a').write('x')\n"
    )
    run_in_mode(canary, "full", "python3 write.py link/.bashrc", f"python3 write.py {skill}")
    assert canary.state() == before
    assert skill.read_text() == "a skill\n"
