"""What a page may change by itself, and what needs a confirmation in a terminal."""

from __future__ import annotations

import argparse
import json
import stat
from typing import TYPE_CHECKING

import pytest

import hermes_plugin_host as plugin_host
from hermes_cli.commands.dashboard import confirm
from hermes_cli.output import CommandOutput
from hermes_core.clock import ManualClock
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_dashboard.pending_changes import EXPIRY_SECONDS, MAX_PENDING, PendingChanges
from support.command_line import run_hermes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx

EVIL = "https://evil.example/v1"
GRANTING = [
    ("llm.base_url", EVIL),
    ("llm.fallbacks", [f"{EVIL}#x"]),
    ("gateway.transcribe_command", "touch /tmp/x {file}"),
    ("gateway.transcribe_url", EVIL),
    ("gateway.http_host", "192.0.2.1"),
    ("gateway.unauthorized_dm_behavior", "pair"),
    ("dashboard.hosts", ["evil.example"]),
    ("plugins.enabled", ["evil"]),
    ("plugins.disabled", []),
    ("agent.approvals", "full"),
    ("keys.telegram", "123:abc"),
    ("keys.matrix", "token"),
    ("keys.discord", "token"),
    ("keys.slack_bot", "xoxb-1"),
    ("keys.slack_app", "xapp-1"),
    ("keys.webhook", "secret"),
    ("keys.api_server", "secret"),
]


@pytest.fixture
def plugin(hermes_home: Path) -> Iterator[Path]:
    """A plugin that leaves a file when its Python code is loaded."""
    folder = hermes_home / "plugins" / "mine"
    folder.mkdir(parents=True)
    mark = folder / "loaded"
    (folder / "plugin.yaml").write_text("name: mine\nversion: '1'\n")
    (folder / "__init__.py").write_text(
        f"import pathlib\ndef register(ctx): pathlib.Path({str(mark)!r}).touch()\n"
    )
    plugin_host.active.cache_clear()
    yield mark
    plugin_host.active.cache_clear()


@pytest.mark.parametrize(("name", "value"), GRANTING, ids=[name for name, _ in GRANTING])
def test_a_change_that_grants_something_waits_for_a_terminal(
    client: httpx.Client, hermes_home: Path, name: str, value: object
) -> None:
    before = client.get("/api/settings").json()
    answer = client.put(f"/api/settings/{name}", json={"value": value})
    assert answer.status_code == 202, answer.text
    change = answer.json()
    assert (change["state"], change["name"]) == ("pending", name)
    assert change["command"].endswith(f" hermes dashboard confirm {change['code']}")
    assert client.get("/api/settings").json() == before
    assert client.get("/api/pending-changes").json()["items"] == [change]
    path = hermes_home / "run" / "pending-changes.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_confirmed_setting_takes_effect_and_the_page_shows_it(client: httpx.Client) -> None:
    change = client.put("/api/settings/llm.base_url", json={"value": EVIL}).json()
    listed = run_hermes("dashboard", "confirm")
    assert (listed.code, change["code"] in listed.out, EVIL in listed.out) == (0, True, True)
    unanswered = run_hermes("dashboard", "confirm", change["code"])
    assert unanswered.code == 2
    assert "--yes" in unanswered.err
    assert ConfigFile.of_home().get("llm.base_url") == ""
    confirmed = run_hermes("dashboard", "confirm", change["code"].lower(), "--yes")
    assert confirmed.code == 0, confirmed.err
    assert f"(empty) -> {EVIL}" in confirmed.out
    assert ConfigFile.of_home().get("llm.base_url") == EVIL
    shown = client.get("/api/pending-changes").json()["items"]
    assert [(each["code"], each["state"]) for each in shown] == [(change["code"], "applied")]
    again = run_hermes("dashboard", "confirm", change["code"], "--yes")
    assert (again.code, "Unknown or expired code" in again.err) == (2, True)


