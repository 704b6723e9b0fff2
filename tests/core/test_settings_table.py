"""The table of settings is consistent with itself and with its documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_core.config.schema import Setting
from hermes_core.config.settings import SETTINGS
from hermes_core.config.values import describe_allowed, find_setting, format_value, parse_value
from hermes_core.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_every_default_is_allowed_by_its_own_setting(setting):
    assert parse_value(setting, setting.default, "the table") == setting.default


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_every_default_survives_being_written_as_text(setting):
    assert parse_value(setting, format_value(setting.default), "the table") == setting.default


def test_names_and_variables_are_unique_and_have_two_words():
    assert len({s.name for s in SETTINGS}) == len(SETTINGS)
    assert len({s.variable for s in SETTINGS}) == len(SETTINGS)
    assert all(re.fullmatch(r"[a-z_]+\.[a-z_]+", s.name) for s in SETTINGS)


def test_a_setting_is_overridden_by_the_variable_named_after_it():
    assert find_setting(SETTINGS, "store.busy_seconds").variable == "HERMES_STORE_BUSY_SECONDS"


def test_the_documentation_lists_exactly_the_settings_of_the_table():
    rows = re.findall(
        r"^\| `([a-z_.]+)` \| (.*?) \| (.*?) \| (.*?) \|$", DOCS.read_text(), re.MULTILINE
    )
    documented = {name: (what, default, text) for name, what, default, text in rows}
    expected = {
        s.name: (
            describe_allowed(s),
            f"`{format_value(s.default)}`" if format_value(s.default) else "empty",
            s.help,
        )
        for s in SETTINGS
    }
    assert documented == expected


def test_an_unknown_name_gets_the_most_similar_one_suggested():
    with pytest.raises(ConfigError, match=r"store\.busy_second'.*mean 'store\.busy_seconds'"):
        find_setting(SETTINGS, "store.busy_second")


def test_a_name_without_similar_names_gets_no_suggestion():
    with pytest.raises(ConfigError) as caught:
        find_setting(SETTINGS, "zzz")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("store.busy_seconds", "soon"),
        ("store.busy_seconds", float("nan")),
        ("store.busy_seconds", True),
        ("store.trash_days", -1),
        ("store.trash_days", 1.5),
        ("store.trash_days", [1]),
        ("store.draft_interval_ms", 251),
        ("session_reset.at_hour", 24),
        ("session_reset.mode", "weekly"),
        ("session_reset.mode", 3),
        ("sessions.auto_prune", "perhaps"),
        ("sessions.auto_prune", 2.5),
        ("display.timezone", {"a": 1}),
        ("display.timezone", True),
        ("plugins.enabled", {"a": 1}),
        ("plugins.enabled", [["nested"]]),
    ],
)
def test_an_invalid_value_is_refused_with_setting_source_value_and_allowed_values(name, raw):
    setting = find_setting(SETTINGS, name)
    with pytest.raises(ConfigError) as caught:
        parse_value(setting, raw, "/x/config.yaml")
    message = str(caught.value)
    assert name in message
    assert "/x/config.yaml" in message
    assert repr(raw) in message
    assert describe_allowed(setting) in message


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("sessions.auto_prune", "Yes", True),
        ("sessions.auto_prune", "off", False),
        ("sessions.auto_prune", 1, True),
        ("store.trash_days", "7", 7),
        ("store.trash_days", 7.0, 7),
        ("store.busy_seconds", 3, 3.0),
        ("session_reset.mode", " Daily ", "daily"),
        ("plugins.enabled", "a, b,a,", ("a", "b")),
        ("plugins.enabled", '["a", b]', ("a", "b")),
        ("plugins.enabled", [1, "b"], ("1", "b")),
        ("plugins.enabled", "", ()),
        ("display.timezone", "", ""),
    ],
)
def test_common_spellings_are_accepted(name, raw, value):
    read = parse_value(find_setting(SETTINGS, name), raw, "x")
    assert (read, type(read)) == (value, type(value))


def test_a_long_bad_value_is_shortened_in_the_message():
    with pytest.raises(ConfigError) as caught:
        parse_value(find_setting(SETTINGS, "log.level"), "x" * 5000, "x")
    assert len(str(caught.value)) < 300


def test_limits_may_be_open_on_either_side():
    assert (
        describe_allowed(Setting("a.b", "int", 1, "", minimum=1)) == "a whole number of at least 1"
    )
    assert describe_allowed(Setting("a.b", "float", 1.0, "", maximum=2)) == "a number of at most 2"
    assert describe_allowed(Setting("a.b", "str", "", "")) == "text"
