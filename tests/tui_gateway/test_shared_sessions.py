"""Several clients of one conversation, and pending input between them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from support.command_line import command
from support.daemons import DaemonClient, daemon_connections, stopping_daemon, wait_until
from support.images import PIXEL
from support.model_servers import configured_models
from support.tmux import Tmux
from tui_gateway import client, daemon
from tui_gateway.frames import RpcError
from tui_gateway.hub import Hub

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture(autouse=True)
def _stop_daemon() -> Iterator[None]:
    with stopping_daemon():
        yield


@pytest.fixture
def two(serve: Any) -> Iterator[tuple[DaemonClient, DaemonClient]]:
    """Two clients of one conversation with messages."""
    first, second = DaemonClient(), DaemonClient()
    opened = first.open(model=serve(f"[{{say: A1}}, {{say: {SLOW}, pause: 0.9}}, {{say: A3}}]"))
    first.call("prompt.submit", text="hi")
    first.wait_for("message.complete")
    second.open("session.activate", session_id=opened["session_id"])
    yield first, second
    first.close()
    second.close()


def test_closing_in_one_client_keeps_the_other_attached(
    two: tuple[DaemonClient, DaemonClient],
) -> None:
    first, second = two
    assert first.call("session.close") == {"closed": False}
    second.call("prompt.submit", text="still there?")
    assert second.wait_for("message.complete")["text"] == SLOW
    assert second.call("session.close") == {"closed": True}


def test_a_new_conversation_does_not_affect_the_other_client(
    two: tuple[DaemonClient, DaemonClient],
) -> None:
    first, second = two
    before = second.call("session.status")["stored_session_id"]
    result = first.call("command.dispatch", name="new")
    assert result["session_id"] != second.live
    assert second.call("session.status")["stored_session_id"] == before
    first.live = result["session_id"]
    assert first.call("session.history") == {"messages": []}
    with SessionDB() as db:
        row = db.get_session(before)
        assert row is not None
        assert row["ended_at"] is None


def test_resuming_a_conversation_open_elsewhere_attaches_to_it(
    serve: Any, two: tuple[DaemonClient, DaemonClient]
) -> None:
    first, _ = two
    stored = first.call("session.status")["stored_session_id"]
    first.call("prompt.submit", text="count")
    first.text_until("two")
    third = DaemonClient()
    third.open(model=serve("[]"))
    result = third.call("command.dispatch", name="resume", arg=stored)
    assert result["session_id"] == first.live
    third.live = result["session_id"]
    assert third.call("session.status")["running"]
    assert third.wait_for("message.complete")["text"] == SLOW
    third.close()


def options_in_use(connection: DaemonClient) -> dict[str, Any]:
    permissions = connection.call("session.permissions")
    return {"mode": permissions["mode"], "rules": permissions["rules"]["session"]}


def test_reopening_an_open_conversation_applies_the_mode_and_rules_asked_for(
    two: tuple[DaemonClient, DaemonClient],
) -> None:
    first, second = two
    first.call("session.permissions", mode="full")
    stored = first.call("session.status")["stored_session_id"]
    first.call("prompt.submit", text="count")
    first.text_until("two")  # also while a turn runs
    second.open("session.resume", session_id=stored, mode="plan", allow="run: make *")
    assert options_in_use(first) == {"mode": "plan", "rules": ["run: make *"]}
    assert first.wait_for("session.info")["mode"] == "plan"
    assert first.wait_for("message.complete")["text"] == SLOW


def test_hermes_c_with_a_mode_sets_the_mode_of_a_conversation_that_is_open(tmp_path: Path) -> None:
    with configured_models() as configure, Tmux(tmp_path, 100, 30) as terminal:
        configure("[{say: Hello.}]")
        first = DaemonClient()
        first.open(mode="full", cwd=str(Path.cwd()))
        first.call("prompt.submit", text="hi")
        first.wait_for("message.complete")
        terminal.run(command("-c", "--mode", "plan"))
        terminal.wait_for("F1 keys")
        assert options_in_use(first)["mode"] == "plan"
        terminal.press("C-d")
        terminal.wait_for_end()
        first.close()


def test_reopening_an_open_conversation_applies_every_option_at_once(
    serve: Any, two: tuple[DaemonClient, DaemonClient], tmp_path: Path
) -> None:
    first, second = two
    stored = first.call("session.status")["stored_session_id"]
    second.close()
    first.close()
    wait_until(lambda: daemon_connections() == 0)
    third = DaemonClient()
    (tmp_path / "elsewhere").mkdir()
    model = serve("[{calls: [{name: terminal, arguments: {command: pwd}}]}, {say: never}]")
    opened = third.open(
        "session.resume",
        session_id=stored,
        model=model,
        mode="plan",
        allow="run: pwd",
        max_turns=1,
        effort="high",
        cwd=str(tmp_path / "elsewhere"),
    )
    assert opened["session_id"] == first.live  # it was open all the time
    assert opened["info"]["cwd"] == str(tmp_path / "elsewhere")
    assert options_in_use(third) == {"mode": "plan", "rules": ["run: pwd"]}
    third.call("prompt.submit", text="go")
    assert third.wait_for("message.complete")["problem"] == "step_limit"
    third.close()


def test_options_that_a_running_turn_cannot_take_are_refused(
    serve: Any, two: tuple[DaemonClient, DaemonClient]
) -> None:
    first, second = two
    stored = first.call("session.status")["stored_session_id"]
    first.call("prompt.submit", text="count")
    first.text_until("two")
    with pytest.raises(RpcError, match="A turn is running in this conversation"):
        second.open("session.resume", session_id=stored, effort="high", mode="plan")
    assert options_in_use(first)["mode"] == "workspace"
    assert first.wait_for("message.complete")["text"] == SLOW


def test_a_client_in_another_folder_does_not_move_a_conversation_that_is_in_use(
    two: tuple[DaemonClient, DaemonClient], tmp_path: Path
) -> None:
    first, second = two
    status = first.call("session.status")
    opened = second.open(
        "session.resume", session_id=status["stored_session_id"], cwd=str(tmp_path)
    )
    assert opened["info"]["cwd"] == status["cwd"] != str(tmp_path)
    assert status["cwd"] in second.wait_for("status.update")["text"]


def test_an_undo_is_announced_to_the_other_client(
    two: tuple[DaemonClient, DaemonClient],
) -> None:
    first, second = two
    first.call("session.undo")
    second.wait_for("session.changed")
    assert second.call("session.history") == {"messages": []}
    first.call("command.dispatch", name="redo")
    second.wait_for("session.changed")


def test_pending_input_is_sent_to_clients_that_attach(
    two: tuple[DaemonClient, DaemonClient],
) -> None:
    first, second = two
    first.call("prompt.submit", text="count")
    first.text_until("two")
    assert first.call("session.queue", text="and then?") == {"status": "queued"}
    assert first.call("session.steer", text="quickly") == {"status": "queued"}
    opened = second.open("session.activate")
    assert opened["inflight"]["waiting"] == ["quickly", "and then?"]
    assert opened["inflight"]["asked"] == ""
    assert [message["content"] for message in opened["messages"]] == ["hi", "A1", "count"]


def test_pending_input_survives_a_daemon_crash(serve: Any) -> None:
    model = serve(f"[{{say: {SLOW}, pause: 0.9}}]")
    first = DaemonClient()
    opened = first.open(model=model)
    first.call("prompt.submit", text="count")
    first.text_until("two")
    first.call("session.queue", text="and then?")
    os.kill(daemon.ensure_running().pid, signal.SIGKILL)
    first.wait_for("gateway.gone")
    second = DaemonClient()
    result = second.open("session.resume", session_id=opened["stored_session_id"], model=model)
    assert result["unread"] == "and then?"
    assert second.open("session.activate")["unread"] == ""
    second.close()


@pytest.fixture
def picture(tmp_path: Path) -> str:
    path = tmp_path / "dot.png"
    path.write_bytes(PIXEL)
    return str(path)


def has_picture(message: dict[str, Any]) -> bool:
    return isinstance(message["content"], list)


def test_a_picture_attached_during_a_turn_goes_with_the_message_that_is_sent_next(
    two: tuple[DaemonClient, DaemonClient], picture: str
) -> None:
    first, second = two
    first.call("prompt.submit", text="count")
    first.text_until("two")
    second.call("session.queue", text="plain")
    first.call("image.attach", path=picture)
    first.call("session.steer", text="look")  # the running turn cannot read pictures
    second.call("session.queue", text="last")
    for _ in range(4):
        first.wait_for("message.complete")
    messages = first.call("session.history")["messages"]
    prompts = [message for message in messages if message["role"] == "user"]
    assert [has_picture(prompt) for prompt in prompts] == [False, False, False, True, False]


@pytest.mark.parametrize("method", ["session.queue", "session.steer"])
def test_a_message_that_waits_owns_the_pictures_it_was_sent_with(
    two: tuple[DaemonClient, DaemonClient], picture: str, method: str
) -> None:
    first, second = two
    first.call("prompt.submit", text="count")
    first.text_until("two")
    first.call(method, text="look", images=picture)
    second.call("session.queue", text="plain")
    second.call("session.interrupt")
    ends = [client.wait_for("message.complete") for client in two]
    assert [end["unread"] for end in ends] == ["look", "plain"]
    assert [end.get("unread_images") for end in ends] == [[picture], []]
    second.call("prompt.submit", text="and now?")
    second.wait_for("message.complete")
    assert not any(map(has_picture, second.call("session.history")["messages"]))


def test_a_message_with_a_picture_that_is_not_one_is_refused(
    two: tuple[DaemonClient, DaemonClient], tmp_path: Path
) -> None:
    first, _ = two
    (tmp_path / "dot.png").write_text("no picture")
    with pytest.raises(RpcError, match="not a readable image"):
        first.call("session.queue", text="look", images=str(tmp_path / "dot.png"))
    assert first.call("session.status")["status"] == "idle"


def test_pictures_of_pending_input_survive_a_daemon_crash(serve: Any, picture: str) -> None:
    model = serve(f"[{{say: {SLOW}, pause: 0.9}}]")
    first = DaemonClient()
    opened = first.open(model=model)
    first.call("prompt.submit", text="count")
    first.text_until("two")
    first.call("session.queue", text="look", images=picture)
    first.call("session.queue", text="and then?")
    os.kill(daemon.ensure_running().pid, signal.SIGKILL)
    first.wait_for("gateway.gone")
    second = DaemonClient()
    result = second.open("session.resume", session_id=opened["stored_session_id"], model=model)
    assert result["unread"] == "look\n\nand then?"
    assert result.get("unread_images") == [picture]
    assert second.open("session.activate")["unread_images"] == []
    second.close()


def test_returned_input_waits_for_the_next_client(serve: Any) -> None:
    first = DaemonClient()
    opened = first.open(model=serve(f"[{{say: {SLOW}, pause: 0.9, cut: true}}]"))
    first.call("prompt.submit", text="count")
    first.text_until("two")
    first.call("session.queue", text="and then?")
    live, stored = first.live, opened["stored_session_id"]
    first.close()
    second = DaemonClient()
    second.call("session.interrupt", session_id=live)
    wait_until(lambda: not second.call("session.status", session_id=live)["running"])
    assert second.open("session.resume", session_id=stored)["unread"] == "and then?"
    second.close()


def test_input_during_a_command_is_sent_after_it(serve: Any) -> None:
    with SessionDB() as db:
        hub = Hub(db)
        connection = client.connect_in_process(hub, lambda *_: None)
        opened = connection.call("session.create", model=serve("[{say: A1}, {say: A2}]"))
        live = hub.live(opened["session_id"])
        with live.changing():
            assert connection.call("session.queue", session_id=live.id, text="hi") == {
                "status": "queued"
            }
            for method in ("session.undo", "session.compress"):
                with pytest.raises(RpcError, match="running"):
                    connection.call(method, session_id=live.id)
            assert not live.is_running
        wait_until(lambda: not live.is_running and len(live.messages()) == 2)
        assert [message["content"] for message in live.messages()] == ["hi", "A1"]
        hub.close_all("tui_shutdown")


def test_a_client_that_disconnects_while_opening_leaves_no_session(
    serve: Any,
) -> None:
    model = serve("[]")
    for _ in range(5):
        hasty = DaemonClient()
        hasty._client._send(
            b'{"jsonrpc":"2.0","id":9,"method":"session.create","params":{"model":"%s"}}'
            % model.encode()
        )
        hasty.close()
    watcher = DaemonClient()
    lives = lambda: watcher.call("session.active_list")["sessions"]  # noqa: E731 - a short one
    wait_until(lambda: not lives())
    watcher.close()


def test_a_client_that_attaches_during_streaming_gets_no_duplicates(serve: Any) -> None:
    words = " ".join(f"w{number}" for number in range(300))
    first = DaemonClient()
    opened = first.open(model=serve(f"[{{say: {words}, pause: 0.003}}]"))
    first.call("prompt.submit", text="go")
    for _ in range(10):
        second = DaemonClient()
        result = second.open("session.resume", session_id=opened["stored_session_id"])
        if result["inflight"] is None:
            break
        shown = result["inflight"]["text"] + second.text_until(" ")
        assert words.startswith(shown), shown[-80:]
        second.close()
    first.close()


def test_a_conversation_with_large_images_is_resumed(serve: Any, tmp_path: Path) -> None:
    picture = tmp_path / "large.png"
    picture.write_bytes(b"GIF89a" + os.urandom(13 * 1024 * 1024) + b";")
    first = DaemonClient()
    opened = first.open(model=serve("[{say: Seen.}]"), cwd=str(tmp_path))
    first.call("image.attach", path="large.png")
    first.call("prompt.submit", text="look")
    first.wait_for("message.complete")
    second = DaemonClient()
    result = second.open("session.resume", session_id=opened["stored_session_id"])
    kinds = [part["type"] for part in result["messages"][0]["content"]]
    assert kinds == ["text", "image"]
    first.close()
    second.close()
