"""Models read results as plain text; the history keeps them as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.context.plain_results import with_plain_result
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from pathlib import Path


def plain(result: str) -> str:
    return str(with_plain_result({"role": "tool", "content": result})["content"])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"output": 'a "b"\n', "exit_code": 0, "error": None}, 'a "b"\n\n[exit_code: 0]'),
        ({"output": "", "exit_code": 0, "error": None}, "exit_code: 0"),
        ({"error": "No.", "output": "x", "exit_code": 1}, "Error: No.\nx\n[exit_code: 1]"),
        ({"content": "1|a\n2|b", "lines": 2, "error": None}, "1|a\n2|b\n[lines: 2]"),
        ({"matches": ["a:1:x", "b:2:y"], "count": 2, "more": True, "error": None},
         "a:1:x\nb:2:y\n[count: 2; more: true]"),
        ({"target": "memory", "entries": 2, "error": None}, "target: memory\nentries: 2"),
        ({"results": [{"goal": "g", "report": 'a\n"b"', "error": None}, {"goal": "h"}],
          "error": None}, 'results:\ngoal: g\nreport: a\n"b"\n\ngoal: h'),
        ({"jobs": [{"job": "job1"}], "error": None}, 'jobs: [{"job": "job1"}]'),
        ({"output": "", "exit_code": None, "error": "Lost."}, "Error: Lost."),
        ({"closest": ["1|a", "2|b"], "error": "No."}, "Error: No.\nclosest:\n1|a\n2|b"),
    ],
)  # fmt: skip
def test_a_result_is_what_was_asked_for_and_the_facts_about_it(result: Any, text: str) -> None:
    assert plain(json.dumps(result)) == text


@pytest.mark.parametrize(
    "result",
    [
        "plain", "{broken", "[1]", '{"temperature": 21}',
        '{"image": "media:x.png", "error": null}',
    ],
)  # fmt: skip
def test_other_results_are_sent_as_they_are(result: str) -> None:
    assert plain(result) == result


def test_a_request_has_text_and_the_history_json(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('x = "1"\n')
    steps = [
        tool_call_step("read_file", {"path": "a.py"}),
        tool_call_step("read_file", {"path": "missing"}),
    ]
    with open_conversation(tmp_path, *steps) as conversation:
        results = conversation.results()
        requests = conversation.server.requests
    assert results[0]["content"] == '1|x = "1"'
    sent = [message["content"] for message in requests[-1]["messages"] if message["role"] == "tool"]
    assert sent == ['1|x = "1"\n[lines: 1]', "Error: No such file or directory: missing"]
    assert requests[-1]["messages"][: len(requests[1]["messages"])] == requests[1]["messages"]


def test_a_path_with_a_nul_character_is_refused(tmp_path: Path) -> None:
    steps = [
        tool_call_step("write_file", {"path": "a\0b", "content": "x"}),
        tool_call_step("terminal", {"command": "ls", "cwd": "a\0b"}),
    ]
    with open_conversation(tmp_path, *steps) as conversation:
        errors = [result["error"] for result in conversation.results()]
    assert errors == ["A path cannot contain NUL characters."] * 2
