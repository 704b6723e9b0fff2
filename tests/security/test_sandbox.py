"""What a command can do in each mode, checked by the files and connections that result."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.permissions.grants import Grants
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.tools.jobs import Jobs
from hermes_core.config.file import ConfigFile
from security.conftest import SECRET, START_UP_FILE, CanaryHome, needs_bubblewrap, run_in_mode
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from hermes_agent.tools.jobs import CommandJob

pytestmark = needs_bubblewrap
MODES = ("plan", "workspace", "full")


def test_this_machine_has_a_sandbox() -> None:
    assert find_sandbox().name == "bubblewrap"


@pytest.mark.parametrize("mode", MODES)
def test_no_command_reads_a_secret(canary: CanaryHome, mode: str) -> None:
    commands = [
        *(f"cat {path}" for path in canary.secrets),
        "cat ~/.hermes/.env ~/.ssh/*; true",
        "ln -s ~/.ssh link; cat link/*; true",
        "tar cf - ~/.hermes ~/.ssh 2>/dev/null | strings; true",
        'python3 -c "import glob,os;print([open(f).read() for f in '
        "glob.glob(os.path.expanduser('~/.ssh/*'))])\"",
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n'; true",
        "env",
    ]
    for result in run_in_mode(canary, mode, *commands, reply="once"):
        assert SECRET not in result.get("output", ""), result


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".codex/auth.json", SECRET),
        (".cache/huggingface/token", SECRET),
        (".local/share/fish/fish_history", SECRET),
        (".gradle/gradle.properties", f"nexusPassword={SECRET}"),
    ],
)
def test_a_credential_of_a_known_program_is_hidden(
    canary: CanaryHome, name: str, text: str
) -> None:
    (canary.home / name).parent.mkdir(parents=True)
    (canary.home / name).write_text(text)
    (result,) = run_in_mode(canary, "workspace", f"cat ~/{name}")
    assert SECRET not in result["output"]


@pytest.mark.parametrize("mode", MODES)
def test_a_program_cannot_unmount_what_hides_a_secret(canary: CanaryHome, mode: str) -> None:
    script = canary.workspace / "unmount.sh"
    script.write_text(
        "for d in ~/.ssh ~/.hermes; do umount -l $d; mount --move $d /mnt; cat $d/*; done\n"
        "unshare -Urm sh -c 'umount -l ~/.ssh; cat ~/.ssh/id*'\n"
    )
    (result,) = run_in_mode(canary, mode, "sh unmount.sh")
    assert SECRET not in result["output"]


def test_a_program_that_a_command_wrote_does_not_run_outside_the_sandbox(
    canary: CanaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PATH begins with a folder of the project, as in an activated virtual environment."""
    ConfigFile.of_home().set("agent.approvals", "workspace")
    programs = canary.workspace / ".venv" / "bin"
    programs.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    (canary.workspace / "plant.sh").write_text(
        "for p in bwrap nsenter git rg sh sleep true; do\n"
        "printf '#!/bin/sh\\n: > ~/notes/%s; exec /usr/bin/%s \"$@\"\\n' $p $p > .venv/bin/$p\n"
        "chmod +x .venv/bin/$p; done\n"
    )
    steps = [
        tool_call_step("terminal", {"command": "sh plant.sh"}),
        tool_call_step("terminal", {"command": "git config user.name x; true"}),
        tool_call_step("search_files", {"pattern": "x"}),
        tool_call_step("terminal", {"command": "ls"}),
    ]
    before = canary.state()
    for _ in range(2):  # the second one starts with the planted programs
        with open_conversation(canary.workspace, *steps) as agent:
            agent.results()
    assert (programs / "bwrap").exists()
    assert canary.state() == before


