"""The launcher `./hermes`: real copies of the tree, real setups."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pexpect
import pytest

from acceptance.campaign import IS_FULL
from hermes_core import __version__
from support.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"hermes {__version__}\n"
UV_ON_PATH = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
WITHOUT_UV = os.pathsep.join(
    folder
    for folder in os.environ["PATH"].split(os.pathsep)
    if not (Path(folder) / "uv").exists() and folder != str(ROOT / ".venv" / "bin")
)


def copy_tree(to: Path) -> Path:
    """A checkout as it is before its first start."""
    to.mkdir(parents=True)
    shutil.copy(ROOT / "hermes", to / "hermes")
    for name in ("tools", "requirements", "src"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    return to


def reduce_requirements(tree: Path) -> Path:
    """Leave one package in the lock file; the long campaigns install all of them."""
    if not IS_FULL:
        lock = tree / "requirements" / "runtime.lock"
        (block,) = re.findall(r"^cronsim==(?:.*\\\n)+.*--hash.*\n", lock.read_text(), re.MULTILINE)
        lock.write_text(block)
    return tree


def start(
    program: Path | str, *arguments: str, path: str = UV_ON_PATH, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *(arguments or ("--version",))],
        capture_output=True,
        check=False,
        text=True,
        cwd=cwd,
        env={**os.environ, "PATH": path},
        timeout=PATIENCE_SECONDS,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree after its first start, in a folder with a space in its name."""
    tree = copy_tree(tmp_path_factory.mktemp("launcher") / "my tree")
    first = start(tree / "hermes")
    assert (first.returncode, first.stdout) == (0, VERSION), first.stderr
    assert re.search(r"Installing \d+ packages", first.stderr)
    assert "\x1b" not in first.stderr
    return tree


@pytest.mark.parametrize(
    ("program", "command"),
    [("./hermes", "./hermes"), ("hermes", "hermes"), ("{tree}/hermes", "'{tree}/hermes'")],
)
def test_hints_name_the_command_as_it_was_typed(
    installed: Path, tmp_path: Path, program: str, command: str
) -> None:
    typed, expected = program.format(tree=installed), command.format(tree=installed)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "hermes").symlink_to(installed / "hermes")
    path = f"{folder}{os.pathsep}{UV_ON_PATH}"
    usage = start(typed, "gateway", "--help", path=path, cwd=installed)
    assert f"usage: {expected} gateway" in usage.stdout
    assert f"\n  {expected} gateway start " in usage.stdout
    status = start(typed, "gateway", "status", path=path, cwd=installed)
    assert f"Start it with `{expected} gateway start`." in status.stdout
    unknown = start(typed, "plugins", "info", "none", path=path, cwd=installed)
    assert f"See `{expected} plugins list`." in unknown.stderr


def test_second_start_installs_nothing(installed: Path) -> None:
    stamp = installed / ".venv" / "installed-runtime.lock"
    before = stamp.stat().st_mtime_ns
    second = start(installed / "hermes")
    assert (second.returncode, second.stdout, second.stderr) == (0, VERSION, "")
    assert stamp.stat().st_mtime_ns == before


