"""The RPC server as a real process with a real model server."""

from __future__ import annotations

import json
import runpy
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_state import SessionDB
from support.drafts import draft_text
from support.plugin_folders import make_plugin
from support.processes import is_command_running, unique_sleep
from support.waiting import PATIENCE_SECONDS, wait_until
from support.wire import RpcClient
from tui_gateway.dispatcher import Dispatcher
from tui_gateway.hub import Hub
from tui_gateway.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
SLOW = "one two three four five six seven eight nine ten eleven twelve"
LISTENER = """
def register(ctx):
    for name in ("on_session_start", "on_session_end", "on_session_finalize"):
        def note(name=name, **facts):
            with open({path!r}, "a") as file:
                file.write(name + chr(10))
        ctx.register_hook(name, note)
"""


@pytest.fixture
def client() -> Iterator[RpcClient]:
    running = RpcClient()
    yield running
    running.close()


def opened(client: RpcClient, model: str, **more: Any) -> str:
    return str(client.call("session.create", model=model, **more)["session_id"])


def stored() -> list[dict[str, Any]]:
    with SessionDB() as db:
        row = db.list_sessions_rich(limit=1, order_by_last_active=True)[0]
        return [dict(message) for message in db.get_messages(row["id"])]


def end_reason() -> str:
    with SessionDB() as db:
        return str(db.list_sessions_rich(limit=1)[0]["end_reason"])


def test_a_turn_from_beginning_to_end(client: RpcClient, serve: Any) -> None:
    assert "prompt.submit" in client.wait_for("gateway.ready")["methods"]
    live = opened(client, serve("[{say: Hello there., think: hm}]"))
    assert client.call("prompt.submit", session_id=live, text="hi") == {"status": "streaming"}
    done = client.wait_for("message.complete")
    assert (done["text"], done["status"]) == ("Hello there.", "complete")
    kinds = [event["type"] for event in client.events]
    assert kinds.index("message.start") < kinds.index("reasoning.delta")
    assert kinds.index("reasoning.delta") < kinds.index("message.delta")
    assert [row["content"] for row in stored()] == ["hi", "Hello there."]


def test_an_answer_that_was_cut_off_is_announced_as_such(client: RpcClient, serve: Any) -> None:
    steps = (
        "[{fail: {status: 503, message: Busy., retry_after: 0.01}}, {say: It ends, finish: length}]"
    )
    live = opened(client, serve(steps))
    client.call("prompt.submit", session_id=live, text="hi")
    retry = client.wait_for("status.update")
    assert (retry["kind"], retry["seconds"]) == ("retrying", 0.0)
    assert "Busy" in retry["text"]
    assert "Attempt 2 of 4" in retry["text"]
    done = client.wait_for("message.complete")
    assert (done["status"], done["problem"]) == ("complete", "length")
    assert "cut off" in done["notice"]


def test_an_answer_that_is_asked_for_again_replaces_what_was_streamed(
    client: RpcClient, serve: Any
) -> None:
    live = opened(client, serve("[{say: Half of, cut: true}, {say: All of it.}]"))
    client.call("prompt.submit", session_id=live, text="hi")
    assert client.wait_for("status.update")["drops_text"]
    assert client.wait_for("message.complete")["text"] == "All of it."
    assert [row["content"] for row in stored()] == ["hi", "All of it."]


def test_an_unknown_model_is_refused_with_suggestions(client: RpcClient, serve: Any) -> None:
    live = opened(client, serve("[{say: Still here.}]"))
    refusal = client.ask("command.dispatch", session_id=live, name="model", arg="scriptd")
    assert "has no model 'scriptd'. Did you mean http" in refusal["error"]["message"]
    client.call("prompt.submit", session_id=live, text="hi")
    assert client.wait_for("message.complete")["text"] == "Still here."


