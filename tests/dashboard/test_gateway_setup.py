"""Platforms and people of the gateway: forms, roles, and what needs a confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import hermes_plugin_host
from gateway.platforms.registry import BUILT_IN_PLATFORMS
from gateway.process.config_loader import config_of_home
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from support.command_line import run_hermes
from support.pairings import pair
from support.plugin_folders import enable_plugins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx

    from hermes_state import SessionDB

OPTIONS = "/api/gateway/platforms/options"


def fields_of(client: httpx.Client, platform: str) -> dict[str, dict[str, object]]:
    forms = {item["name"]: item for item in client.get("/api/gateway/platforms").json()["items"]}
    return {field["name"]: field for field in forms[platform]["fields"]}


def test_every_platform_with_a_form_has_its_credentials(client: httpx.Client) -> None:
    names = {setting.name for setting in SETTINGS}
    assert all(set(platform.credentials) <= names for platform in BUILT_IN_PLATFORMS)
    shown = {item["name"]: item for item in client.get("/api/gateway/platforms").json()["items"]}
    assert list(shown) == [platform.name for platform in BUILT_IN_PLATFORMS if platform.options]
    assert shown["telegram"]["is_enabled"] is False
    assert shown["telegram"]["missing"] == "Not set: TELEGRAM_BOT_TOKEN"
    assert (shown["telegram"]["can_test"], shown["webhook"]["can_test"]) == (True, False)


PLUGIN = """
from hermes_core.config.platform_spec import ENABLED, PlatformSpec
from hermes_core.config.schema import Setting
def register(ctx):
    ctx.register_platform(PlatformSpec(
        "chirp", "Chirp", lambda context: None, help="Sign up.", optional_secrets=("CHIRP_KEY",),
        options=(ENABLED, Setting("volume", "int", 3, "How loud."), Setting(
            "password", "str", "", "The password.", secret_variable="CHIRP_KEY", secret=True)),
    ))
