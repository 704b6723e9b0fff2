"""API keys that are exported after the daemon was started, and limits that a client gives."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_tui.conversation import ConversationClient, OpenRequest
from support.daemons import DaemonClient, stopping_daemon
from support.scripted_server import ScriptServer
from tui_gateway import client_environment, daemon
from tui_gateway.frames import RpcError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "sk-exported-later"


@pytest.fixture(autouse=True)
def _stop_daemon() -> Iterator[None]:
    with stopping_daemon():
        yield


def files_with(text: str, folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


def test_a_key_that_is_exported_after_the_daemon_was_started_is_used_and_not_saved(
    monkeypatch: pytest.MonkeyPatch, hermes_home: Path, tmp_path: Path
) -> None:
    early = DaemonClient()  # starts the daemon, without a key
    with ScriptServer(ModelScript.parse("steps: [{say: First.}, {say: Second.}]")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "scripted")
        late = ConversationClient(daemon.connect_to_daemon, OpenRequest(str(tmp_path)))
        late.open()
        assert late.info.model == "scripted"
        (notice,) = late.pop_notices()
        assert notice.startswith("OPENAI_API_KEY was set or changed after the daemon was started.")
        late.call("session.steer", text="hello")
        early.open("session.resume", session_id=late.session_id)
        early.wait_for("message.complete")
        assert server.headers[-1]["authorization"] == f"Bearer {KEY}"

        same = ConversationClient(daemon.connect_to_daemon, OpenRequest(str(tmp_path)))
        same.open()
        assert same.pop_notices() == []

        monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}-2")  # the conversation is still open
        third = ConversationClient(
            daemon.connect_to_daemon, OpenRequest(str(tmp_path), late.session_id)
        )
        third.open()
        third.call("session.steer", text="again")
        early.wait_for("message.complete")
        assert server.headers[-1]["authorization"] == f"Bearer {KEY}-2"
        for each in (late, same, third):
            each.leave(is_over=True)
    early.close()
    assert files_with(KEY, hermes_home) == []


def test_a_key_never_meets_the_address_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in client_environment.known_names():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-proxy")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GROQ_API_KEY", "groq")
    assert client_environment.take_over({"OPENAI_API_KEY": "real"}) == ["OPENAI_API_KEY"]
    assert os.environ["OPENAI_API_KEY"] == "real"
    assert "OPENAI_BASE_URL" not in os.environ
    assert os.environ["GROQ_API_KEY"] == "groq"
    assert client_environment.take_over({"OPENAI_API_KEY": "real"}) == []
    assert client_environment.take_over({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}) == []
    assert "OPENAI_BASE_URL" not in os.environ
    given = {"GOOGLE_API_KEY": "g", "GEMINI_MODEL": "m"}
    assert client_environment.take_over(given) == ["GOOGLE_API_KEY"]
    assert os.environ["GEMINI_MODEL"] == "m"


def test_limits_of_a_client_reach_the_model_and_other_variables_are_refused() -> None:
    with ScriptServer(ModelScript.parse("steps: [{say: Fine.}, {say: Fine.}]")) as server:
        model = f"{server.base_url}#scripted"
        client = DaemonClient()
        limits = {"effort": "low", "max_output_tokens": 77, "max_turns": 3}
        opened = client.open(model=model, **limits)
        client.call("prompt.submit", text="hello")
        client.wait_for("message.complete")
        assert server.requests[0]["reasoning_effort"] == "low"
        assert 77 in server.requests[0].values()
        other = DaemonClient()
        other.open("session.resume", session_id=opened["stored_session_id"], effort="high")
        client.call("prompt.submit", text="again")
        client.wait_for("message.complete")
        assert server.requests[1]["reasoning_effort"] == "high"
        assert 77 in server.requests[1].values()
        for method, params in [
            ("session.create", {"effort": "extreme"}),
            ("session.create", {"max_turns": -1}),
            ("environment.update", {"variables": json.dumps({"PATH": "/tmp"})}),
            ("environment.update", {"variables": "[]"}),
        ]:
            with pytest.raises(RpcError):
                other.call(method, **params)
        client.close()
        other.close()
