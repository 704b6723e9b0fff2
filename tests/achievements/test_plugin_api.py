"""The plugin over real HTTP: it responds without waiting for scans."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import socket
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import pytest
import uvicorn
from fastapi import FastAPI

from hermes_achievements import service as service_module
from hermes_conversation import achievements
from hermes_core.errors import ScanError
from hermes_state.ledger.file import LedgerFile
from support.plain_http import NO_CERTIFICATES
from support.waiting import PATIENCE_SECONDS, async_wait_until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from achievements.history_builder import HistoryBuilder

API = Path(__file__).parents[2] / "plugins" / "hermes-achievements" / "dashboard" / "plugin_api.py"
PREFIX = "/api/plugins/hermes-achievements"


def load_plugin() -> ModuleType:
    """The plugin's module, as a dashboard loads it."""
    spec = importlib.util.spec_from_file_location("hermes_dashboard_plugin_achievements", API)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def serving(module: ModuleType) -> Iterator[httpx.Client]:
    """A real server on loopback with the plugin mounted, and a client."""
    app = FastAPI()
    app.include_router(module.router, prefix=PREFIX)

    @app.get("/alive")
    async def alive() -> dict[str, bool]:
        return {"ok": True}

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with httpx.Client(base_url=address, timeout=PATIENCE_SECONDS, verify=NO_CERTIFICATES) as client:
        while not server.started:
            time.sleep(0.01)
        yield client
    server.should_exit = True
    thread.join(timeout=PATIENCE_SECONDS)
    module._SERVICE.close()
    listening.close()


@pytest.fixture
def plugin() -> ModuleType:
    return load_plugin()


@pytest.fixture
def client(plugin: ModuleType, builder: HistoryBuilder) -> Iterator[httpx.Client]:
    builder.send("hello")
    for _ in range(12):
        builder.run_shell("pytest && git commit -m x")
    with serving(plugin) as client:
        yield client


def wait_for_snapshot(client: httpx.Client) -> dict[str, Any]:
    """The first complete snapshot."""
    for _ in range(300):
        body: dict[str, Any] = client.get(f"{PREFIX}/achievements").json()
        if body["scan_meta"]["mode"] not in ("pending", "in_progress"):
            return body
        time.sleep(0.05)
    raise AssertionError("no complete snapshot after 15 seconds")


def test_the_first_response_is_pending_until_the_scan_completes(client: httpx.Client) -> None:
    first = client.get(f"{PREFIX}/achievements").json()
    assert first["scan_meta"]["mode"] in ("pending", "in_progress")
    assert first["total_count"] >= 100
    body = wait_for_snapshot(client)
    assert body["scan_meta"]["mode"] == "full"
    assert body["unlocked_count"] > 5
    assert body["scan_id"]
    assert not body["is_stale"]
    assert "aggregate" not in body


