"""`hermes import hermes-agent`: everything of its home is taken over, and nothing there changes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from gateway.config import GatewayConfig, Platform
from gateway.session import SessionSource, SessionStore
from hermes_conversation import achievements
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from state.test_old_schemas import OLD_TABLES
from support.file_hashes import file_hashes
from support.original_homes import ROUTE_KEY, SECRET, TOKEN, make_home, write
from support.postgres import IS_ON_POSTGRES
from support.terminal import on_terminal, wait_for_exit

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes
    from support.postgres import PostgresServer


@pytest.fixture(autouse=True)
def _no_choice_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HERMES_LLM_API", "HERMES_LLM_MODEL", "HERMES_LLM_BASE_URL", "HERMES_LLM_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A home of hermes-agent in another folder."""
    return make_home(tmp_path / "other" / ".hermes")


@pytest.fixture
def in_place(hermes_home: Path) -> Path:
    """A home of hermes-agent in the folder of Hermes."""
    return make_home(hermes_home)


def items(output: str) -> dict[tuple[str, str], tuple[str, str]]:
    """State and detail of every item, by kind and name."""
    return {
        (each["kind"], each["name"]): (each["state"], each["detail"])
        for each in json.loads(output)["items"]
    }


ORIGINAL_HOOKS = (
    "hooks:\n  pre_tool_call:\n  - {matcher: terminal, command: ~/.hermes/agent-hooks/check.sh}\n"
)


def test_shell_hooks_of_hermes_agent_are_refused_with_a_warning(
    hermes: Hermes, other: Path, hermes_home: Path
) -> None:
    with (other / "config.yaml").open("a") as file:
        file.write(ORIGINAL_HOOKS)
    planned = items(hermes("import", "hermes-agent", str(other), "--dry-run", "--json").out)
    state, detail = planned["hook", "pre_tool_call"]
    assert state == "not taken"
    assert "do not run here, so they block nothing" in detail
    done = hermes("import", "hermes-agent", str(other), "--yes")
    assert "Hooks not imported (pre_tool_call)" in done.err
    assert "pre_tool_call" not in (hermes_home / "config.yaml").read_text()


def test_doctor_reports_shell_hooks_that_never_run(hermes: Hermes, in_place: Path) -> None:
    with (in_place / "config.yaml").open("a") as file:
        file.write(ORIGINAL_HOOKS)
    finished = hermes("doctor", "--json")
    (check,) = [item for item in json.loads(finished.out)["checks"] if item["name"] == "hooks"]
    assert (finished.code, check["status"]) == (1, "failed")
    assert "unsupported event 'pre_tool_call'" in check["detail"]


def test_everything_of_another_home_is_taken_over(
    hermes: Hermes, other: Path, hermes_home: Path
) -> None:
    before = file_hashes(other)
    done = hermes("import", "hermes-agent", str(other), "--yes", "--json")
    assert (done.code, done.err) == (0, "")
    assert file_hashes(other) == before
    found = items(done.out)
    assert not [each for each in found.values() if each[0] == "failed"]
    settings = ConfigFile.of_home().settings()
    assert settings.get_str("llm.model") == "anthropic/claude-sonnet-4.6"
    assert settings.get_str("llm.base_url") == "https://openrouter.ai/api/v1"
    assert settings.get_int("llm.window") == 200_000
    assert settings.get_secret("keys.openrouter") == SECRET
    assert settings.get_secret("keys.telegram") == TOKEN
    assert settings.get_str("session_reset.mode") == "idle"
    assert settings.get_str("agent.busy_input") == "queue"
    assert settings.get_int("gateway.drain_seconds") == 60
    assert ConfigFile.of_home().block("mcp_servers")["files"]
    assert ConfigFile.of_home().check() == []
    assert (hermes_home / "memories/MEMORY.md").read_text() == "ada likes tea.\n"
    facts = json.loads(hermes("memory", "list", "--json").out)
    assert "ada likes tea." in [fact["text"] for fact in facts]
    assert {fact["created_by"] for fact in facts} == {"import"}
    script = hermes_home / "skills/notes/tea/scripts/boil.sh"
    assert script.stat().st_mode & 0o777 == 0o700
    with SessionDB() as db:
        assert [row["content"] for row in db.get_messages("s1")] == ["Green or black?", "Yes."]
        users = {(user.platform, user.user_id, user.user_name) for user in db.pairings.allowed()}
        assert ("telegram", "44", "ada") in users
        assert ("matrix", "@ada:example.org", "ada") in users
        assert {("telegram", "42", ""), ("telegram", "43", ""), ("telegram", "77", "")} <= users
        assert db.people.role_of("telegram", "42") == "owner"
        assert [route.session_key for route in db.routes.all()] == [ROUTE_KEY]
        assert db.schedules.is_imported("hermes-agent:a1b2")
    inherited = achievements.service().records.state()["inherited"]
    assert inherited["night_owl"] == {
        "unlocked_at": 1781500000, "first_tier": "Copper", "evidence": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "address", ["localhost:1234/v1", "http://[::1", "http://x/\x7f", "http://"]
)
def test_a_model_whose_address_is_no_url_is_not_taken(
    hermes: Hermes, other: Path, address: str
) -> None:
    section = {"default": "qwen3", "provider": "custom", "base_url": address}
    write(other / "config.yaml", json.dumps({"model": section}))
    done = hermes("import", "hermes-agent", str(other), "--yes", "--json")
    assert done.out, done.err
    state, detail = items(done.out)["model", "qwen3"]
    assert (state, repr(address) in detail, "http://" in detail) == ("not taken", True, True)
    shown = hermes("import", "hermes-agent", str(other), "--dry-run", HERMES_COMMAND="./hermes")
    assert "choose a model: ./hermes setup" in shown.out
    assert ConfigFile.of_home().settings().get_str("llm.model") == ""
    assert ConfigFile.of_home().check() == []


