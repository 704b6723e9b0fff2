"""Changing a setting does not change any other byte of config.yaml."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.config import yaml_reader
from hermes_core.config.yaml_edit import with_option, with_value
from hermes_core.errors import ConfigError

PATH = Path("config.yaml")

FULL = textwrap.dedent(
    """\
    # my configuration
    model:   "big"      # odd spacing stays

    plugins:
      enabled:          # the good ones
        - alpha   # first
        # a word about beta
        - 'beta'

    # --- store ---
    store:
      # how long
      trash_days:   30  # a month

    other: {a: 1,   b: [x, y]}
    """
)


def edit(text, section, key, value):
    return with_value(text, section, key, value, PATH)


def changed_lines(old, new):
    before, after = old.splitlines(), new.splitlines()
    return [x for x in before if x not in after], [x for x in after if x not in before]


def test_a_number_changes_in_its_line_and_nowhere_else():
    new = edit(FULL, "store", "trash_days", 7)
    assert new == FULL.replace("trash_days:   30", "trash_days:   7")


def test_a_new_key_is_appended_to_its_section():
    new = edit(FULL, "store", "wal_limit_mb", 5)
    assert new == FULL.replace("# a month\n", "# a month\n  wal_limit_mb: 5\n")


def test_a_new_section_is_appended_to_the_file():
    assert edit(FULL, "log", "level", "debug") == FULL + "\nlog:\n  level: debug\n"


def test_an_empty_file_gets_the_section():
    assert edit("", "log", "level", "debug") == "log:\n  level: debug\n"


def test_a_file_of_comments_keeps_them():
    assert edit("# hello", "log", "level", "debug") == "# hello\n\nlog:\n  level: debug\n"


def test_a_name_appended_to_a_list_leaves_all_comments_where_they_are():
    new = edit(FULL, "plugins", "enabled", ("alpha", "beta", "gamma"))
    assert new == FULL.replace("    - 'beta'\n", "    - 'beta'\n    - gamma\n")


def test_removing_a_name_from_a_list_removes_only_its_line():
    new = edit(FULL, "plugins", "enabled", ("beta",))
    assert changed_lines(FULL, new) == (["    - alpha   # first"], [])


def test_a_list_that_becomes_empty_keeps_the_comment_after_it():
    new = edit(FULL, "plugins", "enabled", ())
    assert "enabled: []          # the good ones\n" in new
    assert "# --- store ---" in new


def test_a_list_in_another_order_is_rewritten():
    new = edit(FULL, "plugins", "enabled", ("beta", "alpha"))
    assert yaml_reader.parse(new, PATH)["plugins"] == {"enabled": ["beta", "alpha"]}
    assert "# --- store ---" in new


def test_unset_removes_the_line_and_keeps_the_comments():
    new = edit(FULL, "store", "trash_days", None)
    assert changed_lines(FULL, new) == (["  trash_days:   30  # a month"], [])


def test_unsetting_a_list_removes_all_its_lines():
    new = edit(FULL, "plugins", "enabled", None)
    assert "alpha" not in new
    assert "# --- store ---" in new


def test_unsetting_a_missing_key_changes_nothing():
    assert edit(FULL, "store", "wal_limit_mb", None) == FULL
    assert edit(FULL, "log", "level", None) == FULL
    assert edit("log:\n", "log", "level", None) == "log:\n"


PLATFORMS = """\
# chats
platforms:
  telegram:        # my bot
    allowed_users: [1, 2]   # Ada and Bob
    home_channel:
      chat_id: 5
  matrix: {auto_join: false}  # quiet