def test_several_changes_are_confirmed_by_one_command(client: httpx.Client) -> None:
    names = ("llm.base_url", "web.search_url")
    for name in names:
        client.put(f"/api/settings/{name}", json={"value": EVIL})
    listed = client.get("/api/pending-changes").json()
    codes = [each["code"] for each in listed["items"]]
    assert listed["command"].endswith(f" hermes dashboard confirm {' '.join(codes)}")
    confirmed = run_hermes("dashboard", "confirm", *codes, "--yes")
    assert confirmed.code == 0, confirmed.err
    assert confirmed.out.count(f"-> {EVIL}") == 2
    assert [ConfigFile.of_home().get(name) for name in names] == [EVIL, EVIL]
    assert client.get("/api/pending-changes").json()["command"] == ""


def test_an_expired_code_does_not_keep_the_others_from_being_applied(client: httpx.Client) -> None:
    names = ("llm.base_url", "web.search_url")
    codes = [
        client.put(f"/api/settings/{name}", json={"value": EVIL}).json()["code"] for name in names
    ]
    result = run_hermes("dashboard", "confirm", codes[0], "XXXXXX", codes[1], "--yes")
    assert [ConfigFile.of_home().get(name) for name in names] == [EVIL, EVIL]
    assert "Applied 2 of 3 changes." in result.out
    assert "Unknown or expired code 'XXXXXX'" in result.err
    assert result.code == 2


def test_only_expired_codes_ask_nothing(client: httpx.Client) -> None:
    client.put("/api/settings/llm.base_url", json={"value": EVIL})
    result = run_hermes("dashboard", "confirm", "XXXXXX", "YYYYYY")
    assert "Apply" not in result.out
    assert "Unknown or expired code 'XXXXXX'" in result.err
    assert "Unknown or expired code 'YYYYYY'" in result.err
    assert result.code == 2