def test_achievements_can_be_filtered_and_sorted(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    path = f"{PREFIX}/achievements"
    unlocked = client.get(path, params={"state": "unlocked", "sort": "name"}).json()
    names = [achievement["name"] for achievement in unlocked["achievements"]]
    assert names
    assert names == sorted(names, key=str.casefold)
    assert unlocked["filtered_count"] == len(names) == unlocked["unlocked_count"]
    shell = client.get(path, params={"category": "shell", "limit": 3}).json()["achievements"]
    assert [item["category"] for item in shell] == ["shell"] * 3
    ranked = client.get(path, params={"sort": "tier", "order": "desc"}).json()["achievements"]
    ranks = [item["tier_rank"] for item in ranked]
    assert ranks == sorted(ranks, reverse=True)


def test_achievements_can_be_filtered_by_source(
    client: httpx.Client, builder: HistoryBuilder
) -> None:
    builder.start("purged", "codex").send("hello")
    for _ in range(300):
        builder.run_shell("pytest && git commit -m x")
    wait_for_snapshot(client)
    builder.db.delete_session("purged")
    builder.db.trash.purge("purged")
    steps = client.get(f"{PREFIX}/timeline").json()["steps"]
    earned = [step["id"] for step in steps if step["session_id"] == "purged"]
    assert earned

    def of_source(route: str, source: str) -> Any:
        return client.get(f"{PREFIX}/{route}", params={"source": source}).json()

    assert [step["id"] for step in of_source("timeline", "codex")["steps"]] == earned
    assert [step["id"] for step in of_source("recent-unlocks", "codex")] == earned[::-1][:20]
    listed = of_source("achievements", "codex")["achievements"]
    assert {each["id"] for each in listed} == set(earned)
    assert of_source("achievements", "nowhere")["filtered_count"] == 0


@pytest.mark.parametrize(
    ("parameter", "value", "accepted"),
    [
        ("state", "lost", "unlocked"),
        ("category", "nowhere", "shell"),
        ("sort", "luck", "unlocked_at"),
        ("order", "sideways", "desc"),
        ("limit", "0", "1 or more"),
        ("limit", "many", "1 or more"),
    ],
)
def test_an_invalid_parameter_is_rejected_with_the_accepted_values(
    client: httpx.Client, parameter: str, value: str, accepted: str
) -> None:
    answer = client.get(f"{PREFIX}/achievements", params={parameter: value})
    assert answer.status_code == 400
    assert accepted in answer.json()["detail"]


def test_every_route_reports_its_accepted_values(client: httpx.Client) -> None:
    for limit in ("0", "x", "501"):
        answer = client.get(f"{PREFIX}/recent-unlocks", params={"limit": limit})
        assert answer.status_code == 400
        assert limit in answer.json()["detail"]
        assert "500" in answer.json()["detail"]
    answer = client.post(f"{PREFIX}/rescan", params={"full": "perhaps"})
    assert answer.status_code == 400
    assert "true or false" in answer.json()["detail"]
    answer = client.post(f"{PREFIX}/reset-state", json={"confirm": [1]})
    assert answer.status_code == 400
    assert "token" in answer.json()["detail"]


def test_the_status_describes_the_last_scan(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    # The snapshot is published a moment before its scan ends.
    wait_until(lambda: client.get(f"{PREFIX}/scan-status").json()["state"] == "idle")
    status = client.get(f"{PREFIX}/scan-status").json()
    assert status["last_error"] is None
    assert status["run_count"] >= 1
    assert status["last_success_at"] >= status["started_at"]
    assert status["last_duration_ms"] > 0
    assert status["snapshot_age_seconds"] >= 0


def test_recent_unlocks_timeline_and_session_badges_agree(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    recent = client.get(f"{PREFIX}/recent-unlocks").json()
    timeline = client.get(f"{PREFIX}/timeline").json()
    moments = [step["at"] for step in timeline["steps"]]
    assert moments == sorted(moments)
    assert recent == timeline["steps"][::-1][:20]
    badges = client.get(f"{PREFIX}/sessions/s1/badges").json()
    assert badges["session_id"] == "s1"
    assert badges["badges"] == timeline["steps"]
    assert client.get(f"{PREFIX}/sessions/nobody/badges").json()["badges"] == []


def test_20_a_rescan_returns_new_data_in_a_small_response(
    client: httpx.Client, builder: HistoryBuilder
) -> None:
    wait_for_snapshot(client)
    for number in range(200):
        builder.start(f"more{number}").send()
    answer = client.post(f"{PREFIX}/rescan")
    body = answer.json()
    assert body["ok"]
    assert body["scan_meta"]["sessions_total"] == 201
    assert "sessions" not in body
    assert len(answer.content) < 400_000


def test_23_a_rescan_ignores_the_snapshot_ttl(
    client: httpx.Client, builder: HistoryBuilder
) -> None:
    before = wait_for_snapshot(client)
    builder.start("s2").send("something new")
    after = client.post(f"{PREFIX}/rescan").json()
    assert after["generated_at"] > before["generated_at"]
    by_id = {achievement["id"]: achievement for achievement in after["achievements"]}
    assert by_id["well-spoken"]["progress"] == 2


def test_19_other_requests_do_not_wait_for_a_rescan(
    plugin: ModuleType, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_snapshot(client)
    started, release = threading.Event(), threading.Event()
    run = plugin._run_scan_and_update_cache

    def run_slowly(**options: Any) -> None:
        started.set()
        assert release.wait(120)
        run(**options)

    monkeypatch.setattr(plugin, "_run_scan_and_update_cache", run_slowly)
    answers: list[httpx.Response] = []
    address = str(client.base_url)
    waiting = threading.Thread(
        target=lambda: answers.append(
            httpx.post(f"{address}{PREFIX}/rescan", timeout=PATIENCE_SECONDS)
        )
    )
    waiting.start()
    assert started.wait(PATIENCE_SECONDS)
    assert client.get("/alive").json() == {"ok": True}
    assert client.get(f"{PREFIX}/achievements").json()["unlocked_count"] > 5
    assert not answers
    release.set()
    waiting.join(timeout=PATIENCE_SECONDS)
    assert answers[0].json()["ok"]


def test_resetting_unlocks_requires_a_confirmation(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    requested = client.post(f"{PREFIX}/reset-state")
    assert requested.status_code == 409
    wrong = client.post(f"{PREFIX}/reset-state", json={"confirm": "guess"})
    assert wrong.status_code == 409
    state = achievements.folder() / "state.json"
    assert json.loads(state.read_text())["unlocks"]
    token = requested.json()["confirm"]
    assert client.post(f"{PREFIX}/reset-state", json={"confirm": token}).json() == {"ok": True}
    assert json.loads(state.read_text())["unlocks"] == {}
    assert client.post(f"{PREFIX}/reset-state", json={"confirm": token}).status_code == 409


def test_an_export_has_the_requested_format(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    assert client.get(f"{PREFIX}/export").json()["achievements"]
    assert "# " in client.get(f"{PREFIX}/export", params={"format": "Markdown"}).text
    unknown = client.get(f"{PREFIX}/export", params={"format": "pdf"})
    assert unknown.status_code == 400
    assert "markdown" in unknown.json()["detail"]


def test_files_are_private_and_complete(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    for name in ("state.json", "scan_snapshot.json"):
        path = achievements.folder() / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text())["version"] == 2


@pytest.mark.parametrize("name", ["state.json", "scan_snapshot.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"unlocks": 7}'])
def test_a_damaged_file_does_not_lose_unlocks(
    builder: HistoryBuilder, name: str, content: bytes, plugin: ModuleType
) -> None:
    builder.send()
    builder.run_shell("pytest")
    good = plugin.evaluate_all(force=True)
    (achievements.folder() / name).write_bytes(content)
    fresh = load_plugin()
    result = fresh.evaluate_all(force=True)
    assert result["unlocked_count"] == good["unlocked_count"]
    dates = [
        [achievement.get("unlocked_at") for achievement in body["achievements"]]
        for body in (good, result)
    ]
    assert dates[0] == dates[1]
    for module in (plugin, fresh):
        module._SERVICE.close()


def test_unlocks_of_the_original_program_are_stored_separately(
    builder: HistoryBuilder, plugin: ModuleType
) -> None:
    builder.send()
    old = {"unlocks": {"some_badge": {"unlocked_at": 1_700_000_000, "first_tier": "X"}}}
    (achievements.folder() / "state.json").write_text(json.dumps(old))
    plugin.evaluate_all(force=True)
    state = plugin.load_state()
    assert state["inherited"] == old["unlocks"]
    assert "some_badge" not in state["unlocks"]
    assert "first-words" in state["unlocks"]
    plugin._SERVICE.close()


def test_the_newer_state_file_of_the_original_program_is_read_once(
    builder: HistoryBuilder, plugin: ModuleType, hermes_home: Path
) -> None:
    builder.send()
    elsewhere = hermes_home / "plugin-data" / "hermes-achievements"
    elsewhere.mkdir(parents=True)
    old = {"unlocks": {"some_badge": {"unlocked_at": 1_700_000_000}}}
    (elsewhere / "state.json").write_text(json.dumps(old))
    plugin.evaluate_all(force=True)
    (elsewhere / "state.json").unlink()
    assert plugin.load_state()["inherited"] == old["unlocks"]
    plugin._SERVICE.close()


def test_disabled_achievements_answer_403_and_scan_nothing(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, hermes_home: Path
) -> None:
    monkeypatch.setenv("HERMES_ACHIEVEMENTS_ENABLED", "false")
    answer = client.get(f"{PREFIX}/achievements")
    assert answer.status_code == 403
    assert "achievements.enabled" in answer.json()["detail"]
    assert not (hermes_home / "statistics.db").exists()


def test_two_servers_share_a_snapshot(builder: HistoryBuilder) -> None:
    builder.send()
    item, second = load_plugin(), load_plugin()
    item.evaluate_all(force=True)
    assert second.evaluate_all()["unlocked_count"] == item.evaluate_all()["unlocked_count"] > 0
    for module in (item, second):
        module._SERVICE.close()


def test_after_a_reset_unlocks_are_found_again(client: httpx.Client) -> None:
    before = client.post(f"{PREFIX}/rescan").json()
    token = client.post(f"{PREFIX}/reset-state").json()["confirm"]
    assert client.post(f"{PREFIX}/reset-state", json={"confirm": token}).json() == {"ok": True}
    after = client.post(f"{PREFIX}/rescan")
    assert after.status_code == 200
    assert after.json()["unlocked_count"] == before["unlocked_count"]
    assert wait_for_snapshot(client)["unlocked_count"] == before["unlocked_count"]


@pytest.mark.clock
def test_a_failed_scan_reports_its_error_and_a_rescan_runs_at_once(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = service_module.survey_in_subprocess

    def fail(*_: object) -> None:
        raise ScanError("the disk is on fire")

    monkeypatch.setattr(service_module, "survey_in_subprocess", fail)
    answer = client.post(f"{PREFIX}/rescan")
    assert (answer.status_code, answer.json()) == (503, {"detail": "the disk is on fire"})
    runs = client.get(f"{PREFIX}/scan-status").json()["run_count"]
    for _ in range(3):
        body = client.get(f"{PREFIX}/achievements").json()
        assert (body["scan_meta"]["mode"], body["error"]) == ("failed", "the disk is on fire")
        time.sleep(0.1)
    status = client.get(f"{PREFIX}/scan-status").json()
    assert status["run_count"] == runs
    assert 20 < status["next_try_at"] - time.time() <= 30
    monkeypatch.setattr(service_module, "survey_in_subprocess", real)
    assert client.post(f"{PREFIX}/rescan").json()["ok"]


async def test_concurrent_rescans_share_a_run_and_use_no_server_thread(
    plugin: ModuleType, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_snapshot(client)
    started, release, runs = threading.Event(), threading.Event(), []
    run = plugin._run_scan_and_update_cache

    def run_slowly(**options: Any) -> None:
        runs.append(options)
        started.set()
        assert release.wait(120)
        run(**options)

    joined: list[bool] = []
    join = plugin._RESCANS.join

    def count_and_join(key: bool, work: Any) -> Any:
        joined.append(key)
        return join(key, work)

    monkeypatch.setattr(plugin, "_run_scan_and_update_cache", run_slowly)
    monkeypatch.setattr(plugin._RESCANS, "join", count_and_join)
    async with httpx.AsyncClient(
        base_url=client.base_url, timeout=PATIENCE_SECONDS
    ) as async_client:
        requested = [asyncio.create_task(async_client.post(f"{PREFIX}/rescan")) for _ in range(60)]
        assert await asyncio.to_thread(started.wait, 60)
        await async_wait_until(lambda: len(joined) == len(requested))
        answer = await async_client.get(f"{PREFIX}/achievements")
        assert answer.json()["unlocked_count"] > 5
        assert not any(item.done() for item in requested)
        release.set()
        assert [(await item).status_code for item in requested] == [200] * 60
    assert len(runs) <= 2


def test_a_rescan_reports_that_another_process_is_scanning(
    client: httpx.Client, hermes_home: Path, builder: HistoryBuilder
) -> None:
    wait_for_snapshot(client)
    builder.send("something new")
    ledger = LedgerFile(hermes_home / "state.db")
    with ledger.try_lock() as is_locked:
        assert is_locked
        body = client.post(f"{PREFIX}/rescan").json()
    ledger.close()
    assert "another process" in body["waiting_for"]
    assert body["is_stale"]


def test_the_title_of_a_purged_session_is_shown_nowhere(
    plugin: ModuleType,
    client: httpx.Client,
    builder: HistoryBuilder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plugin._TITLES, "_cache_seconds", 0.0)
    wait_for_snapshot(client)
    paths = ("achievements", "timeline", "recent-unlocks", "sessions/s1/badges")

    def texts() -> list[str]:
        results = [client.get(f"{PREFIX}/{path}").text for path in paths]
        return [*results, client.post(f"{PREFIX}/rescan").text]

    assert all('"title":"hello"' in text for text in texts())
    builder.db.delete_session("s1")
    builder.db.trash.purge("s1")
    for text in texts():
        assert '"title":"hello"' not in text
        assert '"is_gone":true' in text


def test_an_achievement_hidden_by_another_process_is_not_listed(
    client: httpx.Client, hermes_home: Path
) -> None:
    before = wait_for_snapshot(client)["total_count"]
    (hermes_home / "config.yaml").write_text("achievements:\n  hidden: [first-words]\n")
    client.post(f"{PREFIX}/rescan")
    body = client.get(f"{PREFIX}/achievements").json()
    assert body["total_count"] == before - 1
    assert "first-words" not in {achievement["id"] for achievement in body["achievements"]}


def test_compute_all_records_nothing(builder: HistoryBuilder, plugin: ModuleType) -> None:
    builder.send()
    assert plugin.compute_all()["unlocked_count"] > 0
    assert plugin.load_state()["unlocks"] == {}