def test_what_is_not_taken_has_a_reason(hermes: Hermes, other: Path) -> None:
    shown = hermes("import", "hermes-agent", str(other), "--dry-run", "--json")
    found = items(shown.out)
    assert found["setting", "compression.enabled, compression.threshold"][0] == "not taken"
    assert "sandbox" in found["setting", "terminal.backend"][1]
    assert found["key", "FIRECRAWL_API_KEY"] == ("not taken", "not used here")
    assert "everyone" in found["allow list", "DISCORD_ALLOW_ALL_USERS"][1]
    assert found["job", "Script"] == ("not taken", "it runs a script")
    assert found["route", "1 chat"][0] == "not taken"
    assert "--profile work" in found["profile", "work"][1]
    assert SECRET not in shown.out
    assert TOKEN not in shown.out


@pytest.mark.parametrize(
    ("content", "reason"),
    [("[" * 100_000 + "]" * 100_000, "nested too deeply"), ('{"44": {', "Expecting"), ("", "Exp")],
)
def test_damaged_files_are_reported(hermes: Hermes, other: Path, content: str, reason: str) -> None:
    files = {
        ("job", "jobs.json"): "cron/jobs.json",
        ("pairing", "telegram-approved.json"): "pairing/telegram-approved.json",
        ("route", "sessions.json"): "sessions/sessions.json",
        ("achievements", "state.json"): "plugin-data/hermes-achievements/state.json",
    }
    for name in files.values():
        (other / name).write_text(content)
    shown = hermes("import", "hermes-agent", str(other), "--dry-run", "--json")
    assert shown.code == 0
    found = items(shown.out)
    for key in files:
        assert found[key][0] == "not taken"
        assert reason in found[key][1]
    assert found["pairing", "matrix @ada:example.org (ada)"][0] == "take"


def test_a_dry_run_changes_nothing(hermes: Hermes, other: Path, hermes_home: Path) -> None:
    shown = hermes("import", "hermes-agent", str(other), "--dry-run")
    assert shown.code == 0
    assert "anthropic/claude-sonnet-4.6" in shown.out
    assert "1 conversation, new or changed" in shown.out
    assert not (hermes_home / "state.db").exists()
    assert not (hermes_home / "config.yaml").exists()


