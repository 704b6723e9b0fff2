"""`hermes install`, `hermes update`, and the package: on PATH, off it, and newer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_cli.commands.system.install import man_page
from hermes_cli.parser import COMMANDS
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from support.command_line import Hermes

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / ".venv" / "bin" / "uv"


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user whose PATH holds ~/.local/bin."""
    home = tmp_path / "login"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/.local/bin:{os.environ['PATH']}")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "SHELL"):
        monkeypatch.delenv(name, raising=False)
    return home


def files_below(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def test_an_installation_can_be_repeated_and_removed(user_home: Path, hermes: Hermes) -> None:
    first = hermes("install", HERMES_COMMAND="./hermes")
    assert (first.code, first.err) == (0, "")
    link = user_home / ".local/bin/hermes"
    assert link.readlink() == ROOT / "hermes"
    assert files_below(user_home) >= {
        ".local/bin/hermes",
        ".local/share/man/man1/hermes.1",
        ".local/share/bash-completion/completions/hermes",
    }
    assert "./hermes sessions" not in (user_home / ".local/share/man/man1/hermes.1").read_text()
    assert "not on your PATH" not in first.out
    assert hermes("install").out == "Everything is already installed.\n"

    removed = json.loads(hermes("install", "--remove", "--json").out)
    assert str(link) in {each["path"] for each in removed["removed"]}
    assert files_below(user_home) == set()
    assert hermes("install", "--remove").out == "Nothing to remove.\n"


def test_a_program_of_somebody_else_is_neither_replaced_nor_removed(
    user_home: Path, hermes: Hermes
) -> None:
    other = user_home / ".local/bin/hermes"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\n")
    refused = hermes("install")
    assert refused.code == 2
    assert f"{other} exists and belongs to another installation" in refused.err
    assert files_below(user_home) == {".local/bin/hermes"}
    assert hermes("install", "--remove").out == "Nothing to remove.\n"
    assert other.read_text() == "#!/bin/sh\n"


def test_a_folder_outside_of_the_path_comes_with_the_line_to_add(
    user_home: Path, hermes: Hermes
) -> None:
    result = hermes("install", "--dir", str(user_home / "programs"))
    assert f'export PATH="{user_home}/programs:$PATH"' in result.out


def test_the_installed_completion_works_in_bash(user_home: Path, hermes: Hermes) -> None:
    hermes("install")
    script = user_home / ".local/share/bash-completion/completions/hermes"
    call = (
        f"source {script}; COMP_LINE='hermes sess'; COMP_POINT=11; COMP_TYPE=9; "
        '_python_argcomplete hermes; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", call], capture_output=True, check=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.stdout.split() == ["sessions"]


def test_the_manual_page_is_valid_and_names_every_command(tmp_path: Path) -> None:
    page = tmp_path / "hermes.1"
    page.write_text(man_page())
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed: the manual page cannot be formatted")
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-P-cbou", str(page)],
        capture_output=True, check=True, text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.stderr == ""
    headings = {line.strip() for line in done.stdout.splitlines()}
    assert {f"hermes {each.name}" for each in COMMANDS} <= headings


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        capture_output=True, check=True, text=True, timeout=PATIENCE_SECONDS,
    ).stdout  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> tuple[Path, Path]:
    """A repository, and a clone of it that runs."""
    origin = tmp_path / "origin"
    shutil.copytree(ROOT / "src", origin / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "hermes", origin / "hermes")
    git(origin, "init", "--quiet", "--initial-branch=main")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "first")
    git(tmp_path, "clone", "--quiet", str(origin), str(tmp_path / "clone"))
    return origin, tmp_path / "clone"


def update(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hermes_cli", "update", *arguments],
        capture_output=True, check=False, text=True, timeout=PATIENCE_SECONDS, cwd=clone,
        env={**os.environ, "PYTHONPATH": str(clone / "src")},
    )  # fmt: skip