def test_a_browser_of_the_project_does_not_open_the_dashboard(
    canary: CanaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = canary.workspace / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("xdg-open", "open", "firefox", "www-browser", "w3m"):
        (programs / name).write_text(f"#!/bin/sh\n: > {canary.home}/notes/{name}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("BROWSER", raising=False)
    before = canary.state()
    opening = (
        "import types; from hermes_cli.commands.dashboard.links import open_browser; "
        "open_browser('http://127.0.0.1:9/', types.SimpleNamespace(note=print))"
    )
    subprocess.run([sys.executable, "-P", "-c", opening], check=True)
    assert canary.state() == before


@pytest.mark.parametrize("mode", MODES)
def test_settings_of_the_kernel_cannot_be_written(canary: CanaryHome, mode: str) -> None:
    """A program that the kernel starts, such as core_pattern, runs outside of every sandbox."""
    (canary.workspace / "setting.sh").write_text(
        "f=/proc/sys/kernel/core_pattern; v=$(cat $f); echo $v > $f && echo written\n"
    )
    (result,) = run_in_mode(canary, mode, "sh setting.sh")
    assert "written" not in result["output"]


@pytest.mark.parametrize("mode", ["plan", "workspace"])
@pytest.mark.parametrize(
    "command",
    [
        "echo x >> ~/.bashrc",
        "dd if=/dev/zero of=$HOME/.bashrc bs=1 count=1",
        "ln -s ~ h && echo x >> h/.bashrc",
        "python3 -c \"open(__import__('os').path.expanduser('~/.bashrc'),'a').write('x')\"",
        "git archive -o ~/notes/x.tar HEAD",
        "rm -rf ~/notes",
        "find ~/notes -type f -name '*' -exec rm {} +",
        "chmod 777 ~/notes/diary.txt",
        "touch -d 2001-01-01 ~/notes/diary.txt; echo x > ~/notes/diary.txt",
        "mv ~/notes/diary.txt ~/notes/other.txt",
        "test -v 'a[$(touch ~/f)]'; true",
        "[[ 'a[$(touch ~/f)]' -eq 0 ]]; true",
        "x='$(touch ~/f)'; echo ${x@P}",
        "jobs -x touch ~/f",
        "sort --outp=$HOME/f /etc/passwd",
        "nohup sh -c 'sleep 0.2; touch ~/late' >/dev/null 2>&1 &",
        "setsid touch ~/f",
    ],
)
def test_no_command_changes_a_file_outside_the_folder(
    canary: CanaryHome, mode: str, command: str
) -> None:
    before = canary.state()
    run_in_mode(canary, mode, command)
    assert canary.state() == before
    assert (canary.home / ".bashrc").read_text() == START_UP_FILE


def test_plan_mode_writes_only_temporary_files(canary: CanaryHome) -> None:
    (canary.workspace / "a.txt").write_text("a\n")
    results = run_in_mode(
        canary,
        "plan",
        "python3 -c \"open('new.txt','w').write('x')\"",
        "sed --in-place s/a/b/ a.txt",
        "f=$(mktemp) && echo kept > $f && cat $f",
        "cat a.txt",
    )
    assert sorted(path.name for path in canary.workspace.iterdir()) == [".git", "a.txt"]
    assert (canary.workspace / "a.txt").read_text() == "a\n"
    assert results[2]["output"] == "kept\n"
    assert results[3]["output"] == "a\n"


def test_an_existing_temporary_file_is_changed_after_approval_only(
    canary: CanaryHome, tmp_path: Path
) -> None:
    victim = tmp_path / "of-the-user"
    victim.write_text("kept")
    assert victim.is_relative_to("/tmp")
    (denied,) = run_in_mode(canary, "workspace", f"rm -f {victim}")
    assert "denied" in denied["error"]
    assert victim.exists()
    (allowed,) = run_in_mode(canary, "workspace", f"rm -f {victim}", reply="once")
    assert allowed["exit_code"] == 0
    assert not victim.exists()


@pytest.mark.parametrize("mode", ["plan", "workspace"])
def test_temporary_files_need_no_approval(canary: CanaryHome, mode: str) -> None:
    ConfigFile.of_home().set("agent.approvals", mode)
    new = f"/tmp/hermes-{os.urandom(8).hex()}"
    command = f"cat > {new}.sh <<'E'\necho ran > {new}\nE\nsh {new}.sh; cat {new}"
    step = tool_call_step("terminal", {"command": command})
    with open_conversation(canary.workspace, step) as agent:
        (result,) = agent.results()
        assert agent.prompter.requests == []
    assert result["output"] == "ran\n"
    assert not Path(new).exists()


def test_workspace_mode_works_in_its_folder_and_in_git(canary: CanaryHome) -> None:
    results = run_in_mode(
        canary,
        "workspace",
        "echo hello > new.txt",
        "git add new.txt && git -c user.name=A -c user.email=a@b.c commit -qm first",
        "git log --format=%s",
        "git init -q ../project/inner && git clone -q . copy && ls copy",
    )
    assert [result["exit_code"] for result in results] == [0, 0, 0, 0], results
    assert results[2]["output"] == "first\n"
    assert results[3]["output"] == "new.txt\n"


@pytest.mark.parametrize(
    "files",
    [
        {".git": "gitdir: ../notes"},
        {".git": "gitdir: fake", "fake/HEAD": "", "fake/commondir": "../../notes"},
        {
            ".git": "gitdir: a/worktrees/b",
            "a/worktrees/b/HEAD": "",
            "a/worktrees/b/gitdir": "../../../.git",
            "a/worktrees/b/commondir": "../../../../notes",
        },
        {".git": "gitdir: ../other/.git"},
    ],
)
def test_a_git_file_that_names_another_folder_does_not_make_it_writable(
    canary: CanaryHome, files: dict[str, str]
) -> None:
    subprocess.run(["git", "init", "-q", canary.home / "other"], check=True)
    shutil.rmtree(canary.workspace / ".git")
    for name, text in files.items():
        (canary.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (canary.workspace / name).write_text(f"{text}\n")
    script = (
        "for f in ('../notes/new', '../other/.git/new'):\n try: open(f, 'w')\n except OSError: pass"
    )
    (canary.workspace / "write.py").write_text(script)
    before = canary.state()
    run_in_mode(canary, "workspace", "python3 write.py")
    assert canary.state() == before


def test_a_git_link_to_another_folder_does_not_make_it_writable(canary: CanaryHome) -> None:
    shutil.rmtree(canary.workspace / ".git")
    (canary.workspace / "write.py").write_text("open('../notes/new', 'w')\n")
    (canary.workspace / "link.sh").write_text("ln -s ../notes .git\n")  # by name it is asked for
    before = canary.state()
    run_in_mode(canary, "workspace", "sh link.sh", "python3 write.py")
    assert (canary.workspace / ".git").is_symlink()
    assert canary.state() == before


def test_what_was_denied_is_allowed_for_its_folder_alone(canary: CanaryHome) -> None:
    (canary.home / "other").mkdir()
    (canary.workspace / "write.py").write_text(
        "import os\n"
        "open(os.path.expanduser('~/notes/new'), 'w')\n"
        "open(os.path.expanduser('~/other/new'), 'w')\n"
    )
    (result,) = run_in_mode(canary, "workspace", "python3 write.py", reply="once")
    assert (canary.home / "notes" / "new").exists()
    assert not (canary.home / "other" / "new").exists()
    assert result["exit_code"] != 0


@pytest.mark.parametrize("path", ["../notes/new", "link/new", "{home}/notes/missing/new"])
def test_an_approval_names_the_folder_that_it_opens(canary: CanaryHome, path: str) -> None:
    ConfigFile.of_home().set("agent.approvals", "workspace")
    (canary.home / "other").mkdir()
    (canary.workspace / "link").symlink_to(canary.home / "notes")
    path = path.replace("{home}", str(canary.home))
    (canary.workspace / "write.sh").write_text(
        f"mkdir -p $(dirname {path}); touch {path}; touch ../other/new; touch ../new; false\n"
    )
    step = tool_call_step("terminal", {"command": "sh write.sh"})
    with open_conversation(canary.workspace, step, reply="once") as agent:
        agent.results()
        (request,) = agent.prompter.requests
    assert request.description.startswith(f"Writes outside the working folder: {canary.home}/notes")
    assert request.description.endswith(f" (allows {canary.home}/notes)")
    assert (canary.workspace / path).exists()
    assert not (canary.home / "other" / "new").exists()
    assert not (canary.home / "new").exists()


@pytest.mark.parametrize(
    ("mode", "path"),
    [("full", ".bash_profile"), ("full", ".config/fish/config.fish"), ("workspace", ".zshenv")],
)
def test_a_start_up_file_that_did_not_exist_is_not_created(
    canary: CanaryHome, mode: str, path: str
) -> None:
    """In full mode, and after an approval to write another file of the home folder."""
    (canary.workspace / "write.sh").write_text(
        f"set -e; touch ~/new; mkdir -p $(dirname ~/{path}); echo x > ~/{path}\n"
    )
    (result,) = run_in_mode(canary, mode, "sh write.sh", reply="once")
    assert (canary.home / "new").exists()
    assert not (canary.home / path).exists(), result
    assert "restored" in result["sandbox"]


def test_the_end_of_another_command_does_not_unprotect_start_up_files(
    canary: CanaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands of one answer run in parallel: one may end while the next one starts."""
    start = Jobs.start

    def start_while_another_ends(jobs: Jobs, *arguments: Any) -> CommandJob:
        another = threading.Thread(target=jobs.restore_files)
        another.start()
        another.join(timeout=0.5)
        return start(jobs, *arguments)

    monkeypatch.setattr(Jobs, "start", start_while_another_ends)
    (canary.workspace / "write.sh").write_text("touch ~/.zprofile\n")
    (result,) = run_in_mode(canary, "full", "sh write.sh")
    assert not (canary.home / ".zprofile").exists(), result


def test_a_link_in_place_of_a_settings_folder_plants_no_start_up_file(canary: CanaryHome) -> None:
    (canary.workspace / "link.sh").write_text("ln -s ~/project ~/.config\n")
    run_in_mode(canary, "full", "sh link.sh")
    assert not (canary.home / ".config").exists()
    (canary.workspace / "fish").mkdir()
    (canary.workspace / "fish" / "config.fish").write_text("x")
    run_in_mode(canary, "full", "sh link.sh")
    assert not (canary.home / ".config").exists()
    assert (canary.workspace / "fish" / "config.fish").exists()


def test_what_no_approval_opens_is_not_offered(canary: CanaryHome) -> None:
    ConfigFile.of_home().set("agent.approvals", "workspace")
    (canary.workspace / "write.sh").write_text("echo x >> ~/.bashrc\n")
    step = tool_call_step("terminal", {"command": "sh write.sh"})
    with open_conversation(canary.workspace, step, reply="once") as agent:
        agent.results()
        assert agent.prompter.requests == []
    assert (canary.home / ".bashrc").read_text() == START_UP_FILE


def test_a_rule_for_a_command_does_not_lift_its_limits(canary: CanaryHome) -> None:
    (canary.workspace / "write.py").write_text(
        "import os\nopen(os.path.expanduser('~/notes/new'), 'w')\n"
    )
    for rule in ("run: python3 write.py", "run: python3 *"):
        Grants(canary.hermes / "approvals.json").add([rule])
    run_in_mode(canary, "workspace", "python3 write.py", reply="deny")
    assert not (canary.home / "notes" / "new").exists()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("pip install ./none", "pip install ./none; python3 reach.py"),
        ("systemctl restart none", "systemctl restart other; python3 reach.py"),
        ("crontab -r", "crontab none; python3 reach.py"),
        ("touch .git/x", "touch .git/y; python3 reach.py"),
        ("apt-get install none", "apt-get install other; python3 reach.py"),
    ],
)
def test_a_grant_for_a_session_lifts_no_limit_of_another_command(
    canary: CanaryHome, first: str, second: str
) -> None:
    ConfigFile.of_home().set("agent.approvals", "workspace")
    (canary.workspace / "reach.py").write_text(
        "import os\n"
        "open(os.path.expanduser('~/notes/new'), 'w')\n"
        "print(open(os.path.expanduser('~/.hermes/.env')).read())\n"
    )
    steps = [tool_call_step("terminal", {"command": command}) for command in (first, second)]
    with open_conversation(canary.workspace, *steps, reply="session") as agent:
        agent.prompter.replies = ["session", "deny"]
        results = agent.results()
        assert [request.command for request in agent.prompter.requests] == [first, second]
    assert not (canary.home / "notes" / "new").exists()
    assert SECRET not in str(results)


def test_a_worktree_and_a_submodule_can_be_committed_to(canary: CanaryHome) -> None:
    def git(*arguments: str, folder: str) -> None:
        names = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
        command = ["git", "-C", str(canary.home / folder), *names, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    git("commit", "--allow-empty", "-qm", "first", folder="project")
    git("worktree", "add", "-q", "../tree", folder="project")
    (canary.home / "super").mkdir()
    git("init", "-q", folder="super")
    git("submodule", "add", "-q", str(canary.workspace), "sub", folder="super")
    commit = "git -c user.name=A -c user.email=a@b.c commit --allow-empty -qm second"
    for folder in ("tree", "super/sub"):
        canary.workspace = canary.home / folder
        (result,) = run_in_mode(canary, "workspace", commit)
        assert result["exit_code"] == 0, result


def test_hooks_of_the_repository_are_not_written(canary: CanaryHome) -> None:
    hook = canary.workspace / ".git" / "hooks" / "pre-commit"
    run_in_mode(canary, "workspace", f"printf '#!/bin/sh\\n' | tee {hook}; chmod +x {hook}")
    assert not hook.exists()


def test_a_command_that_ran_into_the_sandbox_is_offered_again(canary: CanaryHome) -> None:
    script = "import os; open(os.path.expanduser('~/notes/new.txt'), 'w')"
    (canary.workspace / "script.py").write_text(script)
    command = "python3 script.py"
    (denied,) = run_in_mode(canary, "workspace", command, reply="deny")
    assert denied["exit_code"] != 0
    assert "writes outside the working folder" in denied["sandbox"]
    assert str(canary.home / "notes" / "new.txt") in denied["sandbox"]
    (allowed,) = run_in_mode(canary, "workspace", command, reply="once")
    assert allowed["exit_code"] == 0
    assert (canary.home / "notes" / "new.txt").exists()


def test_a_unix_socket_of_a_service_is_out_of_reach(canary: CanaryHome) -> None:
    path = canary.home / "docker.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        (result,) = run_in_mode(
            canary,
            "workspace",
            f"python3 -c \"import socket;socket.socket(socket.AF_UNIX).connect('{path}')\"",
        )
    assert result["exit_code"] != 0
    assert "Permission denied" in result["output"]


def test_a_process_outside_the_sandbox_is_not_reached(canary: CanaryHome, tmp_path: Path) -> None:
    del tmp_path
    (result,) = run_in_mode(canary, "workspace", "ls -d /proc/[0-9]* | wc -l")
    assert int(result["output"]) < 10


def test_a_command_that_ended_is_not_reported_as_running(canary: CanaryHome) -> None:
    results = run_in_mode(
        canary, "workspace", *(f"git status --short; echo {number}" for number in range(15))
    )
    assert [result for result in results if "still_running" in result] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_project_in_tmp_can_be_read_in_every_mode(
    tmp_path: Path, mode: str, hermes_home: Path
) -> None:
    """The sandbox shows another /tmp; the Hermes folder below it stays hidden."""
    (tmp_path / "a.txt").write_text("hello\n")
    (hermes_home / ".env").write_text(SECRET)
    ConfigFile.of_home().set("agent.approvals", mode)
    commands = ["cat a.txt", f"cat {hermes_home}/.env"]
    steps = [tool_call_step("terminal", {"command": command}) for command in commands]
    with open_conversation(tmp_path, *steps, reply="once") as agent:
        read, hidden = agent.results()
    assert read["output"] == "hello\n", read
    assert SECRET not in hidden.get("output", "")
