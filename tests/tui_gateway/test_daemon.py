"""The daemon: turns continue without a client, and the next client resumes them."""

from __future__ import annotations

import json
import logging
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from hermes_conversation.agent_factory import ConversationOptions
from hermes_core import log_file
from hermes_core.instance_record import DAEMON
from hermes_state import SessionDB
from support.daemons import DaemonClient, stopping_daemon, wait_until
from support.waiting import PATIENCE_SECONDS
from tui_gateway import client, daemon, hub
from tui_gateway.frames import RpcError
from tui_gateway.protocol import ClientEvent, ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLOW = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture(autouse=True)
def _stop_daemon() -> Iterator[None]:
    with stopping_daemon():
        yield


def row() -> dict[str, Any]:
    with SessionDB() as db:
        return dict(db.list_sessions_rich(limit=1)[0])


def stored() -> list[str]:
    with SessionDB() as db:
        return [str(message["content"]) for message in db.get_messages(row()["id"])]


def test_a_turn_continues_without_its_client_and_is_resumed(serve: Any) -> None:
    first = DaemonClient()
    opened = first.open(model=serve(f"[{{say: {SLOW}, pause: 0.15}}]"))
    first.call("prompt.submit", text="count")
    shown = first.text_until("three")
    first.close()

    second = DaemonClient()
    result = second.open("session.resume", session_id=opened["stored_session_id"])
    assert result["session_id"] == opened["session_id"]
    assert result["running"]
    assert result["inflight"]["text"].startswith(shown)
    assert second.wait_for("message.complete")["text"] == SLOW
    assert stored() == ["count", SLOW]
    second.close()


def test_two_clients_receive_the_same_events(serve: Any) -> None:
    first, second = DaemonClient(), DaemonClient()
    opened = first.open(model=serve("[{say: Hello.}]"))
    second.open("session.activate", session_id=opened["session_id"])
    first.call("prompt.submit", text="hi")
    assert second.wait_for("message.start")["text"] == "hi"
    assert second.wait_for("message.complete")["text"] == "Hello."
    assert first.wait_for("message.complete")["text"] == "Hello."
    first.close()
    second.close()


def test_a_question_waits_for_the_next_client(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    call = "{name: terminal, arguments: {command: rm -rf old}}"
    first = DaemonClient()
    opened = first.open(model=serve(f"[{{calls: [{call}]}}, {{say: Done.}}]"), cwd=str(tmp_path))
    first.call("prompt.submit", text="clean up")
    first.wait_for("approval.request")
    first.close()
    second = DaemonClient()
    result = second.open("session.resume", session_id=opened["stored_session_id"])
    question = result["inflight"]["questions"][0]
    assert question["payload"]["command"] == "rm -rf old"
    second.call("approval.respond", choice="once", request_id=question["payload"]["request_id"])
    assert second.wait_for("message.complete")["text"] == "Done."
    assert not (tmp_path / "old").exists()
    second.close()


def test_close_on_disconnect_closes_the_conversation(serve: Any) -> None:
    terminal = DaemonClient()
    terminal.open(model=serve("[{say: Hello.}]"), close_on_disconnect=True)
    terminal.call("prompt.submit", text="hi")
    terminal.wait_for("message.complete")
    terminal.close()
    wait_until(lambda: row()["end_reason"] == "ws_disconnect")


def test_a_conversation_without_clients_is_closed(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "ORPHAN_SECONDS", 0.0)
    with SessionDB() as db:
        local_hub = hub.Hub(db)
        kinds: list[str] = []
        connection = client.connect_in_process(
            local_hub, lambda _session, event: kinds.append(event.kind)
        )
        live = local_hub.live(connection.call("session.create", model=serve("[]"))["session_id"])
        assert live.wait(PATIENCE_SECONDS)
        live.submit("hi")
        assert live.wait(PATIENCE_SECONDS)
        local_hub.sweep()
        assert local_hub.all_live() == [live]  # a client is attached
        for listener in list(live._listeners):
            local_hub.forget(listener)
        local_hub.sweep()
        assert local_hub.all_live() == []
        local_hub.close_all("tui_shutdown")
    assert row()["end_reason"] == "ws_orphan_reap"


def test_streamed_text_survives_a_daemon_crash(serve: Any) -> None:
    first = DaemonClient()
    model = serve(f"[{{say: {SLOW}, pause: 0.2}}]")
    opened = first.open(model=model)
    first.call("prompt.submit", text="count")
    first.text_until("six")
    os.kill(daemon.ensure_running().pid, signal.SIGKILL)
    first.wait_for(ConnectionLost.kind)
    with pytest.raises(RpcError, match="lost"):
        first.call("session.status")
    second = DaemonClient()
    result = second.open("session.resume", session_id=opened["stored_session_id"], model=model)
    texts = [message["content"] for message in result["messages"]]
    assert texts[0] == "count"
    assert texts[1].startswith("one two three four")  # drafts are stored every quarter of a second
    second.close()


def test_the_bearer_token_is_required() -> None:
    record = daemon.ensure_running()
    for headers in ({}, {"Authorization": "Bearer guess"}):
        with pytest.raises(InvalidStatus, match="401"):
            connect(record.url, additional_headers=headers, proxy=None)
    good = {"Authorization": f"Bearer {record.token}"}
    with pytest.raises(InvalidStatus, match="404"):
        connect(record.url + "/other", additional_headers=good, proxy=None)


def test_the_access_token_is_in_no_log(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("log: {level: debug}\n")
    log_file.install()
    try:
        record = daemon.ensure_running()
        with connect(
            record.url, additional_headers={"Authorization": f"Bearer {record.token}"}, proxy=None
        ) as connection:
            connection.recv(timeout=PATIENCE_SECONDS)
        logging.getLogger("hermes").debug("an entry")
    finally:
        uninstall_log_file()
    entries = (hermes_home / "logs" / "hermes.log").read_text()
    assert "an entry" in entries
    assert record.token not in entries


def uninstall_log_file() -> None:
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, log_file.LogFile)]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(logging.WARNING)


