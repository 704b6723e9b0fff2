"""config.yaml and .env are read by precedence and edited without side effects."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest

from hermes_core.config.file import ConfigFile
from hermes_core.config.schema import Setting
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import ConfigError

TOKEN = Setting("chat.token", "str", "", "A token.", secret=True, secret_variable="CHAT_TOKEN")
TABLE = (*SETTINGS, TOKEN)


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "configured"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def config(home):
    return ConfigFile(home / "config.yaml", home / ".env", TABLE, environ={})


def reopened(home, environ=None):
    return ConfigFile(home / "config.yaml", home / ".env", TABLE, environ=environ or {})


def write(home, text):
    (home / "config.yaml").write_text(text)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_without_files_every_setting_has_its_default(config):
    assert all(entry.source == "default" for entry in config.entries())
    assert config.get("store.busy_seconds") == 10.0


def test_reading_creates_no_file(config, home):
    config.entries()
    config.check()
    assert list(home.iterdir()) == []


def test_a_set_value_is_read_by_the_next_process(config, home):
    assert config.set("store.trash_days", "7") == 7
    assert config.get("store.trash_days") == 7
    assert reopened(home).entry("store.trash_days") == ("store.trash_days", 7, "config.yaml")


def test_values_are_shown_the_way_they_are_typed(config, home):
    for name, text in {"sessions.auto_prune": "true", "plugins.enabled": "a, b"}.items():
        config.set(name, text)
        assert reopened(home).entry(name).text == text


def test_the_environment_overrides_the_file_which_overrides_the_default(config, home):
    config.set("store.trash_days", "7")
    entry = reopened(home, {"HERMES_STORE_TRASH_DAYS": "9"}).entry("store.trash_days")
    assert (entry.value, entry.source) == (9, "environment")


def test_an_empty_variable_counts_as_not_set(home):
    assert reopened(home, {"HERMES_STORE_TRASH_DAYS": ""}).get("store.trash_days") == 30


def test_null_in_the_file_means_the_default(home):
    write(home, "store:\n  trash_days:\nsessions: ~\n")
    assert reopened(home).get("store.trash_days") == 30
    assert reopened(home).get("sessions.auto_prune") is False


def test_a_written_file_is_readable_by_its_owner_only(config, home):
    write(home, "store: {}\n")
    (home / "config.yaml").chmod(0o644)
    config.set("store.trash_days", "7")
    config.set("chat.token", "x")
    assert mode(home / "config.yaml") == mode(home / ".env") == 0o600


def test_a_linked_configuration_stays_a_link(home):
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "real.yaml").write_text("# mine\n")
    (home / "config.yaml").symlink_to(home / "dotfiles" / "real.yaml")
    reopened(home).set("store.trash_days", "7")
    assert (home / "config.yaml").is_symlink()
    assert "trash_days: 7" in (home / "dotfiles" / "real.yaml").read_text()


def test_an_invalid_value_in_the_file_affects_only_its_setting(home):
    write(home, "store:\n  trash_days: many\n  wal_limit_mb: 5\n")
    settings = reopened(home).settings()
    assert settings.get_int("store.wal_limit_mb") == 5
    with pytest.raises(ConfigError, match=r"store\.trash_days in .*config\.yaml is 'many'"):
        settings.get_int("store.trash_days")


def test_an_invalid_value_in_the_environment_names_the_variable(home):
    with pytest.raises(ConfigError, match="HERMES_LOG_LEVEL"):
        reopened(home, {"HERMES_LOG_LEVEL": "loud"}).get("log.level")


def test_an_invalid_value_is_never_written(config, home):
    with pytest.raises(ConfigError, match="from 0 to 23"):
        config.set("session_reset.at_hour", "24")
    assert not (home / "config.yaml").exists()


NO_URLS = [
    "localhost:11434/v1",
    "ftp://a.example",
    "http://",
    "http://a b",
    "http://[::1",
    "http://a:b",
]


@pytest.mark.parametrize("text", NO_URLS)
def test_a_text_that_is_no_url_is_refused_with_an_explanation(config, home, text):
    with pytest.raises(ConfigError) as refused:
        config.set("llm.base_url", text)
    expected = "it must be a URL that starts with http:// or https://."
    assert str(refused.value) == f"llm.base_url is {text!r}; {expected}"
    config.set("llm.base_url", "http://127.0.0.1:11434/v1")
    config.set("llm.base_url", "")


@pytest.mark.parametrize("url", ["HTTP://[::1]:8080/v1", "https://a:b@c.example?d=e"])
def test_unusual_urls_are_accepted(config, url):
    assert config.set("llm.base_url", f" {url} ") == url


@pytest.mark.parametrize("name", ["llm.base_url", "store.url"])
@pytest.mark.parametrize("value", ["[a, b]", "{a: b}", "true"])
def test_a_url_in_the_file_that_is_no_text_is_an_error_and_not_empty(home, name, value):
    section, _, key = name.partition(".")
    write(home, f"{section}:\n  {key}: {value}\n")
    with pytest.raises(ConfigError, match="it must be"):
        reopened(home).get(name)


def test_unset_restores_the_default(config, home):
    config.set("store.trash_days", "7")
    assert config.unset("store.trash_days") is True
    assert config.unset("store.trash_days") is False
    assert reopened(home).get("store.trash_days") == 30


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("store:\n  trash_days: [1\n", "line 3, column 1"),
        ("store:\n\ttrash_days: 1\n", "line 2, column 1"),
        ("store: 1\nstore: 2\n", "line 2"),
    ],
)
def test_broken_yaml_is_reported_with_line_and_column_and_advice(home, text, where):
    write(home, text)
    with pytest.raises(ConfigError) as caught:
        reopened(home).get("store.trash_days")
    assert where in str(caught.value)
    assert "Correct the line" in str(caught.value)
    assert [problem.is_error for problem in reopened(home).check()] == [True]


def test_broken_yaml_is_never_overwritten(home):
    write(home, "store: [\n")
    with pytest.raises(ConfigError):
        reopened(home).set("store.trash_days", "7")
    assert (home / "config.yaml").read_text() == "store: [\n"


@pytest.mark.parametrize("data", [b"store: \xff\xfe", b"a: \x00", b"- a\n- b\n", b"just words"])
def test_a_file_that_is_not_a_configuration_is_refused(home, data):
    (home / "config.yaml").write_bytes(data)
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        reopened(home).get("store.trash_days")


def test_a_folder_instead_of_the_file_is_refused(home):
    (home / "config.yaml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        reopened(home).get("store.trash_days")


def test_check_reports_unknown_keys_as_notes_and_bad_values_as_errors(home):
    write(home, "model: x\nstore:\n  trash_day: 1\n  wal_limit_mb: no\nlog: 5\n")
    (home / "config.yaml").chmod(0o600)
    problems = {p.name: p for p in reopened(home).check()}
    assert set(problems) == {"model", "store.trash_day", "store.wal_limit_mb", "log"}
    assert not problems["model"].is_error
    assert "'store.trash_days'" in problems["store.trash_day"].message
    assert problems["store.wal_limit_mb"].is_error
    assert problems["log"].is_error


def test_check_reports_variables_that_set_nothing(home):
    (problem,) = reopened(home, {"HERMES_STORE_TRASH_DAY": "1", "HERMES_HOME": "/x"}).check()
    assert "HERMES_STORE_TRASH_DAYS" in problem.message


def test_check_reports_a_folder_that_other_users_can_read(home):
    home.chmod(0o755)
    (problem,) = reopened(home).check()
    assert (problem.is_error, f"chmod 700 {home}" in problem.message) == (False, True)


def test_check_reports_secrets_that_other_users_can_read(home):
    (home / ".env").write_text("CHAT_TOKEN=x\n")
    (home / ".env").chmod(0o644)
    (problem,) = reopened(home).check()
    assert problem.is_error
    assert "chmod 600" in problem.message


def test_a_configuration_of_hermes_agent_is_accepted_and_kept(home):
    old = "model:\n  default: big\nsessions:\n  retention_days: 90\n  vacuum_after_prune: true\n"
    write(home, old)
    config = reopened(home)
    assert all(not p.is_error for p in config.check())
    config.set("store.trash_days", "7")
    assert (home / "config.yaml").read_text().startswith(old)


def test_a_secret_goes_to_the_env_file_and_is_never_shown(config, home):
    assert config.entry("chat.token") == ("chat.token", "not set", "default")
    assert config.set("chat.token", "s3cret value") == "set"
    assert not (home / "config.yaml").exists()
    assert config.entry("chat.token") == ("chat.token", "set", ".env")
    assert "s3cret" not in repr(config.entries())
    assert config.settings().get_secret("chat.token") == "s3cret value"
    assert reopened(home, {"CHAT_TOKEN": "other"}).secret("chat.token") == "other"
    assert reopened(home, {"CHAT_TOKEN": "other"}).entry("chat.token").source == "environment"
    assert config.unset("chat.token") is True
    assert config.secret("chat.token") is None


def test_only_a_secret_can_be_read_as_a_secret(config):
    with pytest.raises(TypeError):
        config.secret("log.level")


def test_the_view_is_typed_and_refuses_the_wrong_type(config):
    settings = config.settings()
    assert settings.get_bool("sessions.auto_prune") is False
    assert settings.get_int("store.trash_days") == 30
    assert settings.get_float("store.busy_seconds") == 10.0
    assert settings.get_float("store.trash_days") == 30.0
    assert settings.get_str("log.level") == "info"
    assert settings.get_list("plugins.enabled") == ()
    for getter in (settings.get_bool, settings.get_int, settings.get_float, settings.get_list):
        with pytest.raises(TypeError):
            getter("log.level")
    with pytest.raises(TypeError):
        settings.get_str("store.trash_days")


SET_TEN_TIMES = """
import sys
from pathlib import Path
from hermes_core.config.file import ConfigFile
home = Path(sys.argv[1])
for number in range(10):
    ConfigFile(home / "config.yaml", home / ".env").set(sys.argv[2], str(number + 1))
"""


def test_concurrent_changes_of_different_settings_are_all_kept(home):
    names = ["store.trash_days", "store.wal_limit_mb", "session_reset.idle_minutes"]
    programs = [[sys.executable, "-c", SET_TEN_TIMES, str(home), name] for name in names]
    processes = [subprocess.Popen(program) for program in programs]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert [reopened(home).get(name) for name in names] == [10, 10, 10]


def test_the_yaml_library_is_not_loaded_without_a_file(home):
    program = (
        "import sys; from pathlib import Path; from hermes_core.config.file import ConfigFile\n"
        f"ConfigFile(Path({str(home)!r}, 'c.yaml'), Path({str(home)!r}, '.env')).entries()\n"
        "print([m for m in sys.modules if m.startswith(('ruamel', 'json', 'logging', 'difflib'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_the_home_folder_determines_the_paths_of_the_files(monkeypatch, home):
    monkeypatch.setenv("HERMES_HOME", str(home))
    ConfigFile.of_home().set("store.trash_days", "8")
    assert reopened(home).get("store.trash_days") == 8