def test_tools_are_shown_while_they_run(client: RpcClient, serve: Any, tmp_path: Path) -> None:
    call = "{name: terminal, arguments: {command: echo working}}"
    live = opened(client, serve(f"[{{calls: [{call}]}}, {{say: Done.}}]"), cwd=str(tmp_path))
    client.call("prompt.submit", session_id=live, text="go")
    assert client.wait_for("tool.start")["context"] == "terminal echo working"
    assert "working" in client.wait_for("tool.complete")["result"]
    assert client.wait_for("message.complete")["text"] == "Done."


def test_an_approval_is_requested_and_applied(
    client: RpcClient, serve: Any, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    call = "{name: terminal, arguments: {command: rm -rf old}}"
    live = opened(client, serve(f"[{{calls: [{call}]}}, {{say: Done.}}]"), cwd=str(tmp_path))
    client.call("prompt.submit", session_id=live, text="clean")
    request = client.wait_for("approval.request")
    assert request["command"] == "rm -rf old"
    wrong = client.ask("approval.respond", session_id=live, choice="perhaps")
    assert wrong["error"]["code"] == -32602
    params = {"session_id": live, "choice": "once", "request_id": request["request_id"]}
    assert client.call("approval.respond", **params) == {"resolved": True}
    client.wait_for("message.complete")
    assert not (tmp_path / "old").exists()


def test_a_question_of_the_agent_reaches_the_client(client: RpcClient, serve: Any) -> None:
    call = "{name: clarify, arguments: {question: Tea or coffee?}}"
    live = opened(client, serve(f"[{{calls: [{call}]}}, {{say: Done.}}]"))
    client.call("prompt.submit", session_id=live, text="drink")
    request = client.wait_for("clarify.request")
    client.call("clarify.respond", session_id=live, answer="tea", request_id=request["request_id"])
    client.wait_for("message.complete")
    assert "tea" in stored()[2]["content"]


def test_a_missing_api_key_is_requested_and_hidden(
    client: RpcClient, serve: Any, hermes_home: Path
) -> None:
    live = opened(client, serve("[]"))
    client.request("command.dispatch", session_id=live, name="model", arg="anthropic:claude-x")
    request = client.wait_for("secret.request")
    assert request["env_var"] == "keys.anthropic"
    params = {"session_id": live, "value": "sk-secret", "request_id": request["request_id"]}
    assert client.call("secret.respond", **params) == {"resolved": True}
    while client.call("session.status", session_id=live)["model"] != "claude-x":
        time.sleep(0.01)
    assert "sk-secret" in (hermes_home / ".env").read_text()
    assert "sk-secret" not in str(client.call("config.get", key="keys.anthropic"))


def test_images_steering_queueing_and_saving(client: RpcClient, serve: Any, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(b"GIF89a not parsed further;")
    live = opened(client, serve("[{say: Hello., pause: 0.3}, {say: Later.}]"), cwd=str(tmp_path))
    call = client.call
    assert call("image.attach", session_id=live, path="p.png") == {"attached": "p.png", "count": 1}
    assert call("image.detach", session_id=live) == {"count": 0}
    assert "error" in client.ask("image.attach", session_id=live, path="notes.txt")
    call("prompt.submit", session_id=live, text="hi")
    assert call("session.queue", session_id=live, text="and?") == {"status": "queued"}
    assert client.wait_for("message.complete")["text"] == "Hello."
    assert client.wait_for("message.complete")["text"] == "Later."
    wait_until_idle(client, live)
    saved = call("session.save", session_id=live)["file"]
    assert "Later." in Path(saved).read_text()
    page = call("session.save", session_id=live, path="export.html")["file"]
    assert "<html" in Path(page).read_text()
    assert "already exists" in str(client.ask("session.save", session_id=live, path="export.html"))
    assert call("session.cwd.set", session_id=live, cwd="/tmp")["cwd"] == "/tmp"
    assert [prompt["text"] for prompt in call("session.prompts", session_id=live)["prompts"]] == [
        "hi", "and?",
    ]  # fmt: skip
    assert len(call("session.tree", session_id=live)["sessions"]) == 1


def test_branches_are_versions_of_the_prompt_where_they_differ(
    client: RpcClient, serve: Any, tmp_path: Path
) -> None:
    (tmp_path / "p.png").write_bytes(PIXEL)
    live = opened(client, serve("[]"), cwd=str(tmp_path))
    prompts = []
    for text in ("one", "two"):
        if text == "two":
            client.call("image.attach", session_id=live, path="p.png")
        client.call("prompt.submit", session_id=live, text=text)
        message, answer = (client.wait_for("message.stored") for _ in range(2))
        assert (message["role"], answer["role"]) == ("user", "assistant")
        prompts.append(message["message_id"])
        client.wait_for("message.complete")
        wait_until_idle(client, live)
    parent = client.call("session.status", session_id=live)["stored_session_id"]
    assert client.call("session.versions", session_id=live) == {"prompts": []}
    branch = client.call("session.branch", session_id=live, message_id=prompts[1], keep_images=True)
    changed = branch["session_id"]
    client.call("prompt.submit", session_id=changed, text="three")
    client.wait_for("message.complete")
    [found] = client.call("session.versions", session_id=changed)["prompts"]
    assert found["session_ids"] == [parent, branch["stored_session_id"]]
    assert found["selected"] == 1
    prompt = client.call("session.history", session_id=changed)["messages"][2]
    assert prompt["id"] == found["message_id"]
    assert [part["type"] for part in prompt["content"]] == ["text", "image"]


def test_turns_are_exclusive_and_an_interrupt_keeps_streamed_text(
    client: RpcClient, serve: Any
) -> None:
    live = opened(client, serve(f"[{{say: {SLOW}, pause: 0.1}}]"))
    client.call("prompt.submit", session_id=live, text="count")
    shown = client.text_until("three")
    busy = client.ask("prompt.submit", session_id=live, text="me too")
    assert busy["error"]["code"] == 4009
    assert client.call("session.interrupt", session_id=live) == {"interrupted": True}
    assert client.wait_for("message.complete")["status"] == "interrupted"
    assert stored()[-1]["content"].startswith(shown.strip())


def test_undo_redo_retry_branch_title_and_history(client: RpcClient, serve: Any) -> None:
    live = opened(client, serve("[{say: A1}, {say: A2}, {say: A3}]"))
    for text in ("one", "two"):
        client.call("prompt.submit", session_id=live, text=text)
        client.wait_for("message.complete")
        wait_until_idle(client, live)
    assert client.call("session.undo", session_id=live) == {"removed": 2}
    assert client.call("session.redo", session_id=live) == {"restored": 2}
    assert client.call("session.retry", session_id=live)["text"] == "two"
    assert client.wait_for("message.complete")["text"] == "A3"
    wait_until_idle(client, live)
    assert client.call("session.title", session_id=live, title="plan") == {"title": "plan"}
    texts = [
        message["content"]
        for message in client.call("session.history", session_id=live)["messages"]
    ]
    assert texts == ["one", "A1", "two", "A3"]
    branch = client.call("session.branch", session_id=live)
    assert branch["parent"] != branch["stored_session_id"]
    assert client.call("session.usage", session_id=branch["session_id"])["output"] >= 0
    assert client.call("session.list")["sessions"]


def wait_until_idle(client: RpcClient, live: str) -> None:
    while client.call("session.status", session_id=live)["running"]:
        time.sleep(0.01)


def test_a_stored_conversation_is_resumed(client: RpcClient, serve: Any) -> None:
    model = serve("[{say: A1}, {say: A2}]")
    live = opened(client, model)
    client.call("prompt.submit", session_id=live, text="one")
    client.wait_for("message.complete")
    wait_until_idle(client, live)
    refused = client.ask("session.delete", session_id=stored()[0]["session_id"])
    assert refused["error"]["code"] == 4023
    assert client.call("session.close", session_id=live) == {"closed": True}
    assert client.ask("session.history", session_id=live)["error"]["code"] == 4001
    assert end_reason() == "tui_close"
    session_id = client.call("session.most_recent")["session_id"]
    again = client.call("session.resume", session_id=session_id, model=model)
    assert [message["content"] for message in again["messages"]] == ["one", "A1"]
    assert client.call("session.active_list")["sessions"][0]["session_id"] == again["session_id"]


def test_a_command_from_a_file_is_listed_and_becomes_a_prompt_and_trust_cannot_be_given(
    client: RpcClient, serve: Any, hermes_home: Path, tmp_path: Path
) -> None:
    for folder, name in ((hermes_home / "commands", "mine"), (tmp_path / ".hermes/commands", "x")):
        folder.mkdir(parents=True)
        (folder / f"{name}.md").write_text("Greet $1.")
    live = opened(client, serve("[{say: A1}]"), cwd=str(tmp_path))
    listed = client.call("commands.catalog", cwd=str(tmp_path))["commands"]
    assert [command["help"] for command in listed if command["name"] == "/mine"] == ["Greet $1."]
    assert "/x" not in [command["name"] for command in listed]
    assert client.call("complete.slash", text="/mi")["items"] == ["/mine"]
    sent = client.call("command.dispatch", session_id=live, name="mine", arg="Ada")
    assert (sent["type"], sent["message"]) == ("send", "Greet Ada.")
    shown = client.call("command.dispatch", session_id=live, name="trust", arg="yes")
    assert f"hermes trust {tmp_path}" in shown["output"]
    assert client.ask("command.dispatch", session_id=live, name="x")["error"]["code"] == 4018
    assert not (hermes_home / "trusted_folders.json").exists()


def test_a_hand_off_to_an_agent_opens_no_other_conversation(
    client: RpcClient, serve: Any, tmp_path: Path
) -> None:
    live = opened(client, serve("[{say: A1}]"), cwd=str(tmp_path))
    client.call("prompt.submit", session_id=live, text="hi")
    client.wait_for("message.complete")
    done = client.call("command.dispatch", session_id=live, name="handoff", arg="pi")
    assert "pi --session " in done["output"]
    assert "Started a new conversation" not in done["output"]


def test_commands_completion_settings_and_shell(
    client: RpcClient, serve: Any, tmp_path: Path
) -> None:
    live = opened(client, serve("[{say: A1}]"), cwd=str(tmp_path))
    (tmp_path / "readme.md").touch()
    names = [command["name"] for command in client.call("commands.catalog")["commands"]]
    assert "/undo" in names
    status = client.call("command.dispatch", session_id=live, name="/status")
    assert "conversation" in status["output"]
    assert client.ask("command.dispatch", session_id=live, name="nope")["error"]["code"] == 4018
    assert client.call("complete.slash", text="/und")["items"] == ["/undo"]
    assert client.call("complete.path", word="rea", cwd=str(tmp_path))["items"] == ["readme.md"]
    client.call("config.set", key="log.level", value="debug")
    assert client.call("config.get", key="log.level")["value"] == "debug"
    assert client.ask("config.set", key="log.level", value="loud")["error"]
    done = client.call("shell.exec", command="echo hi; exit 3")
    assert (done["stdout"], done["code"]) == ("hi\n", 3)


def mid_stream(client: RpcClient, serve: Any, _folder: Path) -> str:
    live = opened(client, serve(f"[{{say: {SLOW}, pause: 0.2}}]"))
    client.call("prompt.submit", session_id=live, text="count")
    return client.text_until("four").strip()


def mid_tool(client: RpcClient, serve: Any, folder: Path) -> str:
    sleep = unique_sleep()
    arguments = {"command": f"echo '{sleep}' > command; {sleep}"}
    call = json.dumps({"name": "terminal", "arguments": arguments})
    live = opened(client, serve(f"[{{say: Wait., calls: [{call}]}}, {{say: no}}]"), cwd=str(folder))
    client.call("prompt.submit", session_id=live, text="go")
    wait_until(lambda: is_command_running(sleep))
    return "Wait."


def terminate(client: RpcClient) -> None:
    client.process.send_signal(signal.SIGTERM)


def hang_up(client: RpcClient) -> None:
    client.process.send_signal(signal.SIGHUP)


def end_input(client: RpcClient) -> None:
    client.stdin.close()


def shut_down(client: RpcClient) -> None:
    request = {"jsonrpc": "2.0", "id": 999, "method": "gateway.shutdown"}
    client.send(json.dumps(request).encode())


def kill(client: RpcClient) -> None:
    wait_until(
        lambda: "four" in draft_text() or any("Wait." in str(row["content"]) for row in stored())
    )
    client.process.kill()


@pytest.mark.parametrize("moment", [mid_stream, mid_tool])
@pytest.mark.parametrize("end", [terminate, hang_up, end_input, shut_down, kill])
def test_streamed_text_and_hooks_survive_every_kind_of_exit(
    client: RpcClient, serve: Any, hermes_home: Path, tmp_path: Path, moment: Any, end: Any
) -> None:
    log = hermes_home / "hooks.log"
    make_plugin(hermes_home, "listener", LISTENER.format(path=str(log)))
    (hermes_home / "config.yaml").write_text("plugins:\n  enabled: [listener]\n")
    shown = moment(client, serve, tmp_path)
    end(client)
    client.process.wait(timeout=PATIENCE_SECONDS)
    rows = stored()
    assert shown in [row["content"] for row in rows][1] or rows[1]["content"].startswith(shown)
    is_killed = end is kill
    assert end_reason() == ("crashed" if is_killed else "tui_shutdown")
    if (tmp_path / "command").exists():
        command = (tmp_path / "command").read_text().strip()
        wait_until(lambda: not is_command_running(command), what="the end of the command")
    if not is_killed:
        lines = log.read_text().splitlines()
        assert lines.count("on_session_end") == 1
        assert lines.count("on_session_finalize") == 1


lines = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(str.encode),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {
            "jsonrpc": st.just("2.0"),
            "id": st.one_of(st.integers(), st.text(max_size=5), st.none(), st.booleans()),
            "method": st.sampled_from(sorted(set(METHODS) - {"shell.exec", "config.set"})),
            "params": st.dictionaries(
                st.sampled_from(["session_id", "text", "limit", "word", "key", "choice", "name"]),
                st.one_of(st.text(max_size=8), st.integers(), st.none(), st.lists(st.none())),
            ),
        }
    ).map(lambda value: json.dumps(value).encode()),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sent=st.lists(lines, max_size=6))