def test_invalid_frames_get_errors() -> None:
    record = daemon.ensure_running()
    headers = {"Authorization": f"Bearer {record.token}"}
    with connect(record.url, additional_headers=headers, proxy=None) as connection:
        for message in (b"\xff\x00", "no json", "[]", '{"jsonrpc": "2.0", "id": 1}'):
            connection.send(message)
        answers = [str(connection.recv(timeout=PATIENCE_SECONDS)) for _ in range(5)]
    assert sum('"error"' in answer for answer in answers) == 4
    assert DaemonClient().call("session.active_list") == {"sessions": []}


def test_the_daemon_has_status_and_stop_commands(hermes: Any, serve: Any) -> None:
    assert "daemon is not running" in hermes("serve", "--status").out
    terminal = DaemonClient()
    terminal.open(model=serve("[{say: Hello.}]"))
    terminal.call("prompt.submit", text="hi")
    terminal.wait_for("message.complete")
    assert "idle" in hermes("serve", "--status").out
    status = json.loads(hermes("serve", "--status", "--json").out)
    assert (status["running"], status["sessions"][0]["message_count"]) == (True, 2)
    assert hermes("serve", "--until-idle").code == 0  # already running
    assert "already running" in hermes("serve").err
    assert "Daemon stopped" in hermes("serve", "--stop").out
    assert row()["end_reason"] == "tui_shutdown"
    assert DAEMON.find() is None


def test_resuming_an_open_conversation_reuses_it(serve: Any) -> None:
    with SessionDB() as db:
        local_hub = hub.Hub(db)
        connection = client.connect_in_process(local_hub, lambda *_: None)
        created = connection.call("session.create", model=serve("[{say: Hello.}]"))
        local_hub.live(created["session_id"]).submit("hi")
        again = connection.call("session.resume", session_id=created["stored_session_id"])
        assert again["session_id"] == created["session_id"]
        assert len(local_hub.all_live()) == 1
        local_hub.close_all("tui_shutdown")


def test_opening_with_a_session_id_attaches_to_the_open_conversation(serve: Any) -> None:
    with SessionDB() as db:
        local_hub = hub.Hub(db)
        options = ConversationOptions(None, serve("[]"))

        class SilentListener:
            def event(self, session_id: str, event: ClientEvent) -> None:
                del session_id, event

        listener = SilentListener()
        live = local_hub.open(options, listener)
        again = local_hub.open(options._replace(session_id=live.stored_session_id), listener)
        assert again.session_id == live.session_id
        local_hub.close_all("tui_shutdown")
