"""Images that `read_file` opens are seen by the model, and stored once."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from hermes_agent.messages import Author
from hermes_agent.providers.anthropic import as_blocks
from hermes_agent.providers.request_shape import Shaper
from hermes_agent.providers.rules import ANTHROPIC, UNKNOWN
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.tools.prompter import NonInteractivePrompter
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_state import SessionDB
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path

    from agent.tools.conftest import Bench
    from hermes_agent.messages import Message

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_the_model_sees_an_image_in_every_request_and_the_history_has_a_reference(
    tmp_path: Path,
) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    read = "{calls: [{name: read_file, arguments: {path: dot.png}}]}"
    script = ModelScript.parse(f"steps: [{read}, {{say: A dot.}}, {{say: Red.}}]")
    with ScriptServer(script) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=tmp_path)
        talk = Conversation(db, NonInteractivePrompter(), options)
        list(talk.send("what is in dot.png?"))
        list(talk.send("which colour?"))
        stored = [(row.role, row.content) for row in db.messages.rows(talk.session_id)]
        talk.stop()
    url = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    for request in server.requests[1:]:
        roles = [message["role"] for message in request["messages"]]
        image = request["messages"][roles.index("tool") + 2]  # after a placeholder
        assert image["role"] == "user"
        assert image["content"][1]["image_url"]["url"] == url
    assert [role for role, _ in stored] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert json.loads(str(stored[2][1]))["image"].startswith("media:")
    assert base64.b64encode(PIXEL).decode() not in str(stored)


def test_images_of_parallel_calls_follow_all_results() -> None:
    def result(number: int) -> Message:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{number}"}}
        content = [{"type": "text", "text": "{}"}, image]
        return {"role": "tool", "tool_call_id": str(number), "content": content}

    messages: list[Message] = [result(1), result(2), {"role": "assistant", "content": "two"}]
    shaper = Shaper(Author("somewhere", "m"))
    shown = shaper.shape([*messages, result(3)], UNKNOWN, has_tools=True)
    assert [message["role"] for message in shown] == [
        "tool", "tool", "assistant", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    _system, turns = as_blocks(shaper.shape(messages, ANTHROPIC, has_tools=True))
    assert [block["type"] for block in turns[0]["content"]] == ["tool_result", "tool_result"]
    assert [part["type"] for part in turns[0]["content"][0]["content"]] == ["text", "image"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("empty.png", b"", None),
        ("cut.png", PIXEL[:-20], "damaged PNG image"),
        ("page.pdf", b"%PDF-1.4 \0", "is a PDF document"),
        ("huge.png", PIXEL + b"\0" * 3_700_000, "more than 3 MB"),
    ],
)
def test_what_is_no_usable_image_is_said(
    bench: Bench, name: str, data: bytes, error: str | None
) -> None:
    (bench.cwd / name).write_bytes(data)
    result = bench("read_file", path=name)
    assert "image" not in result
    assert (error or "None") in str(result["error"])
