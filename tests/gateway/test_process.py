"""The gateway as a process: signals, restarts, a second instance, health checks."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import Worker, wait_until
from gateway import status
from gateway.platforms.local import socket_path
from gateway.process import main
from gateway.process.runner import Gateway
from hermes_conversation.command_environment import environment_without_secrets
from hermes_core.config.file import ConfigFile
from hermes_core.errors import StoreUnavailableError
from hermes_state import SessionDB
from support.chat import LocalChatClient
from support.gateway_process import GatewayProcess
from support.identities import act_as
from support.plugin_folders import make_plugin
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes


RECORDER_CODE = """
def register(ctx):
    def record(session_id, **fields):
        with open({path!r}, "a") as file:
            file.write(session_id + chr(10))
    ctx.register_hook("on_session_finalize", record)
"""

ROUTE = "platforms: {webhook: {routes: {a: {secret_env: MY_ROUTE}}}}\n"

SLOW = " ".join(f"word{number}" for number in range(40))

RISKY = "{name: terminal, arguments: {command: rm -rf build}}"


@pytest.fixture
def gateway(hermes_home: Path) -> Iterator[GatewayProcess]:
    result = GatewayProcess()
    yield result
    result.cleanup()


def start(gateway: GatewayProcess, **variables: str) -> None:
    gateway.start(**variables)
    wait_until(gateway.is_up, "the gateway")


def get(path: str) -> tuple[int, str]:
    url = (status.read_runtime_status() or {})["http_url"] + path
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_watchers_see_the_progress(
    gateway: GatewayProcess, answering: Callable[[str], Any]
) -> None:
    answering("[{say: Hello.}]")
    start(gateway)
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("hi", "m1")
        await chat.wait_for(1)
        assert get("/healthz") == (200, '{"status":"ok","problems":[],"waiting_chats":0}')
        code, text = get("/readyz")
        assert (code, json.loads(text)["status"]) == (200, "ready")
        _, metrics = get("/metrics")
    assert 'hermes_messages_received_total{platform="local"} 1.0' in metrics
    assert 'hermes_platform_connected{platform="local"} 1.0' in metrics
    assert "hermes_turn_seconds_count 1.0" in metrics
    assert "hermes_store_write_seconds_count" in metrics
    assert get("/elsewhere")[0] == 404


def test_a_platform_that_is_refused_leaves_the_others_at_work(gateway: GatewayProcess) -> None:
    ConfigFile.of_home().path.write_text("platforms: {telegram: {enabled: true}}\n")
    start(gateway)
    runtime_status = status.read_runtime_status() or {}
    assert runtime_status["gateway_state"] == "degraded"
    assert runtime_status["platforms"]["local"]["state"] == "connected"
    assert "TELEGRAM_BOT_TOKEN" in runtime_status["platforms"]["telegram"]["error_message"]
    assert get("/readyz")[0] == 503


def test_a_stopped_process_is_not_shown_as_running(gateway: GatewayProcess, hermes: Hermes) -> None:
    start(gateway)
    assert "not responding" not in hermes("gateway", "status").out
    gateway.send_signal(signal.SIGSTOP)
    make_heartbeat_old()
    assert "not responding" in hermes("gateway", "status").out
    assert "not responding" in hermes("doctor").out
    facts = json.loads(hermes("gateway", "status", "--json").out)
    assert "stopped or hangs" in facts["problems"][0]


def make_heartbeat_old() -> None:
    facts: dict[str, Any] = {**(status.read_runtime_status() or {})}
    facts["heartbeat_at"] -= status.SILENCE_SECONDS + 1
    status.state_path().write_text(json.dumps(facts))


def test_a_locked_history_is_reported_by_every_front_end(
    gateway: GatewayProcess, hermes: Hermes, hermes_home: Path, tmp_path: Path
) -> None:
    start(gateway)
    assert get("/healthz")[0] == 200
    with Worker("hold_lock.py", tmp_path, hermes_home / "state.db", 60) as holder:
        holder.wait_for("locked")
        wait_until(lambda: get("/healthz")[0] == 503, "the health endpoint")
        code, text = get("/readyz")
        assert code == 503
        assert "the history cannot be written" in text
        assert "hermes_store_writable 0.0" in get("/metrics")[1]
        wait_until(
            lambda: "cannot be written" in hermes("gateway", "status").out, "the next heartbeat"
        )
    wait_until(lambda: get("/healthz")[0] == 200, "the health endpoint")


def test_a_second_gateway_refuses(gateway: GatewayProcess) -> None:
    start(gateway)
    second = GatewayProcess()
    second.start()
    assert second.wait() == main.CONFIG_EXIT_CODE
    assert status.running_pid() == gateway.pid


@pytest.mark.parametrize("how", ["SIGUSR1", "/restart"])
async def test_a_restart_keeps_the_process_and_answers_pending_messages(
    gateway: GatewayProcess, answering: Callable[[str], Any], how: str
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.03}}, {{say: After.}}]")
    start(gateway)
    before = (status.read_runtime_status() or {})["start_time"]
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("a long one", "m1")
        with SessionDB(is_recovering=False) as db:
            wait_until(lambda: bool(db.message_count()), "the turn")
        if how == "SIGUSR1":
            os.kill(gateway.pid, signal.SIGUSR1)
        else:
            await chat.send("/restart", "m0", chat="c2")
        wait_until(lambda: (status.read_runtime_status() or {})["gateway_state"] == "draining", how)
        await chat.send("and another", "m2")
        texts = await chat.wait_for(1 if how == "SIGUSR1" else 2)
        assert SLOW in texts
    wait_until(
        lambda: (status.read_runtime_status() or {})["start_time"] > before and gateway.is_up(),
        "the new one",
    )
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("a long one", "m1")  # the platform delivers the message again
        await chat.send("/status", "m3", chat="c2")
        texts = await chat.wait_for(2 if how == "SIGUSR1" else 3)
    assert "After." in texts
    assert ("The gateway has restarted." in texts) == (how == "/restart")
    assert SLOW not in texts


async def test_a_turn_cut_off_by_the_shutdown_is_finalized_and_continued(
    gateway: GatewayProcess, answering: Callable[[str], Any], hermes_home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "hook_calls"
    make_plugin(hermes_home, "recorder", RECORDER_CODE.format(path=str(path)))
    config = ConfigFile.of_home()
    config.set("plugins.enabled", "recorder")
    config.set("gateway.drain_seconds", "0")
    server = answering(f"[{{say: {SLOW}, pause: 0.5}}, {{say: Whole.}}]")
    start(gateway)
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("a long one", "m1")
        wait_until(lambda: bool(server.requests), "the turn")
        with SessionDB(is_recovering=False) as db:
            (row,) = db.list_sessions_rich()
    assert gateway.stop() == 0
    assert path.read_text().split() == [row["id"]]
    assert (status.read_runtime_status() or {})["turns"] == {}
    start(gateway)
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("/status", "m2")
        assert "Whole." in await chat.wait_for(2)
    with SessionDB(is_recovering=False) as db:
        assert (db.get_session(row["id"]) or {})["ended_at"] is None
        texts = [str(message["content"]) for message in db.get_messages(row["id"])]
    assert texts[0] == "a long one"
    assert texts.count("a long one") == 1


def test_tokens_are_not_in_the_environment_of_child_processes(hermes_home: Path) -> None:
    names = ("TELEGRAM_BOT_TOKEN", "MATRIX_ACCESS_TOKEN", "API_SERVER_KEY", "WEBHOOK_SECRET")
    with pytest.MonkeyPatch.context() as patch:
        (hermes_home / "config.yaml").write_text(ROUTE)
        for name in (*names, "MY_ROUTE"):
            patch.setenv(name, "secret")
        assert not {*names, "MY_ROUTE"} & set(environment_without_secrets())


async def test_a_pending_approval_does_not_block_a_stop_or_restart(
    gateway: GatewayProcess, answering: Callable[[str], Any]
) -> None:
    answering(f"[{{calls: [{RISKY}]}}, {{say: Fine.}}, {{say: Fine.}}]")
    start(gateway)
    before = (status.read_runtime_status() or {})["start_time"]
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("clean up", "m1")
        assert "Approval needed" in (await chat.wait_for(1))[0]
        os.kill(gateway.pid, signal.SIGUSR1)
        wait_until(
            lambda: (status.read_runtime_status() or {})["start_time"] > before and gateway.is_up(),
            "the new one",
        )
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("clean up", "m1")  # the platform brings it again
        assert "Fine." in await chat.wait_for(1)  # the turn continues
        assert gateway.stop() == 0


def test_the_previous_identity_of_a_restarted_process_is_dead(db: SessionDB) -> None:
    db.inbox.receive(
        platform="a", account="a", chat_id="c", message_id="1", session_key="k", payload={}
    )
    now = db.identity
    act_as(db, now._replace(process_id="before"))
    assert db.inbox.claim() is not None
    act_as(db, now)
    db.sweep()
    assert db.inbox.waiting_places() == 1


def test_the_last_order_counts() -> None:
    runner = object.__new__(Gateway)
    runner.request_restart()
    runner.request_stop()
    assert not runner._restart_requested


def test_repeated_restart_signals_do_not_kill_the_process(gateway: GatewayProcess) -> None:
    start(gateway)
    before = (status.read_runtime_status() or {})["start_time"]
    for _ in range(3):
        os.kill(gateway.pid, signal.SIGUSR1)
    wait_until(
        lambda: (status.read_runtime_status() or {})["start_time"] > before and gateway.is_up(),
        "the new one",
    )
    assert gateway.stop() == 0


@pytest.mark.parametrize(
    "text",
    [
        "platforms: [telegram]\n",
        "gateway: {attempts: three}\n",
        "gateway: {multiplex_profiles: true}\n",
        "multiplex_profiles: true\n",
    ],
)
def test_a_configuration_that_cannot_be_used_is_named_and_not_tried_again(
    gateway: GatewayProcess, hermes_home: Path, text: str
) -> None:
    (hermes_home / "config.yaml").write_text(text)
    gateway.start()
    assert gateway.wait() == main.CONFIG_EXIT_CODE
    runtime_status = status.read_runtime_status() or {}
    assert runtime_status["gateway_state"] == "startup_failed"
    assert "config.yaml" in runtime_status["exit_reason"]


def test_a_restarted_gateway_tries_again_if_the_history_is_lost_meanwhile(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Gateway:
        raise StoreUnavailableError("connection refused")

    monkeypatch.setattr("gateway.process.runner.Gateway", fail)
    monkeypatch.setattr(main.time, "sleep", lambda _seconds: None)
    monkeypatch.setenv(main.RESTART_VARIABLE, "1")
    assert main.run() is main.ProcessEnd.RESTART
    with pytest.raises(StoreUnavailableError):  # of a first start, the user is told
        main.run()
