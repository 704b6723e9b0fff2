"""Tab completion in real shells: commands, options, session IDs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pexpect
import pytest

from hermes_state import SessionDB
from support.command_line import CLI
from support.sample_history import CHAT, OSLO
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

CALL = """
source {script}
COMP_LINE={line}; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9
_python_argcomplete hermes
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
PROMPT = "ready> "


def shell(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed: its completion cannot be tried")
    return path


@pytest.fixture
def scripts(history: Path, hermes: Hermes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the shells' scripts; `hermes` is on PATH."""
    program = tmp_path / "bin" / "hermes"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(CLI)} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name in ("bash", "zsh", "fish"):
        result = hermes("completion", name)
        assert (result.code, result.err) == (0, "")
        (tmp_path / f"completion.{name}").write_text(result.out)
    return tmp_path


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_is_valid(scripts: Path, name: str) -> None:
    subprocess.run(
        [shell(name), "-n", scripts / f"completion.{name}"], check=True, timeout=PATIENCE_SECONDS
    )


EXPECTED = [
    ("hermes sess", {"sessions"}),
    ("hermes sessions sea", {"search"}),
    ("hermes sessions list --arc", {"--archived"}),
    ("hermes sessions show 2026", {OSLO, CHAT}),
    ("hermes sessions show 20260301", {OSLO}),
    ("hermes sessions delete 20260302 ", None),
    ("hermes completion f", {"fish"}),
]


@pytest.mark.parametrize(("line", "expected"), EXPECTED)
def test_bash_completes(scripts: Path, line: str, expected: set[str] | None) -> None:
    text = CALL.format(script=scripts / "completion.bash", line=shlex.quote(line))
    finished = subprocess.run(
        [shell("bash"), "--norc", "-c", text],
        capture_output=True,
        check=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    result = {word.strip() for word in finished.stdout.splitlines()} - {""}
    if expected is None:
        assert {OSLO, CHAT} <= result
    else:
        assert result == expected


@pytest.mark.parametrize(("line", "expected"), EXPECTED)
def test_fish_completes(scripts: Path, line: str, expected: set[str] | None) -> None:
    finished = subprocess.run(
        [shell("fish"), "--no-config", "-c",
         f"source {scripts / 'completion.fish'}; complete -C {shlex.quote(line)}"],
        capture_output=True, check=True, text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    result = {word.partition("\t")[0].strip() for word in finished.stdout.splitlines()} - {""}
    assert result >= (expected or {OSLO, CHAT})


def start_shell(name: str, *arguments: str) -> pexpect.spawn[str]:
    environment = {**os.environ, "TERM": "dumb", "PS1": PROMPT}
    return pexpect.spawn(
        shell(name),
        list(arguments),
        env=environment,
        encoding="utf-8",
        dimensions=(24, 150),
        timeout=PATIENCE_SECONDS,
    )


def test_the_tab_key_in_bash(scripts: Path) -> None:
    child = start_shell("bash", "--norc", "--noprofile")
    child.expect_exact(PROMPT)
    child.sendline(f"source {scripts / 'completion.bash'}; echo lo''aded")
    child.expect_exact("loaded\r\n")
    child.send("hermes sess\tsho\t20260301\t\n")
    child.expect_exact("Weather in Oslo")
    child.close()


def test_the_tab_key_in_zsh(scripts: Path) -> None:
    child = start_shell("zsh", "-f")
    child.expect_exact(PROMPT)
    child.sendline(
        f"autoload -U compinit; compinit -D -u; source {scripts / 'completion.zsh'}; echo lo''aded"
    )
    child.expect_exact("loaded\r")
    child.expect_exact(PROMPT)
    child.send("hermes sess\tsho\t20260301\t")
    child.expect_exact(OSLO)
    child.send("\n")
    child.expect_exact("Weather in Oslo")
    child.close()


def test_an_id_is_found_however_old_it_is(scripts: Path, history: Path) -> None:
    with SessionDB() as db:
        for number in range(60):
            db.create_session(f"newer{number}", "cli")
    text = CALL.format(script=scripts / "completion.bash", line="'hermes sessions show 20260301'")
    result = subprocess.run(
        [shell("bash"), "--norc", "-c", text],
        capture_output=True,
        check=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert result.stdout.strip() == OSLO


def test_without_a_history_no_ids_are_offered(scripts: Path, history: Path) -> None:
    (history / "state.db").unlink()
    text = CALL.format(script=scripts / "completion.bash", line="'hermes sessions show 2026'")
    result = subprocess.run(
        [shell("bash"), "--norc", "-c", text],
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert "2026" not in result.stdout
    assert not (history / "state.db").exists()
