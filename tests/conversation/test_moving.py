"""What the files of hermes-agent mean in our settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_compat.original_home.home import (
    ItemState,
    MoveContext,
    OriginalHome,
    TakenMarks,
    carry_out,
    find_home,
    offered_home,
    plan,
)
from hermes_compat.original_home.model import plan_fallbacks, translate
from hermes_compat.original_home.settings import plan_access, plan_settings
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, UsageError
from hermes_state import SessionDB
from support.original_homes import write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPENROUTER = "https://openrouter.ai/api/v1"
OPENAI = "https://api.openai.com/v1"
LOCAL = "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def _no_keys_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "original"
    folder.mkdir()
    return folder


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


def make_context(home: Path, db: SessionDB) -> MoveContext:
    return MoveContext(OriginalHome(home), db, ConfigFile.of_home(), TakenMarks(db))


def model_of(home: Path, config: dict[str, Any], env: str = "") -> tuple[str, ...]:
    write(home / "config.yaml", json.dumps(config))
    write(home / ".env", env)
    choice = translate(OriginalHome(home)).choice
    return (choice.api.name, choice.model, choice.base_url, choice.key) if choice else ()


@pytest.mark.parametrize(
    ("model", "env", "expected"),
    [
        ("z-ai/glm-5", "", ("openai", "z-ai/glm-5", OPENROUTER, "")),
        ({"default": "a/b", "provider": "auto"}, "", ("openai", "a/b", OPENROUTER, "")),
        (
            {"default": "anthropic/claude-x", "provider": "anthropic"},
            "",
            ("anthropic", "claude-x", "", ""),
        ),
        ({"model": "claude-x"}, "ANTHROPIC_API_KEY=k", ("anthropic", "claude-x", "", "")),
        ({"default": "gpt-x", "provider": "openai-api"}, "", ("openai", "gpt-x", OPENAI, "")),
        (
            {"default": "qwen", "provider": "custom", "base_url": f"{LOCAL}/", "api_key": "k"},
            "",
            ("openai", "qwen", LOCAL, "k"),
        ),
        (
            {"default": "qwen", "base_url": LOCAL, "api_key": "${MY_KEY}"},
            "MY_KEY=secret",
            ("openai", "qwen", LOCAL, "secret"),
        ),
        (
            {"default": "claude-x", "base_url": "https://api.anthropic.com"},
            "",
            ("anthropic", "claude-x", "", ""),
        ),
        (
            {"default": "m", "base_url": LOCAL, "api_mode": "anthropic_messages"},
            "",
            ("anthropic", "m", LOCAL, ""),
        ),
        (
            {"default": "m", "provider": "custom"},
            f"OPENAI_BASE_URL={LOCAL}",
            ("openai", "m", LOCAL, ""),
        ),
        ({"default": "m", "provider": "nous"}, "", ()),
        ({"provider": "openrouter"}, "", ()),
    ],
)
def test_the_model_is_translated(
    home: Path, model: object, env: str, expected: tuple[str, ...]
) -> None:
    assert model_of(home, {"model": model}, env) == expected


def test_a_provider_of_the_users_own_is_found_by_name(home: Path) -> None:
    own = {"name": "Box", "base_url": LOCAL, "api_key": "k"}
    model = {"default": "m", "provider": "custom:box"}
    config = {"model": model, "custom_providers": [own]}
    assert model_of(home, config) == ("openai", "m", LOCAL, "k")


def test_a_model_that_cannot_be_used_has_a_reason(home: Path) -> None:
    write(home / "config.yaml", "model: {default: m, provider: nous}")
    assert "'nous' is not available here" in translate(OriginalHome(home)).problem


def test_fallbacks_are_taken(home: Path, db: SessionDB) -> None:
    own = {"provider": "custom", "model": "q", "base_url": LOCAL}
    items = [{"provider": "anthropic", "model": "claude-x"}, own]
    write(home / "config.yaml", json.dumps({"fallback_providers": items}))
    done = list(carry_out(make_context(home, db), [plan_fallbacks]))
    assert [item.state for item in done] == [ItemState.TAKEN, ItemState.SKIP]
    assert ConfigFile.of_home().settings().get_list("llm.fallbacks") == ("anthropic:claude-x",)
    (again, _other) = plan(make_context(home, db), [plan_fallbacks])
    assert again.state is ItemState.HERE


@pytest.mark.parametrize(
    ("content", "users"),
    [
        ({"7": {"user_name": "ada"}}, {"7"}),
        ({"users": [{"user_id": 7}, {"id": "8"}]}, {"7", "8"}),
        (["7", 8], {"7", "8"}),
        ({"_note": "x", "7": "ada"}, {"7"}),
        ("nothing", set()),
    ],
)
def test_approved_users_are_read_in_every_form(
    home: Path, db: SessionDB, content: object, users: set[str]
) -> None:
    write(home / "pairing/discord-approved.json", json.dumps(content))
    write(home / "pairing/slack-approved.json", "{")
    done = list(carry_out(make_context(home, db), [plan_access]))
    taken = [item for item in done if item.state is ItemState.TAKEN]
    assert len(taken) == len(users)
    assert all(item.state is ItemState.SKIP for item in done if item not in taken)
    assert {user.user_id for user in db.pairings.allowed()} == users


def test_a_list_for_all_platforms_applies_to_those_with_a_token(home: Path, db: SessionDB) -> None:
    write(home / ".env", "GATEWAY_ALLOWED_USERS=7,*\nSLACK_BOT_TOKEN=x\n")
    done = list(carry_out(make_context(home, db), [plan_access]))
    assert [(item.name, item.state.value) for item in done] == [
        ("slack 7", "taken"),
        ("GATEWAY_ALLOWED_USERS=*", "not taken"),
    ]


def test_an_invalid_value_and_an_unreadable_file_are_reported(home: Path, db: SessionDB) -> None:
    write(home / "config.yaml", "session_reset: {mode: sometimes}\n")
    (item,) = plan(make_context(home, db), [plan_settings])
    assert item.state is ItemState.SKIP
    assert "sometimes" in item.detail
    write(home / "config.yaml", "model: [")
    (item,) = plan(make_context(home, db), [plan_settings])
    assert "not valid YAML" in item.detail


def test_tokens_are_not_copied_into_the_settings(home: Path, db: SessionDB) -> None:
    write(home / "config.yaml", "platforms: {slack: {token: xoxb, reply_to_mode: all}}\n")
    list(carry_out(make_context(home, db), [plan_settings]))
    assert ConfigFile.of_home().block("platforms") == {"slack": {"reply_to_mode": "all"}}


def test_a_failure_is_reported_and_the_next_item_is_taken(
    home: Path, db: SessionDB, hermes_home: Path
) -> None:
    write(home / "config.yaml", "timezone: UTC\nsession_reset: {mode: idle}\n")
    write(hermes_home / "config.yaml", "{session_reset: &a {}, display: *a}\n")
    done = list(carry_out(make_context(home, db), [plan_settings]))
    assert ItemState.FAILED in {item.state for item in done}
    assert len(done) == 2


def test_a_home_is_found_and_offered(
    home: Path, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="No home of hermes-agent"):
        find_home(home)
    assert offered_home() is None
    monkeypatch.setenv("HOME", str(home))
    write(home / ".hermes/config.yaml", "model: a/b\n")
    for path in (None, home, home / ".hermes"):
        assert find_home(path).path == home / ".hermes"
    found = offered_home()
    assert found is not None
    assert not found.is_in_place
    write(hermes_home / "config.yaml", "model: c/d\n")
    assert find_home(None).is_in_place


def test_a_section_is_added_once(hermes_home: Path) -> None:
    path = write(hermes_home / "config.yaml", "# mine\nllm:\n  model: m")
    config = ConfigFile.of_home()
    config.add_block("streaming", {"enabled": True, "cursor": " ▉"})
    assert path.read_text().startswith("# mine\nllm:\n  model: m\n\nstreaming:\n  enabled: true\n")
    assert config.block("streaming") == {"enabled": True, "cursor": " ▉"}
    with pytest.raises(ConfigError, match="already exists"):
        config.add_block("streaming", {"enabled": False})


def test_what_no_part_of_the_move_reads_is_listed(home: Path, db: SessionDB) -> None:
    config = {
        "model": {"default": "m", "max_tokens": 5},
        "slack": {"allow_from": ["U1"], "reply_prefix": "x"},
        "skin": "dark",
    }
    write(home / "config.yaml", json.dumps(config))
    found = {item.name: item.detail for item in plan(make_context(home, db), [plan_settings])}
    assert found == {
        "model.max_tokens": "no such setting here",
        "slack.reply_prefix": "options of a platform are in platforms.slack here",
        "skin": "no such setting here",
    }
