"""The daemon: a turn that outlives its terminal, found again by the next one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from hermes_conversation.agent_factory import ConversationOptions
from hermes_core.instance_record import DAEMON
from hermes_state import SessionDB
from support.daemons import Terminal, ending, wait_until
from tui_gateway import client, daemon, hub
from tui_gateway.frames import RpcError

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    with ending():
        yield


def row() -> dict[str, Any]:
    with SessionDB() as db:
        return dict(db.list_sessions_rich(limit=1)[0])


def stored() -> list[str]:
    with SessionDB() as db:
        return [str(one["content"]) for one in db.get_messages(row()["id"])]


def test_a_turn_goes_on_without_its_terminal_and_is_found_again(serve: Any) -> None:
    first = Terminal()
    opened = first.open(model=serve(f"[{{say: {SLOW}, pause: 0.15}}]"))
    first.call("prompt.submit", text="count")
    shown = first.shown_until("three")
    first.close()

    second = Terminal()
    found = second.open("session.resume", session_id=opened["stored_session_id"])
    assert found["session_id"] == opened["session_id"]
    assert found["running"]
    assert found["inflight"]["text"].startswith(shown)
    assert second.until("message.complete")["text"] == SLOW
    assert stored() == ["count", SLOW]
    second.close()


def test_two_terminals_see_the_same(serve: Any) -> None:
    first, second = Terminal(), Terminal()
    opened = first.open(model=serve("[{say: Hello.}]"))
    second.open("session.activate", session_id=opened["session_id"])
    first.call("prompt.submit", text="hi")
    assert second.until("message.start")["text"] == "hi"
    assert second.until("message.complete")["text"] == "Hello."
    assert first.until("message.complete")["text"] == "Hello."
    first.close()
    second.close()


def test_a_question_waits_for_the_next_terminal(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    call = "{name: terminal, arguments: {command: rm -rf old}}"
    first = Terminal()
    opened = first.open(model=serve(f"[{{calls: [{call}]}}, {{say: Done.}}]"), cwd=str(tmp_path))
    first.call("prompt.submit", text="clean up")
    first.until("approval.request")
    first.close()
    second = Terminal()
    found = second.open("session.resume", session_id=opened["stored_session_id"])
    question = found["inflight"]["questions"][0]
    assert question["payload"]["command"] == "rm -rf old"
    second.call("approval.respond", choice="once", request_id=question["payload"]["request_id"])
    assert second.until("message.complete")["text"] == "Done."
    assert not (tmp_path / "old").exists()
    second.close()


def test_what_was_opened_only_for_a_terminal_ends_with_it(serve: Any) -> None:
    terminal = Terminal()
    terminal.open(model=serve("[{say: Hello.}]"), close_on_disconnect=True)
    terminal.call("prompt.submit", text="hi")
    terminal.until("message.complete")
    terminal.close()
    wait_until(lambda: row()["end_reason"] == "ws_disconnect")


def test_a_conversation_nobody_looks_at_is_ended(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "ALONE_SECONDS", 0.0)
    with SessionDB() as db:
        here = hub.Hub(db)
        heard: list[str] = []
        connection = client.here(here, lambda kind, _session, _payload: heard.append(kind))
        live = here.live(connection.call("session.create", model=serve("[]"))["session_id"])
        assert live.wait(10)
        live.submit("hi")
        assert live.wait(10)
        here.sweep()
        assert here.all_live() == [live]  # somebody looks at it
        for listener in list(live._listeners):
            here.forget(listener)
        here.sweep()
        assert here.all_live() == []
        here.close_all("tui_shutdown")
    assert row()["end_reason"] == "ws_orphan_reap"


def children() -> set[int]:
    """The processes this one has started and that still run."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    files = Path("/proc/self/task").glob("*/children")
    return {int(word) for file in files for word in file.read_text().split()}


