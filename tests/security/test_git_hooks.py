"""Commands cannot plant code that git runs for the user later."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile
from security.conftest import run_in_mode
from support.agent_conversation import open_conversation, tool_call_step
from support.waiting import wait_until

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
    "swap",
    [
        "os.rename('.git/hooks', '.git/h'); os.symlink(TARGET, '.git/hooks')",
        "os.rename('.git', 'git'); os.mkdir('.git'); os.symlink(TARGET, '.git/hooks')",
        "os.chdir('..'); os.makedirs('new/.git'); os.symlink(TARGET, 'new/.git/hooks'); "
        "os.rename('inner', 'old'); os.rename('new', 'inner')",
        "os.chdir('..'); os.rename('inner', 'old'); os.makedirs('x/.git'); "
        "os.symlink(TARGET, 'x/.git/hooks'); os.symlink('x', 'inner')",
        "os.rename('.git', 'git'); os.makedirs('x'); os.symlink(TARGET, 'x/hooks'); "
        "os.symlink('x', '.git')",
    ],
)
def test_hooks_are_not_restored_through_a_link_of_a_command(
    canary: CanaryHome, nested: Path, swap: str
) -> None:
    """Restoring happens outside of the sandbox: it must write nothing elsewhere."""
    (nested / ".git" / "hooks" / "authorized_keys").write_text("evil")
    target = canary.home / ".ssh"
    before = {path.name: path.read_text() for path in target.iterdir()}
    program = f"import os; TARGET = {str(target)!r}; os.chdir('libs/inner'); {swap}"
    (canary.workspace / "run.py").write_text(program)
    (result,) = run_in_mode(canary, "workspace", "python3 run.py")
    assert result["exit_code"] == 0, result
    assert {path.name: path.read_text() for path in target.iterdir()} == before


@pytest.mark.parametrize(
    "setting",
    ["core.hooksPath x", "core.fsmonitor ./evil", "core.pager 'sh -c id'", "alias.st '!touch ~/f'",
     "core.sshCommand ./evil", "diff.external ./evil", "filter.x.smudge ./evil",
     "include.path /tmp/x", "credential.helper ./evil", "tar.x.command ./evil",
     "gc.recentObjectsHook ./evil", "core.alternateRefsCommand ./evil",
     "gpg.ssh.defaultKeyCommand ./evil", "sendemail.tocmd ./evil", "hook.x.command ./evil",
     "url.https://evil.example/.pushInsteadOf https://"],
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


PLANT = "mkdir -p evil/hooks && cp hook evil/hooks/pre-commit && chmod +x evil/hooks/pre-commit"
POINT = "(cat .git/config; printf '[core]\\n\\thooksPath = evil/hooks\\n') > evil/config"
WAYS_TO_PLANT = {
    "a common directory": "echo ../evil > .git/commondir; cp -r .git/[!h]* evil",
    "a file in place of the git directory": "cp -r .git/[!h]* evil; mv .git old; "
    "echo gitdir: evil > .git",
    "a link in place of the git directory": "cp -r .git/[!h]* evil; mv .git old; ln -s evil .git",
    "a link in place of the configuration": f"{POINT}; ln -sf ../evil/config .git/config",
    "a large configuration": f"{POINT}; (cat evil/config; yes '#' | head -c 1100000) > .git/config",
    "a byte order mark": "printf '\\357\\273\\277[core]\\nhooksPath=evil/hooks\\n' > c; "
    "cat .git/config >> c; cp c .git/config",
    "a comment that ends with a backslash": "printf '[a]\\n# \\\\\\n[core]\\n"
    "hooksPath=evil/hooks\\n' >> .git/config",
    "a hooks folder that is a link": "cp -r .git new; mv .git old; mv new .git; rm -r .git/hooks; "
    "ln -s ../evil/hooks .git/hooks",
    "a git directory that is brought back": "mkdir t; mv .git t/.git; cp -r t/.git .git; "
    "cp hook .git/hooks/pre-commit",
    "a read-only folder of hooks": "cp -r .git new; mv .git old; mv new .git; "
    "cp hook .git/hooks/pre-commit; chmod 500 .git/hooks .git",
    "a folder in the way of the restored file": "cp -r .git new; mv .git old; mv new .git; "
    "cp hook .git/hooks/pre-commit; mkdir -p .git/hooks/pre-commit.reverted/x",
}


def commit(repository: Path) -> None:
    author = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    git(repository, *author, "commit", "-q", "--allow-empty", "-m", "change")


def plant(canary: CanaryHome, script: str) -> None:
    (canary.workspace / "hook").write_text(HOOK)
    (canary.workspace / "hook").chmod(0o755)
    (canary.workspace / "plant.sh").write_text(f"{PLANT}; {script}\n")


@pytest.mark.parametrize("way", WAYS_TO_PLANT)
def test_no_hook_is_planted_by(canary: CanaryHome, way: str) -> None:
    plant(canary, WAYS_TO_PLANT[way])
    (result,) = run_in_mode(canary, "workspace", "sh plant.sh")
    commit(canary.workspace)
    assert not (canary.home / "planted").exists(), result


def test_a_hook_is_not_planted_in_two_steps(canary: CanaryHome) -> None:
    plant(canary, "cp -r .git/[!h]* evil; rm evil/hooks/*; mv .git old; echo gitdir: evil > .git")
    run_in_mode(canary, "workspace", "sh plant.sh", "true")
    (canary.workspace / "plant.sh").write_text("cp hook evil/hooks/pre-commit")
    run_in_mode(canary, "workspace", "sh plant.sh")
    commit(canary.workspace)
    assert not (canary.home / "planted").exists()


def test_no_hook_is_planted_in_a_git_directory_that_is_away(canary: CanaryHome) -> None:
    plant(canary, "mkdir away; mv .git away")
    script = "cp hook away/.git/hooks/pre-commit; mv away/.git .git"
    (canary.workspace / "back.sh").write_text(script)
    run_in_mode(canary, "workspace", "sh plant.sh", "sh back.sh")
    commit(canary.workspace)
    assert git(canary.workspace, "log", "--format=%s") == "change"
    assert not (canary.home / "planted").exists()


def test_no_hook_is_planted_by_a_command_that_was_allowed_more(canary: CanaryHome) -> None:
    plant(canary, "touch ~/notes/new && git config core.hooksPath evil/hooks; echo x > ~/notes/new")
    (result,) = run_in_mode(canary, "workspace", "sh plant.sh", reply="once")
    assert (canary.home / "notes" / "new").exists()
    assert "restored" in result["sandbox"]
    commit(canary.workspace)
    assert not (canary.home / "planted").exists()


def test_many_folders_hide_no_repository(canary: CanaryHome) -> None:
    for number in range(20):
        (canary.workspace / f"a{number:02}").mkdir()
        for inner in range(40):
            (canary.workspace / f"a{number:02}" / str(inner)).mkdir()
    repositories = [canary.workspace / f"z{number}" for number in range(20)]
    for repository in repositories:
        repository.mkdir()
        git(repository, "init", "-q")
    plant(canary, "for r in z*; do cp hook $r/.git/hooks/pre-commit; done")
    run_in_mode(canary, "workspace", "sh plant.sh")
    assert [hooks_of(repository) for repository in repositories] == [[]] * 20


def test_no_hook_of_a_submodule_is_planted_from_outside(canary: CanaryHome) -> None:
    commit(canary.workspace)
    outer = canary.home / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    add = ["submodule", "add", "-q", str(canary.workspace), "sub"]
    git(outer, "-c", "protocol.file.allow=always", *add)
    canary.workspace = outer
    plant(canary, "mkdir -p .git/modules/sub/hooks; cp hook .git/modules/sub/hooks/pre-commit")
    run_in_mode(canary, "workspace", "sh plant.sh")
    commit(outer / "sub")
    assert not (canary.home / "planted").exists()


def test_a_hook_of_a_background_job_that_has_ended_is_removed_by_the_next_command(
    canary: CanaryHome,
) -> None:
    ConfigFile.of_home().set("agent.approvals", "workspace")
    plant(canary, "git config core.hooksPath evil/hooks")
    with open_conversation(
        canary.workspace,
        tool_call_step("terminal", {"command": "sh plant.sh", "background": True}),
        {"say": "Started."},
        tool_call_step("terminal", {"command": "true"}),
    ) as agent:
        agent.results()
        wait_until(lambda: "hooksPath" in (canary.workspace / ".git" / "config").read_text())
        wait_until(lambda: not any(job.is_running for job in agent.bundle.jobs.all()))
        agent.results()
        commit(canary.workspace)
    assert not (canary.home / "planted").exists()


def test_restoring_hooks_writes_nothing_outside_of_the_repository(
    canary: CanaryHome, nested: Path
) -> None:
    (nested / ".git" / "hooks" / "authorized_keys").write_text("a key")
    script = "rm -rf libs/inner/.git/hooks; ln -s ~/notes libs/inner/.git/hooks"
    (canary.workspace / "link.sh").write_text(script)
    before = canary.state()
    run_in_mode(canary, "workspace", "sh link.sh")
    assert canary.state() == before
    assert (nested / ".git" / "hooks" / "authorized_keys").read_text() == "a key"


@pytest.mark.parametrize("command", ["git submodule absorbgitdirs", "git worktree add -q tree"])
def test_git_may_move_its_own_directories(canary: CanaryHome, nested: Path, command: str) -> None:
    commit(canary.workspace)
    commit(nested)
    git(canary.workspace, "-c", "advice.addEmbeddedRepo=false", "add", "libs/inner")
    modules = '[submodule "libs/inner"]\n\tpath = libs/inner\n\turl = ./libs/inner\n'
    (canary.workspace / ".gitmodules").write_text(modules)
    (result,) = run_in_mode(canary, "workspace", command)
    assert (result["exit_code"], result.get("sandbox")) == (0, None), result
    assert git(nested, "log", "--format=%s") == "change"


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
