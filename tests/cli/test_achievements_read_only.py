"""`hermes achievements` where nothing can be written: a read-only folder, a full disk."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from achievements.history_builder import HistoryBuilder
from support.command_line import command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes


@pytest.fixture
def builder(hermes_home: Path) -> Iterator[HistoryBuilder]:
    """One conversation in which twelve changes were pushed."""
    assert hermes_home.is_dir()
    result = HistoryBuilder()
    result.start("roof").send("hello")
    for _ in range(12):
        result.run_shell("pytest && git commit -m x && git push")
    result.reply()
    yield result
    result.close()


READ_ONLY = "mount --bind {home} {home} && mount -o remount,ro,bind {home} && exec {command}"


def read_only(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `hermes` where its home cannot be written."""
    script = READ_ONLY.format(home=shlex.quote(str(home)), command=shlex.join(command(*arguments)))
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if "unshare" in result.stderr or "mount:" in result.stderr:
        pytest.skip(f"no file system can be made read-only here: {result.stderr.strip()}")
    return result


@pytest.mark.usefixtures("builder")  # it has the history open, so that others can read it
def test_where_nothing_can_be_written_it_is_read(hermes: Hermes, hermes_home: Path) -> None:
    fresh = read_only(hermes_home, "achievements", "--json")
    assert fresh.returncode == 0, fresh.stderr
    assert "HERMES_HOME is not writable" in fresh.stderr
    assert json.loads(fresh.stdout)["unlocked_count"] > 5
    assert json.loads(fresh.stdout)["streaks"]["current_days"] == 0
    assert not (hermes_home / "plugins").exists()
    assert read_only(hermes_home, "recap", "--year", "2026").returncode == 0
    known_names = json.loads(hermes("achievements", "--json").out)
    later = read_only(hermes_home, "achievements", "--json")
    assert (later.returncode, "showing the result of" in later.stderr) == (0, True)
    assert json.loads(later.stdout)["generated_at"] == known_names["generated_at"]
    hidden = read_only(hermes_home, "achievements", "hide", "first-words")
    assert hidden.returncode == 2
    for result in (fresh, later, hidden):
        assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("builder")
@pytest.mark.parametrize(
    "arguments",
    [
        ("achievements", "export", "/etc/passwd/x.json"),
        ("achievements", "export", "/proc/x/y.json"),
        ("recap", "--html", "/etc/passwd/x.html"),
        ("recap", "--html", "/proc/x/"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(
    hermes: Hermes, arguments: tuple[str, ...]
) -> None:
    result = hermes(*arguments)
    assert result.code == 2
    assert result.err.startswith(("hermes: Cannot ", "hermes: /"))
    assert "Traceback" not in result.err


@pytest.mark.usefixtures("builder")
@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("export",)])
def test_a_full_disk_is_reported(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - no file of ours
        result = subprocess.run(
            command("achievements", *arguments), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 1
    assert result.stderr == b"hermes: Cannot write the output: No space left on device.\n"