def test_a_second_run_takes_nothing_twice_and_what_was_removed_stays_removed(
    hermes: Hermes, other: Path, hermes_home: Path
) -> None:
    hermes("import", "hermes-agent", str(other), "--yes")
    hermes("pairing", "revoke", "telegram", "44")
    (hermes_home / "skills/notes/tea/SKILL.md").unlink()
    before = (hermes_home / "config.yaml").read_bytes()
    again = hermes("import", "hermes-agent", str(other), "--yes")
    assert again.code == 0
    assert "Nothing to import." in again.out
    assert (hermes_home / "config.yaml").read_bytes() == before
    with SessionDB() as db:
        assert not db.pairings.is_allowed("telegram", "44")
        assert len(db.get_messages("s1")) == 2
    assert not (hermes_home / "skills/notes/tea/SKILL.md").exists()


def test_files_and_values_that_differ_are_kept_and_reported(
    hermes: Hermes, other: Path, hermes_home: Path
) -> None:
    write(hermes_home / "memories/MEMORY.md", "Mine.\n")
    write(hermes_home / ".env", "TELEGRAM_BOT_TOKEN=mine\n")
    write(hermes_home / "config.yaml", "llm:\n  model: mine\n")
    found = items(hermes("import", "hermes-agent", str(other), "--yes", "--json").out)
    assert "differs here" in found["memory", "memories/MEMORY.md"][1]
    assert found["key", "TELEGRAM_BOT_TOKEN"] == ("not taken", "another value is set here")
    assert found["model", "anthropic/claude-sonnet-4.6"][0] == "not taken"
    assert (hermes_home / "memories/MEMORY.md").read_text() == "Mine.\n"
    assert "TELEGRAM_BOT_TOKEN=mine" in (hermes_home / ".env").read_text()


@pytest.mark.skipif(IS_ON_POSTGRES, reason="the history is not in the folder")
def test_in_place_only_settings_are_translated(hermes: Hermes, in_place: Path) -> None:
    before = file_hashes(in_place)
    done = hermes("import", "hermes-agent", "--yes", "--json")
    assert (done.code, done.err) == (0, "")
    found = items(done.out)
    assert found["history", "1 conversation"][0] == "here"
    assert found["setting", "session_reset.mode"][0] == "here"
    settings = ConfigFile.of_home().settings()
    assert settings.get_str("llm.model") == "anthropic/claude-sonnet-4.6"
    assert settings.get_str("agent.busy_input") == "queue"
    assert "# the usual one" in (in_place / "config.yaml").read_text()
    with SessionDB() as db:
        assert db.pairings.is_allowed("telegram", "44")
        assert db.pairings.is_allowed("telegram", "43")
        assert db.schedules.is_imported("hermes-agent:a1b2")
    after = file_hashes(in_place)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"config.yaml", "state.db"}
    assert "Nothing to import." in hermes("import", "hermes-agent", "--yes").out


def test_profiles_are_moved_when_they_are_asked_for(hermes: Hermes, other: Path) -> None:
    found = items(
        hermes("import", "hermes-agent", str(other), "--profile", "work", "--yes", "--json").out
    )
    assert found["history", "state.db"][0] == "taken"
    with SessionDB() as db:
        assert [row["id"] for row in db.list_sessions_rich()] == ["w1"]
    assert hermes("import", "hermes-agent", str(other), "--all-profiles", "--yes").code == 0
    with SessionDB() as db:
        assert {row["id"] for row in db.list_sessions_rich()} == {"s1", "w1"}
    wrong = hermes("import", "hermes-agent", str(other), "--profile", "none")
    assert wrong.code == 2
    assert "Profiles: work." in wrong.err


def test_a_home_folder_that_contains_it_is_accepted(hermes: Hermes, other: Path) -> None:
    assert hermes("import", "hermes-agent", str(other.parent), "--dry-run").code == 0


def test_the_default_is_the_folder_in_the_users_home(hermes: Hermes, other: Path) -> None:
    shown = hermes("import", "hermes-agent", "--dry-run", "--json", HOME=str(other.parent))
    assert items(shown.out)["history", "state.db"][0] == "take"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["hermes-agent"], "No home of hermes-agent"),
        (["hermes-agent", "/nowhere"], "/nowhere is not a folder."),
        (["claude-code", "--profile", "x"], "Only `hermes import hermes-agent` has profiles."),
    ],
)
def test_a_missing_home_is_an_error(hermes: Hermes, arguments: list[str], text: str) -> None:
    finished = hermes("import", *arguments)
    assert finished.code == 2
    assert text in finished.err


