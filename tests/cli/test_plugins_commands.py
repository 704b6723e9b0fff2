"""`hermes plugins …` and the commands of plugins, as real processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from support.plugin_folders import RECORDER_PLUGIN, make_plugin, recorded_calls

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

CONFIG = """\
# my settings
display:
  color: auto  # the terminal decides
plugins:
  # the ones I trust
  disabled: [irc]
"""
DICE = """
import sys
def setup(parser):
    parser.add_argument("--sides", type=int, default=6)
    parser.add_argument("how", nargs="?", default="")
def roll(arguments):
    if arguments.how == "raise":
        raise ValueError("the dice are lost")
    if arguments.how == "exit":
        sys.exit(5)
    if arguments.how == "complain":
        sys.exit("no dice")
    if arguments.how == "refuse":
        from hermes_core.errors import UsageError
        raise UsageError("not like this")
    print("rolled", arguments.sides)
    return 3 if arguments.how == "code" else None
def register(ctx):
    ctx.register_cli_command("dice", "roll dice", setup, roll)
    ctx.register_cli_command("sessions", "never reached", setup, roll)
    ctx.register_cli_command("crooked", "cannot be set up", lambda parser: 1 / 0, roll)
"""


def test_enabling_and_disabling_keeps_comments(hermes: Hermes, hermes_home: Path) -> None:
    config = hermes_home / "config.yaml"
    config.write_text(CONFIG)
    result = hermes("plugins", "enable", "boundary-log")
    assert (result.code, result.out, result.err) == (0, "Enabled boundary-log.\n", "")
    text = config.read_text()
    for comment in ("# my settings", "# the terminal decides", "# the ones I trust"):
        assert comment in text
    assert "boundary-log" in text
    assert hermes("plugins", "enable", "boundary-log").code == 0
    assert config.read_text().count("boundary-log") == 1
    assert hermes("plugins", "disable", "boundary-log").out == "Disabled boundary-log.\n"
    states = {
        row["name"]: row["state"] for row in json.loads(hermes("plugins", "list", "--json").out)
    }
    assert states == {
        "boundary-log": "disabled",
        "hermes-achievements": "loaded",  # a tab that comes with Hermes
        "irc": "disabled",
    }
    assert "# the ones I trust" in config.read_text()
    assert hermes("config", "check").code == 0


def test_without_a_configuration_a_new_file_is_created(hermes: Hermes, hermes_home: Path) -> None:
    report = json.loads(hermes("plugins", "enable", "boundary-log", "--json").out)
    assert (report["state"], report["origin"]) == ("loaded", "bundled")
    assert "on_session_boundary" in report["hooks"]
    assert (hermes_home / "config.yaml").exists()


def test_a_plugin_that_fails_is_named_with_its_reason(hermes: Hermes, hermes_home: Path) -> None:
    make_plugin(hermes_home, "bad", "raise RuntimeError('no luck today')")
    result = hermes("plugins", "enable", "bad")
    assert result.code == 1
    assert "Enabled bad, but it failed to load: RuntimeError: no luck today" in result.out
    listed = hermes("plugins", "list")
    assert listed.code == 0
    assert "no luck today" in listed.out
    assert "boundary-log" in listed.out
    assert hermes("sessions", "list").code == 0


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def register(ctx): raise KeyboardInterrupt", "the plugin raised KeyboardInterrupt"),
        ("raise KeyboardInterrupt", "the plugin raised KeyboardInterrupt while loading"),
        ("def register(ctx): raise SystemExit(7)", "the plugin called sys.exit while loading (7)"),
    ],
)
def test_a_plugin_that_would_end_the_process_is_named_and_can_be_removed(
    hermes: Hermes, hermes_home: Path, code: str, reason: str
) -> None:
    make_plugin(hermes_home, "dice", code)
    enabled = hermes("plugins", "enable", "dice")
    assert (enabled.code, reason in enabled.out + enabled.err) == (1, True)
    checked = hermes("plugins", "doctor")
    assert (checked.code, reason in checked.out) == (1, True)
    assert hermes("plugins", "disable", "dice").code == 0
    assert hermes("plugins", "list").code == 0


@pytest.mark.parametrize("action", ["enable", "disable", "info"])
def test_a_misspelt_name_gets_a_proposal(hermes: Hermes, action: str) -> None:
    result = hermes("plugins", action, "boundry-log")
    assert result.code == 2
    assert "Unknown plugin 'boundry-log'. Did you mean 'boundary-log'? See `hermes" in result.err


def test_info_shows_all_fields(hermes: Hermes, hermes_home: Path) -> None:
    make_plugin(hermes_home, "dice", DICE, "description: rolls dice\nauthor: me\nversion: 2.0")
    hermes("plugins", "enable", "dice")
    fields = json.loads(hermes("plugins", "info", "dice", "--json").out)
    assert (fields["state"], fields["author"], fields["origin"]) == ("loaded", "me", "user")
    assert fields["cli_commands"] == ["dice", "sessions", "crooked"]
    text = hermes("plugins", "info", "dice").out
    assert "rolls dice" in text
    assert "dice, sessions, crooked" in text


def test_the_list_shows_the_origin_of_each(hermes: Hermes, hermes_home: Path) -> None:
    make_plugin(hermes_home, "mine", RECORDER_PLUGIN)
    rows = {row["name"]: row for row in json.loads(hermes("plugins", "list", "--json").out)}
    assert rows["mine"]["origin"] == "user"
    assert rows["boundary-log"]["origin"] == "bundled"
    states = {name: row["state"] for name, row in rows.items()}
    assert states.pop("hermes-achievements") == "loaded"
    assert set(states.values()) == {"available"}


def test_the_first_plugin_receives_only_new_events(hermes: Hermes, hermes_home: Path) -> None:
    make_plugin(hermes_home, "ears", RECORDER_PLUGIN)
    make_plugin(hermes_home, "more-ears", RECORDER_PLUGIN)
    with SessionDB() as db:
        for name in ("one", "two", "three"):
            db.create_session(name, "cli")
            db.end_session(name, "cli_close")
    hermes("plugins", "enable", "ears")
    assert hermes("sessions", "delete", "one", "--yes").code == 0
    before = recorded_calls(hermes_home)
    assert all('"two"' not in line and '"three"' not in line for line in before)
    with SessionDB() as db:
        states = {event.state for event in db.boundaries.recent()}
    assert states == {"delivered"}


# Commands that plugins bring.


@pytest.fixture
def dice(hermes: Hermes, hermes_home: Path) -> None:
    make_plugin(hermes_home, "dice", DICE)
    assert hermes("plugins", "enable", "dice").code == 0


@pytest.mark.usefixtures("dice")
def test_a_plugins_command_runs(hermes: Hermes) -> None:
    result = hermes("dice", "--sides", "20")
    assert (result.code, result.out, result.err) == (0, "rolled 20\n", "")
    assert hermes("dice", "code").code == 3
    helped = hermes("dice", "--help")
    assert helped.code == 0
    assert "--sides" in helped.out
    assert "plugin dice" in helped.out
    wrong = hermes("dice", "--sides", "many")
    assert wrong.code == 2
    assert "invalid int value" in wrong.err


@pytest.mark.usefixtures("dice")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["dice", "raise"],
            1,
            "Plugin dice failed in `hermes dice`: ValueError: the dice are lost",
        ),
        (["dice", "exit"], 5, ""),
        (["dice", "complain"], 1, "hermes: no dice"),
        (["dice", "refuse"], 2, "hermes: not like this"),
        (["crooked"], 1, "ZeroDivisionError"),
    ],
)
def test_its_failures_are_its_own(
    hermes: Hermes, arguments: list[str], code: int, message: str
) -> None:
    result = hermes(*arguments)
    assert result.code == code
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


@pytest.mark.usefixtures("dice")
def test_the_traceback_is_printed_on_request(hermes: Hermes) -> None:
    assert "the dice are lost" in hermes("dice", "raise", HERMES_DEBUG="1").err
    assert "Traceback" in hermes("dice", "raise", HERMES_DEBUG="1").err


@pytest.mark.usefixtures("dice")
def test_built_in_commands_cannot_be_replaced(hermes: Hermes) -> None:
    assert "rolled" not in hermes("sessions", "list").out


@pytest.mark.usefixtures("dice")
def test_the_command_of_a_disabled_plugin_is_removed(hermes: Hermes) -> None:
    hermes("plugins", "disable", "dice")
    result = hermes("dice")
    assert result.code == 2
    assert "unknown command 'dice'" in result.err


def test_a_plugin_that_fails_to_load_is_named_when_a_command_is_missing(
    hermes: Hermes, hermes_home: Path
) -> None:
    make_plugin(hermes_home, "dice", "raise RuntimeError('broken')")
    hermes("plugins", "enable", "dice")
    result = hermes("dice")
    assert result.code == 2
    assert "plugin dice failed to load: RuntimeError: broken" in result.err


def test_without_plugins_an_unknown_command_loads_none(hermes: Hermes, hermes_home: Path) -> None:
    make_plugin(hermes_home, "dice", "raise SystemExit('loaded')")
    result = hermes("dice")
    assert result.code == 2
    assert "loaded" not in result.err