def test_one_daemon_however_many_terminals_come_at_once() -> None:
    places: list[int] = []
    before = children()
    threads = [
        threading.Thread(target=lambda: places.append(daemon.summoned().pid)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(places) == 4
    assert len(set(places)) == 1
    # The others see that there is one, and leave.
    wait_until(lambda: children() - before == {places[0]})


def test_after_a_crash_the_next_daemon_has_every_word(serve: Any) -> None:
    first = Terminal()
    model = serve(f"[{{say: {SLOW}, pause: 0.2}}]")
    opened = first.open(model=model)
    first.call("prompt.submit", text="count")
    first.shown_until("six")
    os.kill(daemon.summoned().pid, signal.SIGKILL)
    first.until(client.GONE)
    with pytest.raises(RpcError, match="lost"):
        first.call("session.status")
    second = Terminal()
    found = second.open("session.resume", session_id=opened["stored_session_id"], model=model)
    texts = [one["content"] for one in found["messages"]]
    assert texts[0] == "count"
    assert texts[1].startswith("one two three four")  # all but the last quarter of a second
    second.close()


def test_only_who_knows_the_word_gets_in() -> None:
    place = daemon.summoned()
    for headers in ({}, {"Authorization": "Bearer guess"}):
        with pytest.raises(InvalidStatus, match="401"):
            connect(place.url, additional_headers=headers, proxy=None)
    good = {"Authorization": f"Bearer {place.token}"}
    with pytest.raises(InvalidStatus, match="404"):
        connect(place.url + "/other", additional_headers=good, proxy=None)


def test_what_no_client_would_send_breaks_nothing() -> None:
    place = daemon.summoned()
    headers = {"Authorization": f"Bearer {place.token}"}
    with connect(place.url, additional_headers=headers, proxy=None) as connection:
        for message in (b"\xff\x00", "no json", "[]", '{"jsonrpc": "2.0", "id": 1}'):
            connection.send(message)
        answers = [str(connection.recv(timeout=10)) for _ in range(5)]
    assert sum('"error"' in one for one in answers) == 4
    assert Terminal().call("session.active_list") == {"sessions": []}


def test_the_daemon_is_ended_and_told_about_by_a_command(hermes: Any, serve: Any) -> None:
    assert "daemon is not running" in hermes("serve", "--status").out
    terminal = Terminal()
    terminal.open(model=serve("[{say: Hello.}]"))
    terminal.call("prompt.submit", text="hi")
    terminal.until("message.complete")
    assert "idle" in hermes("serve", "--status").out
    told = json.loads(hermes("serve", "--status", "--json").out)
    assert (told["running"], told["sessions"][0]["message_count"]) == (True, 2)
    assert hermes("serve", "--until-idle").code == 0  # one is enough
    assert "already running" in hermes("serve").err
    assert "Daemon stopped" in hermes("serve", "--stop").out
    assert row()["end_reason"] == "tui_shutdown"
    assert DAEMON.find() is None


def test_a_conversation_is_opened_once_however_often_it_is_asked_for(serve: Any) -> None:
    with SessionDB() as db:
        here = hub.Hub(db)
        connection = client.here(here, lambda *_: None)
        made = connection.call("session.create", model=serve("[{say: Hello.}]"))
        here.live(made["session_id"]).submit("hi")
        again = connection.call("session.resume", session_id=made["stored_session_id"])
        assert again["session_id"] == made["session_id"]
        assert len(here.all_live()) == 1
        here.close_all("tui_shutdown")


def test_the_same_wish_reaches_the_open_conversation(serve: Any) -> None:
    with SessionDB() as db:
        here = hub.Hub(db)
        wish = ConversationOptions(None, serve("[]"))

        class Nobody:
            def event(self, kind: str, session_id: str, payload: dict[str, Any]) -> None:
                del kind, session_id, payload

        nobody = Nobody()
        live = here.open(wish, nobody)
        again = here.open(wish._replace(session_id=live["stored_session_id"]), nobody)
        assert again["session_id"] == live["session_id"]
        here.close_all("tui_shutdown")