def test_a_checkout_is_updated_unless_it_has_changes_of_its_own(
    checkout: tuple[Path, Path], hermes_home: Path
) -> None:
    origin, clone = checkout
    assert "is up to date" in update(clone).stdout
    (origin / "news").write_text("new")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "store: keep more")

    listed = json.loads(update(clone, "--check", "--json").stdout)
    assert (listed["new"], listed["updated"]) == (["store: keep more"], False)
    assert not (clone / "news").exists()

    launcher = (clone / "hermes").read_text()
    (clone / "hermes").write_text(f"{launcher}# mine\n")
    refused = update(clone)
    assert (refused.returncode, "has uncommitted changes" in refused.stderr) == (1, True)
    assert not (clone / "news").exists()

    (clone / "hermes").write_text(launcher)
    done = update(clone)
    assert "Updated: 1 new commit" in done.stdout
    assert (clone / "news").read_text() == "new"

    git(clone, "commit", "--quiet", "--allow-empty", "-m", "own work")
    git(origin, "commit", "--quiet", "--allow-empty", "-m", "other work")
    assert "has commits that origin/main does not have" in update(clone).stderr


def test_an_update_rewrites_a_service_file_of_an_older_release(
    checkout: tuple[Path, Path], hermes_home: Path
) -> None:
    _, clone = checkout
    path = Path.home() / ".config/systemd/user/hermes-gateway.service"
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/opt/python -P -m gateway.process\n")
    assert "gateway.process" in path.read_text()
    assert "Rewrote" not in update(clone, "--check").stderr
    assert f"Rewrote {path}" in update(clone).stderr
    assert f"ExecStart={clone}/hermes gateway run" in path.read_text()


def test_a_checkout_without_its_origin_says_so(
    checkout: tuple[Path, Path], hermes_home: Path
) -> None:
    origin, clone = checkout
    shutil.rmtree(origin)
    failed = update(clone)
    assert (failed.returncode, "git fetch failed" in failed.stderr) == (1, True)


def test_a_package_needs_neither_npm_nor_a_compiler(tmp_path: Path, hermes_home: Path) -> None:
    subprocess.run(
        [UV, "build", "--quiet", "--wheel", "-o", tmp_path, ROOT],
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    (wheel,) = tmp_path.glob("*.whl")
    folders = {
        "UV_TOOL_DIR": str(tmp_path / "uv" / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
    }
    lock = ROOT / "requirements" / "runtime.lock"
    subprocess.run(
        [UV, "tool", "install", "--quiet", "--python", sys.executable, "--no-build",
         "--constraints", lock, wheel],
        check=True, timeout=PATIENCE_SECONDS, env={**os.environ, **folders},
    )  # fmt: skip
    program = tmp_path / "bin" / "hermes"
    variables = {**os.environ, "PATH": "/usr/bin:/bin", "HERMES_HOME": str(hermes_home)}
    listed = subprocess.run(
        [program, "plugins", "list", "--json"],
        capture_output=True, check=True, text=True, timeout=PATIENCE_SECONDS, env=variables,
        cwd=tmp_path,
    )  # fmt: skip
    assert "irc" in listed.stdout
    find_page = "from hermes_dashboard.page import Page; print(Page.locate().folder)"
    python = tmp_path / "uv/tools/hermes-sessions/bin/python"
    page = subprocess.run(
        [python, "-I", "-c", find_page],
        capture_output=True,
        check=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    index = Path(page.stdout.strip()) / "index.html"
    assert index.is_relative_to(tmp_path)
    assert "assets/" in index.read_text()
    advice = subprocess.run(
        [program, "update"],
        capture_output=True, check=False, text=True, timeout=PATIENCE_SECONDS, env=variables,
    )  # fmt: skip
    assert advice.returncode == 2
    assert "uv tool install --force FILE.whl" in advice.stderr
    assert "hermes-sessions" not in advice.stderr  # a name that others could register