"""


@pytest.fixture
def chirp(hermes_home: Path) -> Iterator[None]:
    enable_plugins(hermes_home, chirp=PLUGIN)
    hermes_plugin_host.active.cache_clear()
    yield
    hermes_plugin_host.active.cache_clear()


@pytest.mark.usefixtures("chirp")
def test_a_platform_of_a_plugin_has_a_form(client: httpx.Client, hermes_home: Path) -> None:
    assert client.put(f"{OPTIONS}/platforms.chirp.volume", json={"value": 7}).status_code == 200
    assert "volume: 7" in (hermes_home / "config.yaml").read_text()
    client.put(f"{OPTIONS}/platforms.chirp.password", json={"value": "hush"})
    assert "CHIRP_KEY=hush" in (hermes_home / ".env").read_text()
    password = fields_of(client, "chirp")["platforms.chirp.password"]
    assert (password["value"], password["is_secret"], password["is_set"]) == (None, True, True)
    assert "hush" not in client.get("/api/gateway/platforms").text


def test_an_option_that_grants_nothing_is_written_at_once(
    client: httpx.Client, hermes_home: Path
) -> None:
    name = "platforms.telegram.poll_seconds"
    saved = client.put(f"{OPTIONS}/{name}", json={"value": 7})
    assert (saved.status_code, saved.json()["value"], saved.json()["origin"]) == (200, 7, "file")
    refused = client.put(f"{OPTIONS}/{name}", json={"value": 0})
    assert (refused.status_code, "from 1 to" in refused.json()["detail"]) == (400, True)
    assert "poll_seconds: 7" in (hermes_home / "config.yaml").read_text()
    assert client.delete(f"{OPTIONS}/{name}").json()["is_set"] is False
    assert client.put(f"{OPTIONS}/platforms.telegram.nothing", json={"value": 1}).status_code == 404


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("telegram.base_url", "https://evil.example"),
        ("telegram.enabled", True),
        ("telegram.allowed_users", ["1", "2"]),
        ("telegram.allow_admin_from", ["666"]),
        ("telegram.require_mention", False),
        ("matrix.homeserver", "https://evil.example"),
        ("email.verify_sender", False),
        ("email.imap_host", "evil.example"),
    ],
)
def test_an_option_that_grants_something_waits_for_a_terminal(
    client: httpx.Client, key: str, value: object
) -> None:
    name = f"platforms.{key}"
    before = fields_of(client, key.partition(".")[0])[name]
    asked = client.put(f"{OPTIONS}/{name}", json={"value": value})
    assert (asked.status_code, asked.json()["kind"]) == (202, "platform"), asked.text
    assert fields_of(client, key.partition(".")[0])[name] == before


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("telegram.base_url", "not a url", "http"),
        ("telegram.webhook_url", "ftp://x.example", "http"),
        ("matrix.homeserver", "https://", "http"),
        ("matrix.homeserver", "https://x.example\nEVIL=1", "one line"),
        ("email.imap_host", "imap.example\x00", "one line"),
        ("email.address", "a\x1b[2Jb@example.org", "one line"),
        ("telegram.allowed_users", ["1", "2\x1b"], "one line"),
    ],
)
def test_an_odd_text_is_refused_at_its_field(
    client: httpx.Client, key: str, value: object, reason: str
) -> None:
    refused = client.put(f"{OPTIONS}/platforms.{key}", json={"value": value})
    assert (refused.status_code, reason in refused.text) == (400, True), refused.text
    assert client.get("/api/pending-changes").json()["items"] == []


def test_confirmed_options_are_those_of_the_gateway(client: httpx.Client) -> None:
    values = {
        "allowed_users": ["1", "2"],
        "allow_admin_from": ["1"],
        "base_url": "http://127.0.0.1",
    }
    for key, value in values.items():
        asked = client.put(f"{OPTIONS}/platforms.telegram.{key}", json={"value": value}).json()
        done = run_hermes("dashboard", "confirm", asked["code"], "--yes")
        assert (done.code, f"option platforms.telegram.{key}" in done.out) == (0, True), done.err
    asked = client.put(
        f"{OPTIONS}/platforms.matrix.homeserver", json={"value": "https://m.example"}
    )
    assert run_hermes("dashboard", "confirm", asked.json()["code"], "--yes").code == 0
    (telegram,) = config_of_home().platforms.values()
    assert {key: telegram.extra[key] for key in values} == values
    assert ConfigFile.of_home().variables()["MATRIX_HOMESERVER"] == "https://m.example"
    assert (
        fields_of(client, "matrix")["platforms.matrix.homeserver"]["value"] == "https://m.example"
    )
    # Fewer people and fewer rights need no confirmation.
    less = client.put(f"{OPTIONS}/platforms.telegram.allowed_users", json={"value": ["1"]})
    assert (less.status_code, less.json()["value"]) == (200, ["1"])
    off = client.put(f"{OPTIONS}/platforms.telegram.enabled", json={"value": False})
    assert (off.status_code, off.json()["value"]) == (200, False)


def test_an_invalid_option_of_the_file_is_shown_at_its_field(
    client: httpx.Client, hermes_home: Path
) -> None:
    (hermes_home / "config.yaml").write_text(
        "platforms:\n  telegram: {poll_seconds: soon, home_channel: {chat_id: 5, name: Home}}\n"
    )
    fields = fields_of(client, "telegram")
    assert "must be a whole number" in str(fields["platforms.telegram.poll_seconds"]["problem"])
    assert fields["platforms.telegram.home_channel"]["value"] == "5"


def test_a_stored_credential_is_not_sent_to_the_page(client: httpx.Client) -> None:
    ConfigFile.of_home().set("keys.telegram", "123:hunter2")
    answer = client.get("/api/gateway/platforms")
    assert "hunter2" not in answer.text
    assert fields_of(client, "telegram")["keys.telegram"]["is_set"] is True


def test_a_role_with_more_rights_waits_for_a_terminal(db: SessionDB, client: httpx.Client) -> None:
    pair(db, "telegram", "42", "Ada")
    (ada,) = client.get("/api/gateway/people").json()["items"]
    assert (ada["name"], ada["role"], ada["is_paired"]) == ("Ada", "member", True)
    path = "/api/gateway/people/telegram/42"
    asked = client.put(path, json={"role": "owner"})
    assert asked.status_code == 202
    assert (asked.json()["old"], asked.json()["new"]) == ("member", "owner")
    assert db.people.role_of("telegram", "42") is None
    done = run_hermes("dashboard", "confirm", asked.json()["code"], "--yes")
    assert "role of telegram:42" in done.out
    assert db.people.role_of("telegram", "42") == "owner"
    less = client.put(path, json={"role": "guest"})
    assert (less.status_code, less.json()["role"]) == (200, "guest")
    assert db.people.role_of("telegram", "42") == "guest"
    assert client.put("/api/gateway/people/telegram/43", json={"role": "guest"}).status_code == 404
    assert client.put(path, json={"role": "king"}).status_code == 422


def test_a_person_named_as_the_owner_keeps_the_role(
    client: httpx.Client, hermes_home: Path
) -> None:
    (hermes_home / "config.yaml").write_text("platforms: {telegram: {allow_admin_from: [7]}}\n")
    refused = client.put("/api/gateway/people/telegram/7", json={"role": "guest"})
    assert (refused.status_code, "allow_admin_from" in refused.json()["detail"]) == (400, True)


def test_an_owner_is_paired_with_a_confirmation(db: SessionDB, client: httpx.Client) -> None:
    code = db.pairings.request("matrix", "@ada:example.org", "Ada")
    body = {"platform": "matrix", "code": code, "role": "owner"}
    asked = client.post("/api/gateway/pairings", json=body).json()
    assert (asked["name"], asked["old"]) == ("matrix:@ada:example.org", "no access")
    assert run_hermes("dashboard", "confirm", asked["code"], "--yes").code == 0
    (ada,) = client.get("/api/gateway/people").json()["items"]
    assert (ada["user_id"], ada["role"]) == ("@ada:example.org", "owner")


def test_a_code_that_was_used_meanwhile_is_refused(db: SessionDB, client: httpx.Client) -> None:
    code = db.pairings.request("telegram", "42", "Ada")
    assert code is not None
    body = {"platform": "telegram", "code": code}
    asked = client.post("/api/gateway/pairings", json=body).json()
    assert db.pairings.approve("telegram", code) is not None
    db.pairings.revoke("telegram", "42")
    refused = run_hermes("dashboard", "confirm", asked["code"], "--yes")
    assert (refused.code, "has expired or was used" in refused.err) == (2, True)
    assert db.pairings.allowed() == []


def test_a_change_that_cannot_be_applied_does_not_keep_the_others_waiting(
    db: SessionDB, client: httpx.Client
) -> None:
    code = db.pairings.request("telegram", "42", "Ada")
    assert code is not None
    client.post("/api/gateway/pairings", json={"platform": "telegram", "code": code})
    assert db.pairings.approve("telegram", code) is not None
    client.put("/api/settings/llm.base_url", json={"value": "https://a.example/v1"})
    codes = [each["code"] for each in client.get("/api/pending-changes").json()["items"]]
    confirmed = run_hermes("dashboard", "confirm", *codes, "--yes")
    assert (confirmed.code, "has expired or was used" in confirmed.err) == (2, True)
    assert "Applied 1 of 2 changes." in confirmed.out
    assert ConfigFile.of_home().get("llm.base_url") == "https://a.example/v1"
    states = [each["state"] for each in client.get("/api/pending-changes").json()["items"]]
    assert states == ["pending", "applied"]


def test_a_pairing_code_requests_access_and_guessing_is_locked(
    db: SessionDB, client: httpx.Client
) -> None:
    code = db.pairings.request("telegram", "42", "Ada")
    assert client.get("/api/gateway").json()["asking"][0]["user_name"] == "Ada"
    wrong = client.post("/api/gateway/pairings", json={"platform": "telegram", "code": "NO"})
    assert wrong.status_code == 404
    right = client.post("/api/gateway/pairings", json={"platform": "Telegram", "code": code})
    change = right.json()
    assert right.status_code == 202, right.text
    assert (right.status_code, change["name"], change["new"]) == (202, "telegram:42", "member")
    assert db.pairings.allowed() == []  # a page grants nothing
    assert run_hermes("dashboard", "confirm", change["code"], "--yes").code == 0
    assert [user.user_id for user in db.pairings.allowed()] == ["42"]
    assert client.delete("/api/gateway/users/telegram/42").status_code == 204
    assert client.delete("/api/gateway/users/telegram/42").status_code == 404
    codes = [
        client.post(
            "/api/gateway/pairings", json={"platform": "telegram", "code": "NO"}
        ).status_code
        for _ in range(6)
    ]
    assert codes[-1] == 429
