"""Commands cannot plant code that git runs for the user later."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile
from security.conftest import run_in_mode
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from pathlib import Path

    from security.conftest import CanaryHome

HOOK = "#!/bin/sh\ntouch ~/planted\n"


def hooks_of(repository: Path) -> list[str]:
    folder = repository / ".git" / "hooks"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(name for name in names if not name.endswith((".sample", ".reverted")))


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


@pytest.fixture
def nested(canary: CanaryHome) -> Path:
    folder = canary.workspace / "libs" / "inner"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    return folder


@pytest.mark.parametrize("mode", ["workspace", "full"])
@pytest.mark.parametrize(
    "command",
    [
        "printf '#!/bin/sh\\ntrue' > libs/inner/.git/hooks/pre-commit",
        "python3 -c \"open('libs/inner/.git/hooks/pre-push','w').write('x')\"",
        "cp /bin/true libs/inner/.git/hooks/post-checkout",
        "ln -s /bin/true libs/inner/.git/hooks/pre-commit",
        "cd libs/inner && python3 -c \"import os;os.rename('.git/hooks','.git/h');"
        "os.mkdir('.git/hooks');open('.git/hooks/pre-commit','w')\"",
    ],
)
def test_hooks_of_a_nested_repository_stay_as_they_are(
    canary: CanaryHome, nested: Path, mode: str, command: str
) -> None:
    (result,) = run_in_mode(canary, mode, command)
    assert hooks_of(nested) == [], result


def test_a_hooks_folder_that_did_not_exist_stays_without_hooks(canary: CanaryHome) -> None:
    hooks = canary.workspace / ".git" / "hooks"
    for path in hooks.iterdir():
        path.unlink()
    hooks.rmdir()
    program = "import os;os.makedirs('.git/hooks');open('.git/hooks/pre-commit','w').write('x')"
    (canary.workspace / "run.py").write_text(program)
    (result,) = run_in_mode(canary, "workspace", "python3 run.py")
    assert hooks_of(canary.workspace) == []
    assert "restored" in result["sandbox"]


@pytest.mark.parametrize(
    "setting",
    ["core.hooksPath x", "core.fsmonitor ./evil", "core.pager 'sh -c id'", "alias.st '!touch ~/f'",
     "core.sshCommand ./evil", "diff.external ./evil", "filter.x.smudge ./evil",
     "include.path /tmp/x", "credential.helper ./evil"],
)  # fmt: skip
def test_settings_that_run_programs_are_restored(canary: CanaryHome, setting: str) -> None:
    name = setting.split(maxsplit=1)[0]
    program = f"import subprocess;subprocess.run('git config {setting}', shell=True)"
    (canary.workspace / "run.py").write_text(program)
    run_in_mode(canary, "workspace", f"git config {setting}", "python3 run.py")
    assert git(canary.workspace, "config", "--get", name) == ""


def test_a_setting_without_a_program_is_kept(canary: CanaryHome) -> None:
    results = run_in_mode(
        canary,
        "workspace",
        "git config user.name Somebody && git remote add origin https://example.org/x.git",
    )
    assert results[0]["exit_code"] == 0
    assert git(canary.workspace, "config", "--get", "user.name") == "Somebody"
    assert "sandbox" not in results[0]


def test_the_hooks_of_the_user_come_back(canary: CanaryHome, nested: Path) -> None:
    hook = nested / ".git" / "hooks" / "pre-commit"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    (canary.workspace / "run.py").write_text(f"open('{hook}','w').write('evil')")
    run_in_mode(canary, "workspace", "python3 run.py")
    assert hook.read_text() == HOOK
    assert hook.stat().st_mode & 0o111
    assert hook.with_name("pre-commit.reverted").read_text() == "evil"


def test_init_and_clone_work(canary: CanaryHome) -> None:
    results = run_in_mode(
        canary,
        "workspace",
        "git init -q fresh && ls fresh/.git/hooks | wc -l",
        "git -c user.name=A -c user.email=a@b.c commit -q --allow-empty -m x && git clone -q . copy"
        " && ls -d copy/.git",
    )
    assert [result["exit_code"] for result in results] == [0, 0], results


def test_a_hook_of_a_background_job_is_gone_when_the_conversation_ends(
    canary: CanaryHome, nested: Path
) -> None:
    ConfigFile.of_home().set("agent.approvals", "workspace")
    late = "sleep 0.5; echo evil > libs/inner/.git/hooks/pre-commit; sleep 60"
    steps = [
        tool_call_step("terminal", {"command": f"sh -c '{late}'", "background": True}),
        tool_call_step("terminal", {"command": "sleep 1"}),
    ]
    with open_conversation(canary.workspace, *steps) as agent:
        agent.results()
    assert hooks_of(nested) == []


def test_in_the_home_folder_no_start_up_file_can_be_created(canary: CanaryHome) -> None:
    ConfigFile.of_home().set("agent.approvals", "workspace")
    commands = [
        "python3 -c \"open('.zshrc','w').write('x')\"",
        "python3 -c \"import os;os.makedirs('.config/fish');open('.config/fish/config.fish','w')\"",
        "python3 -c \"open('.bashrc','a').write('x')\"",
        "echo more >> notes/diary.txt",
        "ls",
    ]
    steps = [tool_call_step("terminal", {"command": command}) for command in commands]
    with open_conversation(canary.home, *steps) as agent:
        results = agent.results()
    assert not (canary.home / ".zshrc").exists()
    assert not (canary.home / ".config").exists()
    assert "x" not in (canary.home / ".bashrc").read_text().splitlines()
    assert (canary.home / "notes" / "diary.txt").read_text().endswith("more\n")
    assert results[-1]["exit_code"] == 0
