"""Command lines of hermes-agent: accepted where they have a meaning, explained elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_cli import original_commands
from hermes_cli.commands.sessions.browser import BrowserSessions
from hermes_cli.original_commands import ALIASES, NOT_HERE, translate
from hermes_core import __version__
from hermes_core.errors import UsageError
from hermes_state import SessionDB
from support.model_servers import model_argument, model_servers
from support.original_homes import CONFIG, write
from support.sample_history import OSLO

if TYPE_CHECKING:
    from support.command_line import Hermes

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["version"], ["--version"]),
        (["config", "show"], ["config", "list"]),
        (["status"], ["doctor"]),
        (["logs"], ["gateway", "logs"]),
        (["insights"], ["recap", "--month"]),
        (["sessions", "export", "--session-id", OSLO], ["sessions", "export", "--session", OSLO]),
    ],
    ids=" ".join,
)
def test_a_command_of_hermes_agent_is_that_of_hermes(
    hermes: Hermes, history: Path, theirs: list[str], ours: list[str]
) -> None:
    assert history.exists()
    first, second = hermes(*theirs), hermes(*ours)
    assert (first.code, lasting(first.out)) == (second.code, lasting(second.out))
    assert first.err == second.err


def lasting(text: str) -> str:
    """The parts of an output that do not change from one second to the next."""
    return re.sub(r'"exported_at":[^,}]*|"checksum":[^,}]*|\d+ ms|[\d.]+ [GM]B free', "", text)


def test_the_version_is_printed(hermes: Hermes) -> None:
    assert hermes("version").out == f"hermes {__version__}\n"


@pytest.mark.parametrize("option", [["chat", "--query"], ["-z"]], ids=" ".join)
def test_one_question_is_asked(hermes: Hermes, option: list[str]) -> None:
    with model_servers() as serve:
        server = serve("[{say: Hello there.}]")
        answered = hermes(*option, "hello", "--model", model_argument(server))
    assert answered.out == "Hello there.\n"


@pytest.mark.parametrize(
    ("days", "period"), [("5", "--week"), ("30", "--month"), ("365", "--year")]
)
def test_days_of_insights_are_a_period(days: str, period: str) -> None:
    assert translate(["insights", "--days", days]) == ["recap", period]
    assert translate(["insights", f"--days={days}", "--json"]) == ["recap", period, "--json"]
    with pytest.raises(UsageError, match="invalid number of days"):
        translate(["insights", "--days", "x"])


@pytest.mark.parametrize("name", NOT_HERE)
def test_what_is_not_available_says_where_to_look(hermes: Hermes, name: str) -> None:
    shown = hermes(name, "list")
    assert shown.code == 2
    assert f"`hermes {name}` is not available here. {NOT_HERE[name]}" in shown.err
    assert len(shown.err.splitlines()) == 1


def test_every_accepted_command_is_documented() -> None:
    text = REFERENCE.read_text("utf-8")
    for words in (*ALIASES, (original_commands.INSIGHTS,)):
        assert f"| `hermes {' '.join(words)}" in text
    for name in NOT_HERE:
        assert f"`{name}`" in text.split("## Command lines of hermes-agent")[1]


def test_the_browser_lists_at_most_the_limit(history: Path) -> None:
    assert history.exists()
    with SessionDB() as db:
        for limit, expected in ((1, 1), (5, 2), (None, 2)):
            rows = BrowserSessions(db, {}, lambda _db: None, limit)
            assert len(rows.first()) == expected
            assert list(rows.pages(expected)) == []


def test_the_doctor_counts_settings_that_are_not_used(hermes: Hermes, hermes_home: Path) -> None:
    write(hermes_home / "config.yaml", CONFIG)
    lines = [line for line in hermes("doctor").out.splitlines() if "settings" in line]
    (line,) = [line for line in lines if "unknown, in the sections" in line]
    assert "sections model, agent, compression, terminal, display, telegram" in line
    assert len(line) < 200
