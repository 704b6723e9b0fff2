"""An answer that is not what was asked for says so on the command line, in words and exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.command_line import Hermes

LOOP = "{calls: [{name: terminal, arguments: {command: echo loop}}]}"
# A tool call without the end of its arguments.
CUT_CALL = '{calls: [{name: write_file, arguments: \'{"path": "a.txt", "con\'}], finish: length}'


@pytest.fixture
def serve() -> Iterator[Any]:
    with model_servers() as start:
        yield start


@pytest.mark.parametrize(
    ("steps", "code", "words"),
    [
        ("[{say: It ends in the, finish: length}]", 4, ["cut off", "continue", "max_output"]),
        ("[{say: ''}, {say: ''}]", 5, ["empty answer", "/model"]),
        ("[{think: Hm., say: ''}, {think: Hm., say: ''}]", 5, ["reasoning", "no answer"]),
        ("[{say: '', finish: content_filter}]", 6, ["withheld", "content_filter"]),
        ("[{say: '', finish: refusal}]", 6, ["declined", "refusal"]),
        (f"[{', '.join([LOOP] * 9)}]", 8, ["same call", "echo loop", "?"]),
        (f"[{CUT_CALL}, {CUT_CALL}, {{say: Done.}}]", 4, ["tool call", "cut off"]),
    ],
)
def test_an_answer_that_is_not_whole_has_a_notice_and_an_exit_code(
    hermes: Hermes, serve: Any, steps: str, code: int, words: list[str]
) -> None:
    result = hermes("chat", "-q", "hi", "--model", model_argument(serve(steps)))
    assert result.code == code
    assert [word for word in words if word not in result.err] == []


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_run_prints_typed_events(hermes: Hermes, serve: Any) -> None:
    call = "{name: terminal, arguments: {command: echo worked}}"
    steps = f"[{{think: Hm., calls: [{call}]}}, {{say: All done., cost: 0.01}}]"
    model = model_argument(serve(steps))
    result = hermes("-p", "go", "--model", model, "--output-format", "stream-json")
    events = lines(result.out)
    kinds = list(dict.fromkeys(event["type"] for event in events))
    order = ["session", "reasoning", "usage", "tool_call", "tool_result", "text", "result"]
    assert kinds == order
    last = events[-1]
    assert (last["text"], last["end"], last["finish_reason"]) == ("All done.", "complete", "stop")
    assert last["session_id"] == events[0]["session_id"]
    assert (last["steps"], last["cost_usd"], last["exit_code"]) == (2, 0.01, result.code)
    assert last["usage"]["output_tokens"] > 0
    assert (last["problem"], last["error"]) == (None, None)


def test_a_run_is_stopped_by_its_limit_and_printed_as_one_object(
    hermes: Hermes, serve: Any
) -> None:
    other = "{calls: [{name: terminal, arguments: {command: echo %s}}]}"
    server = serve(f"[{other % 1}, {{say: So far.}}]")
    options = ("--output-format", "json", "--max-turns", "2", "--max-output-tokens", "77")
    result = hermes("go on please", "--model", model_argument(server), *options, "--effort", "low")
    (fields,) = lines(result.out)
    assert result.code == fields["exit_code"] == 7
    assert (fields["problem"], fields["text"]) == ("step_limit", "So far.")
    assert "limit of 2 steps" in fields["notice"]
    assert server.requests[0]["max_tokens"] == 77
    assert server.requests[0]["reasoning_effort"] == "low"


def test_a_failed_run_has_its_error_in_the_result(hermes: Hermes, serve: Any) -> None:
    fail = "{status: 403, message: Not here., request_id: req_5}"
    model = model_argument(serve(f"[{{fail: {fail}}}]"))
    result = hermes("chat", "-q", "hi", "--model", model, "--output-format", "json")
    (fields,) = lines(result.out)
    error = fields["error"]
    assert (result.code, fields["end"]) == (1, "failed")
    assert (error["kind"], error["status"], error["request_id"]) == ("forbidden", 403, "req_5")
    assert "Not here" in error["message"]
