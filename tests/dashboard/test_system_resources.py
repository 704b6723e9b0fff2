"""The gateway, hooks, settings, plugins and health over HTTP."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import hermes_plugin_host as plugin_host
from gateway.outbound.direct_send import Channel
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_dashboard.resources import gateway, health, hooks, logs, plugins, settings
from hermes_dashboard.resources.gateway import GatewayStatus, LoggedError, PlatformView
from hermes_state import SessionDB
from support.data_resources import FixedGateway, serve_resources
from support.pairings import pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        yield db


@pytest.fixture
def chats(db: SessionDB) -> FixedGateway:
    return FixedGateway(db)


@pytest.fixture
def client(db: SessionDB, hermes_home: Path, chats: FixedGateway) -> Iterator[httpx.Client]:
    plugin_host.active.cache_clear()
    with serve_resources(
        db, hermes_home, gateway, hooks, settings, plugins, health, logs, gateway=chats
    ) as client_:
        yield client_
    plugin_host.active.cache_clear()


# The gateway


def test_the_processes_that_use_the_history_are_listed(db: SessionDB, client: httpx.Client) -> None:
    lease = db.leases.acquire(db.create_session("s1", "cli"))
    (node,) = client.get("/api/gateway/nodes").json()
    assert node["pid"] == os.getpid()
    assert (node["is_alive"], node["turns"], node["platforms"]) == (True, 1, [])
    db.leases.release(lease)


def test_the_gateway_shows_queues_chats_and_users(
    db: SessionDB, client: httpx.Client, chats: FixedGateway
) -> None:
    db.create_session("talk", "telegram", is_owned=False)
    db.set_session_title("talk", "Chat with Ada")
    platform = PlatformView.model_validate(
        {"name": "telegram", "state": "connected", "since": "1970-01-01T00:00:09+00:00"}
    )
    chats.current_state = GatewayStatus(
        is_running=True, pid=7, platforms=[platform], problems=["the disk is full: 5.0 MB left"]
    )
    chats.routes = [Channel("telegram", "1", None, "Ada", "dm", "talk", "k", 5.0)]
    chats.error_rows = [LoggedError(at=1.0, level="error", logger="x", message="boom")]
    db.inbox.receive(
        platform="telegram", account="a", chat_id="1", message_id="2", session_key="k", payload={}
    )
    key = db.outbox.add("r", platform="telegram", target={"chat_id": "1"}, payload={"text": "x"})
    db.outbox.claim()
    db.outbox.postpone(key, "gone", is_hopeless=True)
    pair(db, "telegram", "42", "Ada")
    shown = client.get("/api/gateway").json()
    assert (shown["is_running"], shown["pid"], shown["version"]) == (True, 7, None)
    assert shown["platforms"][0]["since"] == 9.0
    assert shown["problems"] == ["the disk is full: 5.0 MB left"]
    checks = {check["name"]: check for check in client.get("/api/health").json()["checks"]}
    assert checks["gateway"]["detail"] == "the disk is full: 5.0 MB left"
    assert shown["chats"][0]["title"] == "Chat with Ada"
    assert shown["queue"]["waiting"] == 1
    assert shown["queue"]["failed"] == 1
    assert shown["unsent"][0]["error"] == "gone"
    assert shown["allowed"][0]["user_id"] == "42"
    assert shown["errors"][0]["message"] == "boom"


def failed_message(db: SessionDB) -> int:
    """A message of a chat that could not be handled."""
    db.inbox.receive(
        platform="telegram", account="a", chat_id="1", message_id="9", session_key="k", payload={}
    )
    claimed = db.inbox.claim()
    assert claimed is not None
    db.inbox.settle(claimed.inbox_id, error="it crashed")
    return claimed.inbox_id


def test_messages_that_could_not_be_handled_are_retried_or_skipped(
    db: SessionDB, client: httpx.Client
) -> None:
    number = failed_message(db)
    db.inbox.quarantine("telegram", "77", '{"odd": 1}', "unknown kind")
    update, message = client.get("/api/gateway").json()["quarantined"]
    assert (update["content"], update["error"]) == ('{"odd": 1}', "unknown kind")
    assert (update["can_retry"], message["can_retry"]) == (False, True)
    assert client.post(f"/api/gateway/messages/{update['id']}/retry").status_code == 404
    assert client.post(f"/api/gateway/messages/{number}/retry").status_code == 204
    assert client.post(f"/api/gateway/messages/{number}/retry").status_code == 404
    claimed = db.inbox.claim()
    assert claimed is not None
    assert (claimed.inbox_id, claimed.attempts, claimed.crashes) == (number, 1, 0)
    assert client.delete(f"/api/gateway/messages/{update['id']}").status_code == 204
    assert client.delete(f"/api/gateway/messages/{update['id']}").status_code == 404
    assert client.get("/api/gateway").json()["quarantined"] == []


def test_an_undelivered_reply_is_sent_again_or_given_up(
    db: SessionDB, client: httpx.Client
) -> None:
    keys = []
    for name in ("a", "b"):
        target: Any = {"chat_id": name}
        key = db.outbox.add(name, platform="telegram", target=target, payload={"text": name})
        assert db.outbox.claim() is not None
        db.outbox.postpone(key, "gone", is_hopeless=True)
        keys.append(key)
    assert client.post(f"/api/gateway/replies/{keys[0]}/retry").status_code == 204
    reply = db.outbox.claim()
    assert reply is not None
    assert (reply.outbox_id, reply.attempts) == (keys[0], 1)
    assert client.post(f"/api/gateway/replies/{keys[0]}/retry").status_code == 404
    assert client.delete(f"/api/gateway/replies/{keys[1]}").status_code == 204
    assert client.delete(f"/api/gateway/replies/{keys[1]}").status_code == 404
    assert client.get("/api/gateway").json()["unsent"] == []


# Logs


def test_the_end_of_a_log_has_no_secrets(client: httpx.Client, hermes_home: Path) -> None:
    ConfigFile.of_home().set("keys.openai", "very-secret-value")
    folder = hermes_home / "logs"
    folder.mkdir(exist_ok=True)
    (folder / "hermes.log").write_text(
        "2026-03-01 10:00:00,250 INFO 7 hermes.agent: key very-secret-value used\n"
        "2026-03-01 10:00:01,000 ERROR 7 hermes.agent: it failed\n"
        "Traceback (most recent call last):\n"
        "  Authorization: Bearer abcdefgh12345\n"
    )
    entry = {"at": "2026-03-01T10:00:00+00:00", "level": "warning", "logger": "gateway", "pid": 1}
    (folder / "gateway.jsonl").write_text(
        json.dumps({**entry, "message": "GET https://ada:pass@host/x?token=abc"}) + "\n"
    )
    (folder / "notes.txt").write_text("no log")
    (folder / "evil.log").symlink_to("/etc/passwd")
    listed = client.get("/api/logs").json()
    assert {item["name"] for item in listed["items"]} >= {"hermes.log", "gateway.jsonl"}
    assert not {item["name"] for item in listed["items"]} & {"notes.txt", "evil.log"}
    first, second = client.get("/api/logs/hermes.log").json()["items"]
    assert first["message"] == "key [hidden] used"
    assert second["message"].splitlines()[1:] == [
        "Traceback (most recent call last):",
        "  Authorization: [hidden]",
    ]
    [error] = client.get("/api/logs/hermes.log", params={"level": "error"}).json()["items"]
    assert error["level"] == "error"
    [line] = client.get("/api/logs/gateway.jsonl").json()["items"]
    assert line["message"] == "GET https://[hidden]@host/x?[hidden]  pid=1"
    assert client.get("/api/logs/evil.log").json()["items"] == []
    assert client.get("/api/logs/later.log").json()["items"] == []
    assert client.get("/api/logs/..%2Fconfig.yaml").status_code == 404
    assert client.get("/api/logs/config.yaml").status_code == 404


def test_only_the_end_of_a_long_log_is_read(client: httpx.Client, hermes_home: Path) -> None:
    (hermes_home / "logs").mkdir(exist_ok=True)
    line = "2026-03-01 10:00:00,250 INFO 7 x: number {}\n"
    (hermes_home / "logs" / "long.log").write_text("".join(map(line.format, range(40_000))))
    items = client.get("/api/logs/long.log", params={"limit": 2}).json()["items"]
    assert [item["message"] for item in items] == ["number 39998", "number 39999"]


# Hooks


def test_the_boundary_log_has_pages_and_events_are_replayed(
    db: SessionDB, client: httpx.Client
) -> None:
    for number in range(5):
        db.create_session(f"s{number}", "cli", is_owned=False)
        db.end_session(f"s{number}", "done")
    listed = client.get("/api/hooks").json()
    assert listed["pending"] == 5
    assert "on_session_boundary" in [hook["name"] for hook in listed["hooks"]]
    first = client.get("/api/boundaries", params={"limit": 3}).json()
    assert first["has_more"]
    last = first["items"][-1]
    rest = client.get("/api/boundaries", params={"before": last["sequence"]}).json()
    assert [entry["session_id"] for entry in rest["items"]] == ["s1", "s0"]
    entry = client.get("/api/boundaries", params={"session_id": "s3"}).json()["items"]
    assert [row["session_id"] for row in entry] == ["s3"]
    again = client.post(f"/api/boundaries/{last['event_id']}/replay")
    assert (again.status_code, again.json()) == (202, {"event_id": last["event_id"]})
    assert client.post("/api/boundaries/nothing/replay").status_code == 404
    assert client.get("/api/boundaries", params={"session_id": "nobody"}).status_code == 404


# Settings


def item(client: httpx.Client, name: str) -> dict[str, Any]:
    items = client.get("/api/settings").json()["items"]
    result: dict[str, Any] = next(item for item in items if item["name"] == name)
    return result


def test_every_setting_is_listed_and_can_be_changed(
    client: httpx.Client, hermes_home: Path
) -> None:
    (hermes_home / "config.yaml").write_text("# mine\nstore:\n  trash_days: 7  # a week\n")
    listed = client.get("/api/settings").json()
    assert [entry["name"] for entry in listed["items"]] == [setting.name for setting in SETTINGS]
    assert listed["path"] == str(hermes_home / "config.yaml")
    before = item(client, "store.trash_days")
    assert (before["value"], before["default"], before["origin"]) == (7, 30, "file")
    changed = client.put("/api/settings/store.trash_days", json={"value": 9}).json()
    assert (changed["value"], changed["is_set"]) == (9, True)
    assert "# mine" in (hermes_home / "config.yaml").read_text()
    assert client.put("/api/settings/search.tool_output", json={"value": True}).json()["value"]
    hidden = client.put("/api/settings/achievements.hidden", json={"value": ["a", "b"]})
    assert hidden.json()["value"] == ["a", "b"]
    back = client.delete("/api/settings/store.trash_days").json()
    assert (back["value"], back["origin"]) == (30, "default")


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("store.trash_days", -1, 400),
        ("store.trash_days", "many", 400),
        ("store.trash_days", ["1"], 400),
        ("display.color", "pink", 400),
        ("plugins.disabled", ["a,b"], 400),
        ("no.such", 1, 404),
        ("store", 1, 404),
        ("store.trash_days", None, 422),
        ("store.trash_days", {}, 422),
    ],
)
def test_invalid_settings_are_rejected(
    client: httpx.Client, hermes_home: Path, name: str, value: object, status: int
) -> None:
    response = client.put(f"/api/settings/{name}", json={"value": value})
    assert response.status_code == status
    assert not (hermes_home / "config.yaml").exists()


def test_secrets_are_written_and_never_shown(client: httpx.Client) -> None:
    name = next(setting.name for setting in SETTINGS if setting.secret)
    response = client.put(f"/api/settings/{name}", json={"value": "s3cr3t-word"})
    assert (response.json()["value"], response.json()["is_set"]) == (None, True)
    assert "s3cr3t-word" not in client.get("/api/settings").text
    assert ConfigFile.of_home().secret(name) == "s3cr3t-word"
    assert client.delete(f"/api/settings/{name}").json()["is_set"] is False


def test_an_invalid_setting_does_not_hide_others(client: httpx.Client, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("store:\n  trash_days: many\n")
    wrong = item(client, "store.trash_days")
    assert (wrong["value"], "trash_days" in wrong["problem"]) == (30, True)
    checks = {
        check["name"]: check["status"] for check in client.get("/api/health").json()["checks"]
    }
    assert checks["settings"] == "warn"


# Plugins and health


def test_a_plugin_installed_later_is_found(client: httpx.Client, hermes_home: Path) -> None:
    plugin_host.active.cache_clear()
    keys = {entry["key"] for entry in client.get("/api/plugins").json()["items"]}
    assert "late" not in keys
    assert client.post("/api/plugins/late/enable").status_code == 404
    folder = hermes_home / "plugins" / "late"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: late\nversion: '1'\n")
    (folder / "__init__.py").write_text("def register(ctx): pass")
    listed = {entry["key"]: entry for entry in client.get("/api/plugins").json()["items"]}
    assert (listed["late"]["is_loaded"], listed["late"]["error"]) == (False, None)
    requested = client.post("/api/plugins/late/enable")
    assert (requested.status_code, requested.json()["name"]) == (202, "late")
    shutil.rmtree(folder)
    assert {entry["key"] for entry in client.get("/api/plugins").json()["items"]} == keys


def test_plugins_enabled_in_a_terminal_are_shown_and_can_be_disabled(
    client: httpx.Client, hermes_home: Path
) -> None:
    for name, code in (("mine", "def register(ctx): pass"), ("folder/inner", "1/0")):
        folder = hermes_home / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text(f"name: {name.rpartition('/')[2]}\nversion: '1'\n")
        (folder / "__init__.py").write_text(code)
    plugin_host.active.cache_clear()
    listed = {entry["key"]: entry for entry in client.get("/api/plugins").json()["items"]}
    assert listed["mine"]["is_enabled"] is False
    assert listed["mine"]["has_dashboard"] is False
    ConfigFile.of_home().set("plugins.enabled", "mine, folder/inner")
    listed = {entry["key"]: entry for entry in client.get("/api/plugins").json()["items"]}
    on, broken = listed["mine"], listed["folder/inner"]
    assert (on["is_enabled"], on["is_loaded"], on["error"]) == (True, True, None)
    assert (broken["is_enabled"], broken["is_loaded"]) == (True, False)
    assert "ZeroDivisionError" in broken["error"]
    off = client.post("/api/plugins/folder/inner/disable").json()
    assert off["is_enabled"] is False
    assert client.post("/api/plugins/nothing/enable").status_code == 404
    assert client.post("/api/plugins/no/thing/disable").status_code == 404


def test_health_reports_problems(db: SessionDB, client: httpx.Client) -> None:
    config = ConfigFile.of_home()
    for name, value in (("api", "openai"), ("base_url", "http://127.0.0.1:9/v1"), ("model", "m")):
        config.set(f"llm.{name}", value)
    well = client.get("/api/health").json()
    assert well["status"] == "ok", well
    assert {check["name"] for check in well["checks"]} >= {"history", "journal", "index", "gateway"}
    db.inbox.receive(
        platform="telegram", account="a", chat_id="1", message_id="2", session_key="k", payload={}
    )
    ill = client.get("/api/health").json()
    assert ill["status"] == "attention"
    assert "gateway start" in next(o["detail"] for o in ill["checks"] if o["name"] == "gateway")
