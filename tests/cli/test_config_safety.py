"""Settings that could do harm: secrets in arguments, hostile YAML, files others can read."""

from __future__ import annotations

import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile
from support.command_line import command
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

BOMB_LEVELS = 11


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("name", ["keys.openai", "keys.telegram", "llm.key"])
def test_a_secret_is_not_taken_from_the_arguments(hermes: Hermes, name: str) -> None:
    refused = hermes("config", "set", name, "sk-visible-to-others")
    assert refused.code == 2
    assert f"`hermes config set {name}`" in refused.err
    assert ConfigFile.of_home().secret(name) is None


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_a_secret_is_read_from_standard_input(hermes_home: Path, arguments: tuple[str]) -> None:
    subprocess.run(
        command("config", "set", "keys.openai", *arguments),
        input=b"sk-from-stdin\n", check=True, capture_output=True,
    )  # fmt: skip
    assert ConfigFile.of_home().secret("keys.openai") == "sk-from-stdin"


def test_an_empty_secret_is_not_saved(hermes_home: Path) -> None:
    done = subprocess.run(
        command("config", "set", "keys.openai", "-"), input=b"\n", check=False, capture_output=True
    )
    assert done.returncode == 2
    assert ConfigFile.of_home().secret("keys.openai") is None


def test_an_unknown_time_zone_is_not_saved(hermes: Hermes) -> None:
    refused = hermes("config", "set", "display.timezone", "Mars/Olympus")
    assert (refused.code, "Europe/Berlin" in refused.err) == (2, True)
    assert hermes("config", "set", "display.timezone", "Europe/Berlin").code == 0
    assert hermes("config", "set", "display.timezone", "").code == 0


def test_a_section_that_is_no_section_is_reported(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("agent: 5\n")
    listed = hermes("config", "list")
    assert (listed.code, "agent in" in listed.err, "store.trash_days" in listed.out) == (
        2, True, True,
    )  # fmt: skip
    (hermes_home / "script.yaml").write_text("steps:\n  - say: Hello.\n")
    asked = hermes("chat", "--model", f"script:{hermes_home / 'script.yaml'}", "-q", "hello")
    assert asked.code != 0
    assert "agent in" in asked.err
    assert "Traceback" not in asked.err


def test_nested_aliases_in_the_settings_are_refused(hermes_home: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]"
        for level in range(1, BOMB_LEVELS)
    ]
    (hermes_home / "config.yaml").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        command("config", "list"), capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 2
    assert b"too many values" in done.stderr
    assert b"Traceback" not in done.stderr


def test_ordinary_aliases_in_the_settings_work(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("x: &days 7\nstore:\n  trash_days: *days\n")
    assert hermes("config", "get", "store.trash_days").out == "7\n"


def test_files_that_others_can_read_are_tightened(hermes: Hermes, hermes_home: Path) -> None:
    config = hermes_home / "config.yaml"
    config.write_text("store:\n  trash_days: 7\n")
    config.chmod(0o644)
    hermes_home.chmod(0o755)
    assert hermes("config", "get", "store.trash_days").out == "7\n"
    assert (mode_of(hermes_home), mode_of(config)) == (0o700, 0o600)


def test_a_folder_that_is_not_a_hermes_folder_is_not_tightened(
    hermes: Hermes, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "notes.txt").touch()
    assert hermes("config", "list", HERMES_HOME=str(shared)).code == 0
    assert mode_of(shared) == 0o755


def test_a_linked_file_is_reported_and_not_changed(hermes: Hermes, hermes_home: Path) -> None:
    target = hermes_home.parent / "dotfiles.yaml"
    target.write_text("store:\n  trash_days: 7\n")
    target.chmod(0o644)
    (hermes_home / "config.yaml").symlink_to(target)
    (hermes_home / "state.db").touch()
    assert f"chmod 600 {hermes_home / 'config.yaml'}" in hermes("config", "check").out
    assert (mode_of(target), (hermes_home / "config.yaml").is_symlink()) == (0o644, True)