def test_starts_through_links_and_from_anywhere(installed: Path, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (tmp_path / "link").symlink_to(installed)
    (bin_folder / "first").symlink_to("../link/hermes")
    (bin_folder / "hermes").symlink_to("first")
    assert start(bin_folder / "hermes", cwd=Path("/")).stdout == VERSION
    assert start("../bin/hermes", cwd=bin_folder).stdout == VERSION
    by_name = f"{bin_folder}{os.pathsep}{UV_ON_PATH}"
    assert start("sh", "-c", "hermes --version", path=by_name).stdout == VERSION
    assert start("sh", "hermes", "--version", cwd=installed).stdout == VERSION


def test_a_start_runs_no_program_that_a_folder_on_path_offers(
    installed: Path, tmp_path: Path
) -> None:
    offered = tmp_path / "offered"
    offered.mkdir()
    for name in ("cmp", "readlink", "cat", "dirname"):
        program = offered / name
        program.write_text(f'#!/bin/sh\n: > "{tmp_path}/ran"\n')
        program.chmod(0o755)
    link = tmp_path / "hermes"
    link.symlink_to(installed / "hermes")
    assert start(link, path=f"{offered}:{os.environ['PATH']}").returncode == 0
    assert not (tmp_path / "ran").exists()


def test_modules_of_the_current_folder_stay_out(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("argparse.py", "hermes_cli.py", "hermes_core.py", "typing.py"):
        (tmp_path / name).write_text("raise SystemExit('shadowed')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert start(installed / "hermes", cwd=tmp_path).stdout == VERSION


def test_arguments_arrive_as_they_are(installed: Path) -> None:
    strange = start(installed / "hermes", "sessions", "a b*", "$HOME")
    assert strange.returncode == 2
    assert "'a b*'" in strange.stderr


def test_a_changed_lock_file_installs_again(installed: Path) -> None:
    lock = installed / "requirements" / "runtime.lock"
    lock.write_text(lock.read_text() + "# changed\n")
    os.utime(lock, (1, 1))  # older than the stamp: only the content differs
    assert "Installing" in start(installed / "hermes").stderr
    assert start(installed / "hermes").stderr == ""


def test_a_moved_tree_still_works(installed: Path) -> None:
    moved = installed.rename(installed.parent / "moved")
    try:
        again = start(moved / "hermes")
        assert (again.stdout, again.stderr) == (VERSION, "")
    finally:
        moved.rename(installed)


@pytest.mark.parametrize("after_seconds", [0.02, 0.15, 0.4])
def test_an_interrupted_setup_starts_again(tmp_path: Path, after_seconds: float) -> None:
    tree = copy_tree(tmp_path / "tree")
    process = subprocess.Popen(
        [tree / "hermes", "--version"],
        env={**os.environ, "PATH": UV_ON_PATH},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(after_seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    again = start(tree / "hermes")
    assert (again.returncode, again.stdout) == (0, VERSION), again.stderr


def test_an_environment_without_a_stamp_is_not_trusted(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree")
    half = tree / ".venv" / "bin"
    half.mkdir(parents=True)
    (half / "python").write_text("#!/bin/sh\nexit 9\n")
    (half / "python").chmod(0o755)
    assert start(tree / "hermes").stdout == VERSION


def test_two_first_starts_at_once(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree")
    pair = [
        subprocess.Popen(
            [tree / "hermes", "--version"],
            env={**os.environ, "PATH": UV_ON_PATH},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ends = [process.communicate(timeout=PATIENCE_SECONDS) for process in pair]
    assert [out for out, _ in ends] == [VERSION, VERSION]
    assert sum("Installing" in err for _, err in ends) == 1


@pytest.mark.slow
@pytest.mark.parametrize("uv_can_be_had", [True, False])
def test_a_machine_without_uv(tmp_path: Path, uv_can_be_had: bool) -> None:
    tree = reduce_requirements(copy_tree(tmp_path / "tree"))
    if not uv_can_be_had:
        digest = "0" * 64
        (tree / "requirements" / "installer.lock").write_text(f"uv==0.0.1 --hash=sha256:{digest}\n")
    first = start(tree / "hermes", path=WITHOUT_UV)
    assert (first.returncode, first.stdout) == (0, VERSION), first.stderr
    assert ("using pip" in first.stderr) is not uv_can_be_had


def test_a_machine_without_a_suitable_python(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree")
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("sh", "readlink", "cmp"):
        (commands / name).symlink_to(str(shutil.which(name)))
    old = commands / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1\n')
    old.chmod(0o755)
    refused = start(tree / "hermes", path=str(commands))
    assert refused.returncode == 1
    assert "Python 3.11 or newer is required" in refused.stderr
    assert "Python 3.9.2" in refused.stderr


def test_packages_are_checked_against_their_hashes(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree")
    lock = tree / "requirements" / "runtime.lock"
    digest = "0" * 64
    lock.write_text(f"wcwidth==0.2.13 --hash=sha256:{digest}\n")
    refused = start(tree / "hermes")
    assert refused.returncode == 1
    assert "hash" in refused.stderr.lower()
    assert not (tree / ".venv" / "installed-runtime.lock").exists()


def test_lock_files_name_no_registry() -> None:
    for lock in (ROOT / "requirements").glob("*.lock"):
        text = lock.read_text()
        assert "://" not in text
        assert "--index-url" not in text
        pins = [line for line in text.splitlines() if "==" in line and not line.startswith(" ")]
        assert pins
        assert text.count("--hash=sha256:") >= len(pins)


def test_declared_dependencies_are_the_locked_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "requirements" / "runtime.in").read_text().splitlines()
    assert sorted(project["project"]["dependencies"]) == sorted(
        line for line in lines if line and not line.startswith("#")
    )
    dev = (ROOT / "requirements" / "dev.in").read_text().splitlines()
    assert set(project["dependency-groups"]["dev"]) <= set(dev)


def test_a_uv_that_fails_is_followed_by_pip(tmp_path: Path) -> None:
    tree = reduce_requirements(copy_tree(tmp_path / "tree"))
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "uv").write_text("#!/bin/sh\necho no mirror configured >&2\nexit 1\n")
    (broken / "uv").chmod(0o755)
    first = start(tree / "hermes", path=f"{broken}{os.pathsep}{os.environ['PATH']}")
    assert (first.returncode, first.stdout) == (0, VERSION), first.stderr
    assert "using pip" in first.stderr


def test_progress_on_a_terminal_is_one_line_that_is_cleared(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree")
    child = pexpect.spawn(
        str(tree / "hermes"),
        ["--version"],
        encoding="utf-8",
        env={**os.environ, "PATH": UV_ON_PATH},
        timeout=PATIENCE_SECONDS,
    )
    output = str(child.read())
    child.close()
    assert child.exitstatus == 0
    assert re.search(r"Installing \d+ packages…", output)
    visible = [line.rpartition("\x1b[K")[2] for line in output.split("\n")]
    assert visible[-2:] == [VERSION.replace("\n", "\r"), ""]
    assert not any("…" in line for line in visible)