def test_a_change_cancelled_while_the_terminal_asks_is_not_applied(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = client.put("/api/settings/llm.base_url", json={"value": EVIL}).json()["code"]

    def cancel(*_arguments: object, **_options: object) -> bool:
        return client.delete(f"/api/pending-changes/{code}").status_code == 204

    monkeypatch.setattr(confirm, "confirm", cancel)
    with pytest.raises(UsageError, match="Unknown or expired code"):
        confirm.run(argparse.Namespace(codes=[code], yes=False, json=False), CommandOutput())
    assert ConfigFile.of_home().get("llm.base_url") == ""


def test_a_reset_that_grants_something_waits_too(client: httpx.Client) -> None:
    ConfigFile.of_home().set("llm.base_url", EVIL)
    change = client.delete("/api/settings/llm.base_url")
    assert (change.status_code, change.json()["old"]) == (202, EVIL)
    assert ConfigFile.of_home().get("llm.base_url") == EVIL
    assert run_hermes("dashboard", "confirm", change.json()["code"], "-y").code == 0
    assert ConfigFile.of_home().get("llm.base_url") == ""


def test_a_page_cannot_load_a_plugin(client: httpx.Client, plugin: Path) -> None:
    answer = client.post("/api/plugins/mine/enable")
    assert not plugin.exists()
    assert answer.status_code == 202, answer.text
    item = next(one for one in client.get("/api/plugins").json()["items"] if one["key"] == "mine")
    assert (item["is_enabled"], item["is_loaded"]) == (False, False)
    confirmed = run_hermes("dashboard", "confirm", answer.json()["code"], "--yes")
    assert "plugin mine" in confirmed.out
    item = next(one for one in client.get("/api/plugins").json()["items"] if one["key"] == "mine")
    assert (item["is_enabled"], item["is_loaded"]) == (True, True)
    assert plugin.exists()


def test_a_credential_is_never_shown(client: httpx.Client, hermes_home: Path) -> None:
    change = client.put("/api/settings/keys.telegram", json={"value": "123:secret-token"}).json()
    assert (change["old"], change["new"]) == ("not set", "a new value (hidden)")
    for shown in (run_hermes("dashboard", "confirm"), run_hermes("dashboard", "confirm", "--json")):
        assert "secret-token" not in shown.out + shown.err
    confirmed = run_hermes("dashboard", "confirm", change["code"], "--yes")
    assert "secret-token" not in confirmed.out
    assert ConfigFile.of_home().secret("keys.telegram") == "123:secret-token"
    # The value leaves the file with the confirmation.
    assert "secret-token" not in (hermes_home / "run" / "pending-changes.json").read_text()


def test_what_grants_nothing_is_changed_at_once(client: httpx.Client) -> None:
    ConfigFile.of_home().set("agent.approvals", "full")
    ConfigFile.of_home().set("keys.telegram", "123:abc")
    less = client.put("/api/settings/agent.approvals", json={"value": "plan"})
    assert (less.status_code, less.json()["value"]) == (200, "plan")
    assert client.delete("/api/settings/keys.telegram").json()["is_set"] is False
    assert client.put("/api/settings/keys.openai", json={"value": "sk-1"}).status_code == 200
    assert (
        client.put("/api/settings/agent.approvals", json={"value": "workspace"}).status_code == 202
    )


def test_a_page_may_choose_a_hosted_provider_and_its_key(client: httpx.Client) -> None:
    ConfigFile.of_home().set("llm.base_url", "https://own.example/v1")
    ConfigFile.of_home().set("llm.key", "key-of-own-example")
    body = {"provider": "openrouter", "model": "some/model", "key": "sk-or-1"}
    saved = client.put("/api/models/default", json=body)
    assert (saved.status_code, saved.json()["model"]) == (200, "some/model")
    config = ConfigFile.of_home()
    assert config.get("llm.base_url") == "https://openrouter.ai/api/v1"
    assert config.secret("keys.openrouter") == "sk-or-1"
    assert config.secret("llm.key") is None  # it belongs to the previous host
    other = client.put("/api/models/default", json={"provider": EVIL, "model": "x"})
    assert other.status_code == 422


def test_an_invalid_value_is_rejected_at_once(client: httpx.Client) -> None:
    refused = client.put("/api/settings/agent.approvals", json={"value": "everything"})
    assert refused.status_code == 400
    assert client.get("/api/pending-changes").json()["items"] == []


def test_a_page_can_cancel_its_request(client: httpx.Client) -> None:
    code = client.put("/api/settings/llm.base_url", json={"value": EVIL}).json()["code"]
    assert client.delete(f"/api/pending-changes/{code}").status_code == 204
    assert client.delete(f"/api/pending-changes/{code}").status_code == 404
    assert run_hermes("dashboard", "confirm", code, "--yes").code == 2


def test_a_second_request_replaces_the_first(client: httpx.Client) -> None:
    first = client.put("/api/settings/llm.base_url", json={"value": EVIL}).json()
    second = client.put(
        "/api/settings/llm.base_url", json={"value": "https://other.example"}
    ).json()
    items = client.get("/api/pending-changes").json()["items"]
    assert [item["code"] for item in items] == [second["code"]] != [first["code"]]


def test_requests_expire_and_their_number_is_limited(tmp_path: Path) -> None:
    clock = ManualClock()
    changes = PendingChanges(tmp_path, clock)
    codes = [changes.add("plugin", f"p{number}", None).code for number in range(MAX_PENDING)]
    with pytest.raises(UsageError, match="Too many changes"):
        changes.add("plugin", "one-more", None)
    clock.advance(EXPIRY_SECONDS)
    assert changes.current() == []
    with pytest.raises(UsageError, match="expired"):
        changes.find(codes[0])
    assert changes.add("plugin", "later", None).state == "pending"
    assert len(json.loads(changes.path.read_text())) == 1
