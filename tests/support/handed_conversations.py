"""A conversation to be handed to other agents, with everything that they show differently."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

SESSION: Final = "20260301_120000_abcdef"
SECRET: Final = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8i9J0" * 2
START: Final = 1772366400.0
PIXEL: Final = base64.b64encode(b"\x89PNG pixel").decode()


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def result(**facts: Any) -> str:
    return json.dumps({"error": None, **facts})


def write_conversation(db: SessionDB, folder: Path, session_id: str = SESSION) -> list[str]:
    """Store it; returns its texts in order.

    Two calls at once, tools that the others have and one that they lack, a failed command, and
    the same ID for two calls, as some servers give them.
    """
    db.create_session(session_id, "cli", model="model-a", cwd=str(folder))
    parts = [
        {"type": "text", "text": f"Use the key {SECRET} 灯塔"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ]
    calls = [call("call_0", "terminal", command="wc -w README.md"),
             call("call_1", "read_file", path="README.md")]  # fmt: skip
    failing = [call("call_0", "terminal", command="exit 3"),
               call("functions.memory:1", "memory", action="add", text="walrus")]  # fmt: skip
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "How many words has README.md?"},
        {"role": "assistant", "content": "I will count.", "reasoning": "Hm.", "tool_calls": calls},
        {"role": "tool", "content": result(output="7 README.md\n", exit_code=0),
         "tool_call_id": "call_0", "tool_name": "terminal"},
        {"role": "tool", "content": result(content="1|# Pelican"),
         "tool_call_id": "call_1", "tool_name": "read_file"},
        {"role": "assistant", "content": "Seven, and a pelican."},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "", "tool_calls": failing},
        {"role": "tool", "content": result(output="boom", exit_code=3),
         "tool_call_id": "call_0", "tool_name": "terminal"},
        {"role": "tool", "content": json.dumps({"error": "the memory is full"}),
         "tool_call_id": "functions.memory:1", "tool_name": "memory"},
        {"role": "assistant", "content": "Noted the walrus. 👋🏽"},
    ]  # fmt: skip
    for number, message in enumerate(messages):
        db.append_message(session_id, timestamp=START + number, **message)
    db.set_session_title(session_id, "Words of the README")
    return [str(row["content"]) for row in db.get_messages(session_id)]