def test_any_input_gets_a_well_formed_response(sent: list[bytes]) -> None:
    written: list[bytes] = []
    with SessionDB() as db:
        hub = Hub(db)
        dispatcher = Dispatcher(hub, written.append)
        for line in sent:
            dispatcher.handle_line(line)
        hub.pool.shutdown(wait=True)
        hub.close_all("tui_shutdown")
    for data in written:
        frame = json.loads(data)
        assert frame["jsonrpc"] == "2.0"
        assert ("result" in frame) + ("error" in frame) + (frame.get("method") == "event") == 1
        if "error" in frame:
            assert isinstance(frame["error"]["code"], int)
            assert frame["error"]["message"]


def test_an_oversized_frame_is_rejected() -> None:
    written: list[bytes] = []
    with SessionDB() as db:
        Dispatcher(Hub(db), written.append).handle_line(b"x" * (17 * 1024 * 1024))
    assert json.loads(written[0])["error"]["code"] == -32700


def test_the_reference_matches_the_code() -> None:
    page = REFERENCE / "rpc.md"
    tool = runpy.run_path(str(ROOT / "tools" / "rpc_reference.py"))
    assert tool["page"](page.read_text()) == page.read_text()
    assert tool["document"]() == (REFERENCE / "rpc.openrpc.json").read_text()


def test_the_schema_is_returned(client: RpcClient) -> None:
    document = client.call("rpc.discover")
    assert [method["name"] for method in document["methods"]] == list(METHODS)


def test_errors_name_the_command_as_the_user_types_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_COMMAND", "./hermes")
    client = RpcClient()
    error = client.ask("session.resume", session_id="unknown")["error"]
    assert "`./hermes sessions list`" in error["message"]
    client.close()
