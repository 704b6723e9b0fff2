"""Answers of commands that say what was left out, and what to type next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from support.sample_history import CHAT, OSLO
from support.terminal import on_terminal, wait_for_exit

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes


@pytest.mark.usefixtures("history")
def test_the_last_deleted_conversation_is_restored_as_last(hermes: Hermes) -> None:
    hermes("sessions", "delete", OSLO, "--yes")
    assert hermes("sessions", "restore", "last").out.startswith(OSLO)
    unknown = hermes("sessions", "restore", "zzz")
    assert unknown.code == 2
    assert "No session in the trash has the ID or title 'zzz'" in unknown.err
    assert "`hermes sessions restore` lists it" in unknown.err
    assert hermes("sessions", "restore", "last").code == 2  # the trash is empty


@pytest.mark.usefixtures("history")
def test_an_export_says_what_it_leaves_out(hermes: Hermes, tmp_path: Path) -> None:
    with SessionDB() as db:
        db.set_session_archived(OSLO, archived=True)
    odd = hermes("sessions", "export", str(tmp_path / "history.xyz"))
    assert "Unknown suffix .xyz: writing JSONL." in odd.err
    assert "1 archived conversation not exported; --all includes them." in odd.err
    assert hermes("sessions", "export", str(tmp_path / "all.jsonl"), "--all").err == ""


@pytest.mark.usefixtures("history")
def test_a_list_on_a_terminal_says_that_there_are_more() -> None:
    child = on_terminal("sessions", "list", "--limit", "1")
    child.expect("The 1 most recent; --limit N or --all shows more.")
    wait_for_exit(child)


@pytest.mark.usefixtures("history")
def test_a_limit_is_exact(hermes: Hermes) -> None:
    listed = json.loads(hermes("sessions", "list", "--limit", "1", "--json").out)
    assert [row["id"] for row in listed] == [CHAT]


@pytest.mark.parametrize("arguments", [("chat",), ("sessions", "list")])
def test_an_unknown_option_is_answered_with_the_usage_of_the_command(
    hermes: Hermes, arguments: tuple[str, ...]
) -> None:
    result = hermes(*arguments, "--foo")
    assert result.code == 2
    assert f"usage: hermes {' '.join(arguments)} " in result.err
    assert "unrecognized arguments: --foo" in result.err


@pytest.mark.parametrize("arguments", [("--bad",), ("--bad", "--worse=1"), ("-x",)])
def test_an_unknown_option_without_a_command_is_named(
    hermes: Hermes, arguments: tuple[str, ...]
) -> None:
    result = hermes(*arguments)
    assert result.code == 2
    assert f"unrecognized arguments: {' '.join(arguments)}" in result.err
    assert "required" not in result.err


def test_a_code_for_an_unknown_platform_names_the_platforms(hermes: Hermes) -> None:
    result = hermes("pairing", "approve", "foo", "ABC")
    assert result.code == 2
    assert "Unknown platform foo. Platforms:" in result.err
    assert "telegram" in result.err


def test_an_invalid_setting_is_reported_once(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("display: {color: maybe}\n")
    checked = hermes("config", "check")
    assert (checked.code, checked.out.count("display.color"), checked.err) == (1, 1, "")
    assert hermes("doctor").err.count("display.color") <= 1


@pytest.mark.parametrize(
    "text", ['{"llm": {"model": "m"}}', "{llm: {model: m}, plugins: }\n", "{}"]
)
def test_a_setting_is_changed_in_a_file_of_one_line(
    hermes: Hermes, hermes_home: Path, text: str
) -> None:
    config = hermes_home / "config.yaml"
    config.write_text(text)
    assert hermes("plugins", "enable", "boundary-log").code == 0
    assert hermes("config", "set", "display.color", "never").code == 0
    assert json.loads(hermes("config", "get", "display.color", "--json").out)["value"] == "never"
    assert "boundary-log" in config.read_text()
    if "model" in text:
        assert hermes("config", "get", "llm.model").out == "m\n"


def test_titles_in_an_error_are_printed_unchanged(hermes: Hermes) -> None:
    with SessionDB() as db:
        for number, title in enumerate(("hermes setup notes", "it's: hermes setup")):
            db.create_session(f"20260101_12000{number}_abcdef", "cli")
            db.set_session_title(f"20260101_12000{number}_abcdef", title)
    done = hermes("sessions", "show", "20260101", HERMES_COMMAND="./hermes")
    assert "'hermes setup notes'" in done.err
    assert "'it's: hermes setup'" in done.err


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (["cron", "list"], "./hermes cron add"),
        (["import", "--dry-run"], "./hermes import claude-code /path"),
        (["mcp", "add", "--url", "http://localhost:1"], "./hermes mcp add NAME -- COMMAND"),
        (["import", "gemini"], "./hermes import gemini PATH"),
        (["unknown-word"], "./hermes -p 'unknown-word'"),
        (["mcp", "add", "--help"], "usage: ./hermes mcp add"),
        (["restore", "--help"], "written by `./hermes backup`"),
        (["install", "--help"], "Put the hermes command on your PATH"),
    ],
)
def test_a_hint_names_the_command_as_it_was_typed(
    hermes: Hermes, command: list[str], hint: str
) -> None:
    done = hermes(*command, HERMES_COMMAND="./hermes")
    assert hint in done.out + done.err
    assert ": hermes " not in done.out + done.err