other: 1
"""


@pytest.mark.parametrize(
    ("name", "key", "value", "removed", "added"),
    [
        ("telegram", "poll_seconds", 9, [], ["    poll_seconds: 9"]),
        ("telegram", "home_channel", "7", ["    home_channel:", "      chat_id: 5"],
         ['    home_channel: "7"']),
        ("telegram", "allowed_users", None, ["    allowed_users: [1, 2]   # Ada and Bob"], []),
        ("matrix", "sync_seconds", 3, ["  matrix: {auto_join: false}  # quiet"],
         ["  matrix: {auto_join: false, sync_seconds: 3}  # quiet"]),
        ("slack", "reply_in_thread", True, [], ["  slack:", "    reply_in_thread: true"]),
        ("slack", "reply_in_thread", None, [], []),
    ],
)  # fmt: skip
def test_an_option_of_an_entry_changes_nothing_else(name, key, value, removed, added):
    new = with_option(PLATFORMS, ("platforms", name, key), value, PATH)
    assert changed_lines(PLATFORMS, new) == (removed, added)


def test_the_last_option_of_an_entry_leaves_with_its_entry():
    text = "platforms:\n  slack:\n    base_url: x\nother: 1\n"
    new = with_option(text, ("platforms", "slack", "base_url"), None, PATH)
    assert yaml_reader.parse(new, PATH).get("platforms") in (None, {})
    assert "other: 1" in new


def test_an_entry_that_is_no_mapping_is_left_alone():
    with pytest.raises(ConfigError, match=r"platforms\.slack\.x"):
        with_option("platforms: {slack: on}\n", ("platforms", "slack", "x"), 1, PATH)


def test_a_section_in_braces_is_edited_in_braces():
    text = "store: {trash_days: 3, wal_limit_mb: 5}  # short\n"
    assert edit(text, "store", "wal_limit_mb", 6) == text.replace("5", "6")
    assert edit(text, "store", "trash_days", None) == "store: {wal_limit_mb: 5}  # short\n"
    assert edit("store: {}\n", "store", "trash_days", 1) == "store: {trash_days: 1}\n"


def test_a_key_is_added_to_an_empty_section():
    assert edit("store: # mine\n", "store", "trash_days", 1) == "store: # mine\n  trash_days: 1\n"
    assert edit("store:", "store", "trash_days", 1) == "store:\n  trash_days: 1\n"


def test_a_value_is_added_to_a_key_without_one():
    text = "store:\n  trash_days:\n  wal_limit_mb: 5\n"
    assert edit(text, "store", "trash_days", 1) == text.replace("days:", "days: 1")


def test_windows_line_endings_are_kept():
    text = "store:\r\n  trash_days: 1\r\nlog:\r\n  level: info\r\n"
    new = edit(text, "store", "wal_limit_mb", 5)
    assert new == text.replace("days: 1\r\n", "days: 1\r\n  wal_limit_mb: 5\r\n")


@pytest.mark.parametrize(
    "text",
    [
        "base: &b\n  trash_days: 1\nstore: *b\n",
        "n: &n 5\nstore:\n  trash_days: *n\n",
        "store:\n  - a\n",
        "store: 5\n",
    ],
)
def test_a_change_that_is_not_safe_is_refused(text):
    with pytest.raises(ConfigError, match="by hand"):
        edit(text, "store", "trash_days", 7)


def test_a_new_section_that_cannot_be_appended_is_refused():
    with pytest.raises(ConfigError, match="by hand"):
        edit("store: {}\n...\n", "log", "level", "debug")


def test_a_section_is_added_inside_a_mapping_on_one_line():
    new = edit("{store: {trash_days: 1}}\n", "log", "level", "debug")
    assert new == "{store: {trash_days: 1}, log: {level: debug}}\n"


def test_a_merged_block_gets_its_own_value():
    text = "base: &b {trash_days: 1}\nstore:\n  <<: *b\n  wal_limit_mb: 5\n"
    new = edit(text, "store", "trash_days", 2)
    assert yaml_reader.parse(new, PATH)["store"] == {"trash_days": 2, "wal_limit_mb": 5}
    assert yaml_reader.parse(new, PATH)["base"] == {"trash_days": 1}


@pytest.mark.parametrize("text", ["yes", "Off", "null", "1", "1.5", "a: b", "# c", "", "é", "[x"])
def test_texts_that_yaml_may_read_as_another_type_are_quoted(text):
    new = edit("", "display", "timezone", text)
    assert yaml_reader.parse(new, PATH) == {"display": {"timezone": text}}
    assert '"' in new


NAMES = st.lists(
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=12),
    unique=True,
    max_size=5,
).map(tuple)


@given(first=NAMES, second=NAMES)
def test_any_list_of_names_can_be_written_and_changed(first, second):
    text = edit(FULL, "plugins", "disabled", first)
    assert yaml_reader.parse(text, PATH)["plugins"]["disabled"] == list(first)
    again = edit(text, "plugins", "disabled", second)
    assert yaml_reader.parse(again, PATH)["plugins"]["disabled"] == list(second)
    in_block = edit(FULL, "plugins", "enabled", second)
    assert yaml_reader.parse(in_block, PATH)["plugins"]["enabled"] == list(second)


@given(days=st.integers(0, 36500), seconds=st.floats(0.1, 600))
def test_setting_and_unsetting_returns_to_the_same_text(days, seconds):
    text = edit(FULL, "store", "trash_days", days)
    text = edit(text, "store", "busy_seconds", seconds)
    assert yaml_reader.parse(text, PATH)["store"] == {"trash_days": days, "busy_seconds": seconds}
    text = edit(text, "store", "busy_seconds", None)
    assert edit(text, "store", "trash_days", 30) == FULL


SERVER = {
    "command": "npx",
    "args": ["-y", "a b", "${X}"],
    "env": {"TOKEN": "${TOKEN}", "on": "yes"},
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\nllm:\n  model: a  # why\n",
        "mcp_servers:\n",
        "mcp_servers: {}\n",
        "mcp_servers: # none\nllm: {model: a}\n",
        "mcp_servers:\n    old:\n        url: http://x  # local\n\n# the end\n",
        "mcp_servers: {old: {url: http://x}}  # short\n",
        "{mcp_servers: {old: {url: http://x}}}\n",
        "llm:\r\n  model: a\r\nmcp_servers:\r\n  old:\r\n    url: http://x\r\n",
        "mcp_servers:\n  old:\n    url: http://x",
    ],
)
@pytest.mark.parametrize("name", ["new", "a.b", "on", "12"])
def test_a_nested_entry_is_added_and_removed_without_other_changes(text, name):
    added = with_value(text, "mcp_servers", name, SERVER, PATH)
    block = yaml_reader.parse(added, PATH)["mcp_servers"]
    assert isinstance(block, dict)
    assert block[name] == SERVER
    for line in text.split("\n"):
        if "{" not in line and line.strip():
            assert line in added
    removed = with_value(added, "mcp_servers", name, None, PATH)
    before, after = yaml_reader.parse(text, PATH), yaml_reader.parse(removed, PATH)
    assert {key: value for key, value in after.items() if value} == {
        key: value for key, value in before.items() if value
    }
    if "old:" in text and "{" not in text and text.endswith("\n"):
        assert removed == text


def test_an_added_server_is_readable():
    text = with_value("", "mcp_servers", "files", {"command": "npx", "args": ["-y", "x"]}, PATH)
    assert text == 'mcp_servers:\n  files:\n    command: npx\n    args: ["-y", x]\n'
