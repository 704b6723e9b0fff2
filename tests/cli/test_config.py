"""`hermes config`, as real processes over real files."""

from __future__ import annotations

import json
import stat
import subprocess
from typing import TYPE_CHECKING

import pexpect
import pytest

from hermes_agent.costs import own_prices
from hermes_core.config.price_entries import OwnPrice
from hermes_core.config.settings import SETTINGS
from support.command_line import CLI
from support.terminal import spawn

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes


def test_get_set_unset(hermes: Hermes, hermes_home: Path) -> None:
    assert hermes("config", "get", "display.color").out == "auto\n"
    assert hermes("config", "set", "display.color", "never").out == "display.color = never\n"
    assert hermes("config", "get", "display.color").out == "never\n"
    data = json.loads(hermes("config", "get", "display.color", "--json").out)
    assert data == {"name": "display.color", "value": "never", "source": "config.yaml"}
    assert stat.S_IMODE((hermes_home / "config.yaml").stat().st_mode) == 0o600
    assert hermes("config", "unset", "display.color").out == "display.color = auto\n"
    assert hermes("config", "unset", "display.color").out == "display.color = auto (was not set)\n"


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (("get", "display.colour"), "display.color"),
        (("set", "display.color", "sometimes"), "always"),
        (("set", "store.trash_days", "-1"), "store.trash_days"),
    ],
)
def test_errors_have_a_hint(hermes: Hermes, arguments: tuple[str, ...], phrase: str) -> None:
    result = hermes("config", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("hermes: ")
    assert phrase in result.err


def test_a_value_can_come_from_standard_input(hermes: Hermes) -> None:
    subprocess.run([*CLI, "config", "set", "log.level"], input=b"debug\n", check=True)
    assert hermes("config", "get", "log.level").out == "debug\n"


@pytest.mark.parametrize("given", [b"", b"\n"], ids=["nothing", "an empty line"])
@pytest.mark.parametrize("arguments", [(), ("-",)], ids=["without a value", "from standard input"])
def test_a_setting_is_kept_if_no_value_is_given(
    hermes: Hermes, given: bytes, arguments: tuple[str, ...]
) -> None:
    hermes("config", "set", "llm.model", "mine")
    refused = subprocess.run(
        [*CLI, "config", "set", "llm.model", *arguments],
        input=given, check=False, capture_output=True,
    )  # fmt: skip
    assert refused.returncode == 2
    assert b"No value given" in refused.stderr
    assert b"config unset llm.model" in refused.stderr
    assert hermes("config", "get", "llm.model").out == "mine\n"
    assert hermes("config", "set", "llm.model", "").code == 0  # an empty value is given
    assert hermes("config", "get", "llm.model").out == "\n"


def test_the_environment_overrides_with_a_note(hermes: Hermes) -> None:
    result = hermes("config", "set", "log.level", "error", HERMES_LOG_LEVEL="debug")
    assert "HERMES_LOG_LEVEL overrides" in result.err
    assert hermes("config", "get", "log.level", HERMES_LOG_LEVEL="debug").out == "debug\n"
    assert hermes("config", "get", "log.level").out == "error\n"


def test_list_has_every_setting(hermes: Hermes) -> None:
    text = hermes("config", "list").out
    rows = json.loads(hermes("config", "list", "--json").out)
    assert [row["name"] for row in rows] == [setting.name for setting in SETTINGS]
    for setting in SETTINGS:
        assert setting.name in text
        assert setting.help in text


def test_a_mistake_does_not_hide_the_others(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("display:\n  color: sometimes\nlog:\n  level: debug\n")
    result = hermes("config", "list")
    assert result.code == 2
    assert "debug" in result.out
    assert "display.color" in result.err
    assert hermes("sessions", "list").code == 0


def test_path(hermes: Hermes, hermes_home: Path) -> None:
    assert hermes("config", "path").out == f"{hermes_home / 'config.yaml'}\n"


def test_check(hermes: Hermes, hermes_home: Path) -> None:
    assert hermes("config", "check").code == 0
    config = hermes_home / "config.yaml"
    config.write_text("display:\n  color: sometimes\nmodel:\n  name: x\n")
    config.chmod(0o600)
    result = hermes("config", "check")
    assert result.code == 1
    assert "✗" in result.out
    report = json.loads(hermes("config", "check", "--json").out)
    assert report["ok"] is False
    assert {problem["name"] for problem in report["problems"]} == {"display.color", "model"}


def test_times_are_shown_in_the_chosen_zone(hermes: Hermes, history: Path) -> None:
    assert history.exists()
    kiritimati = hermes("sessions", "stats", HERMES_DISPLAY_TIMEZONE="Pacific/Kiritimati").out
    utc = hermes("sessions", "stats", HERMES_DISPLAY_TIMEZONE="UTC").out
    assert kiritimati != utc
    wrong = hermes("sessions", "stats", HERMES_DISPLAY_TIMEZONE="Mars/Base")
    assert wrong.code == 0
    assert "'Mars/Base'; it must be a time zone" in wrong.err


def test_colours_can_be_forced(hermes: Hermes) -> None:
    assert "\x1b[" in hermes(HERMES_DISPLAY_COLOR="always").out
    assert "\x1b[" not in hermes(HERMES_DISPLAY_COLOR="always", NO_COLOR="1").out
    assert "\x1b[" not in hermes().out


@pytest.mark.parametrize(
    ("name", "prompt"),
    [("llm.key", "API key for the model"), ("keys.telegram", "Token of your Telegram bot")],
)
def test_a_secret_is_prompted_for_by_name_and_not_echoed(
    name: str, prompt: str, hermes_home: Path
) -> None:
    child = spawn("config", "set", name)
    child.expect_exact(f"{prompt} (hidden): ")
    child.sendline("s3cret-value")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "s3cret-value" not in str(child.before)
    assert "s3cret-value" in (hermes_home / ".env").read_text()


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("{input: -5, output: 3}", "input must be a number from 0 to 1000000"),
        ("{input: 1}", "output is missing"),
        ("{input: 1, output: 2, cache_read: free}", "cache_read must be a number"),
        ("cheap", "it must have the keys input and output"),
    ],
)
def test_an_invalid_price_is_reported(
    hermes: Hermes, hermes_home: Path, entry: str, reason: str
) -> None:
    config = hermes_home / "config.yaml"
    config.write_text(f"prices:\n  good: {{input: 1, output: 2}}\n  my-model: {entry}\n")
    config.chmod(0o600)
    for command in (("config", "check"), ("doctor",)):
        result = hermes(*command)
        assert result.code == 1, result.out
        assert f"prices.my-model in {config}: {reason}" in " ".join(result.out.split())
        assert "prices.good" not in result.out


def test_an_unknown_key_of_a_price_is_reported_and_the_price_is_used(
    hermes: Hermes, hermes_home: Path
) -> None:
    config = hermes_home / "config.yaml"
    config.write_text("prices:\n  my-model: {input: 1, output: 2, cached: 1}\n")
    config.chmod(0o600)
    result = hermes("config", "check")
    assert (result.code, "prices.my-model in" in result.out) == (0, True)
    assert "unknown key 'cached'" in " ".join(result.out.split())
    assert own_prices() == {"my-model": OwnPrice(1.0, 2.0)}