def test_it_asks_on_a_terminal_and_without_one_needs_a_yes(
    hermes: Hermes, other: Path, hermes_home: Path
) -> None:
    asked = hermes("import", "hermes-agent", str(other))
    assert asked.code == 2
    assert "--yes" in asked.err
    child = on_terminal("import", "hermes-agent", str(other))
    child.expect(r"Import these items\? \[y/N\]")
    child.sendline("n")
    assert wait_for_exit(child) == 0
    assert not (hermes_home / "config.yaml").exists()


def test_in_place_the_history_is_taken_into_a_database(
    hermes: Hermes, in_place: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres.history() as url:
        monkeypatch.setenv("HERMES_STORE_URL", url)
        take_into_database(hermes, in_place)


def take_into_database(hermes: Hermes, in_place: Path) -> None:
    before = file_hashes(in_place)
    found = items(hermes("import", "hermes-agent", "--yes", "--json").out)
    assert found["history", "state.db"] == ("taken", "1 conversation, 2 messages")
    after = file_hashes(in_place)
    assert {name for name in before if after[name] != before[name]} == {"config.yaml"}


@pytest.mark.skipif(IS_ON_POSTGRES, reason="the history is not in the folder")
def test_an_old_history_in_place_is_moved_into_a_new_folder(
    hermes: Hermes, in_place: Path, tmp_path: Path
) -> None:
    (in_place / "state.db").unlink()
    with closing(sqlite3.connect(in_place / "state.db", isolation_level=None)) as connection:
        for statement in OLD_TABLES:
            connection.execute(statement)
    refused = hermes("import", "hermes-agent", "--yes")
    assert refused.code == 2
    assert "HERMES_HOME=~/.hermes-new hermes import hermes-agent" in refused.err
    new = {"HERMES_HOME": str(tmp_path / "new")}
    assert hermes("import", "hermes-agent", str(in_place), "--yes", **new).code == 0


@pytest.mark.parametrize("command", [["setup"], ["chat"]], ids=" ".join)
def test_the_first_start_offers_it(hermes_home: Path, in_place: Path, command: list[str]) -> None:
    child = on_terminal(*command)
    child.expect("Found settings of hermes-agent in .*hermes import hermes-agent")
    child.expect(r"Show what can be imported\? \[y/N\]")
    child.sendline("y")
    child.expect(r"Import these items\? \[y/N\]")
    child.sendline("y")
    child.expect(r"Imported \d+ items?")
    if command == ["chat"]:
        child.sendline("/quit")
    assert wait_for_exit(child) == 0
    text = (hermes_home / "config.yaml").read_text()
    assert "model: anthropic/claude-sonnet-4.6" in text
    assert in_place == hermes_home


def test_without_a_terminal_the_command_is_named(hermes: Hermes, in_place: Path) -> None:
    for arguments in (["chat", "-q", "hello"], ["setup"]):
        shown = hermes(*arguments)
        assert shown.code != 0
        text = f"{in_place}. Import them with `hermes import hermes-agent`."
        assert text in " ".join((shown.out + shown.err).split())


def test_a_killed_move_is_finished_by_the_next(
    hermes: Hermes, other: Path, hermes_home: Path
) -> None:
    """Kill it at growing delays; the next run completes it, and nothing is there twice."""
    for delay in (0.05, 0.3, 0.6, 0.9):
        command = [sys.executable, "-m", "hermes_cli", "import", "hermes-agent", str(other)]
        with subprocess.Popen([*command, "--yes"], stdout=subprocess.DEVNULL) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            process.kill()
    assert hermes("import", "hermes-agent", str(other), "--yes").code == 0
    assert "Nothing to import." in hermes("import", "hermes-agent", str(other), "--yes").out
    with SessionDB() as db:
        assert len(db.get_messages("s1")) == 2
        assert len(db.pairings.allowed()) == 5
        assert len(db.schedules.all()) == 1
    assert (hermes_home / "config.yaml").read_text().count("llm:") == 1


def test_a_chat_continues_its_conversation(hermes: Hermes, other: Path, hermes_home: Path) -> None:
    hermes("import", "hermes-agent", str(other), "--yes")
    store = SessionStore(hermes_home / "sessions", GatewayConfig())
    source = SessionSource(Platform.TELEGRAM, chat_id="42", chat_type="dm", user_id="42")
    assert store.get_or_create_session(source).session_id == "s1"
