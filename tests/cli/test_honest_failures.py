"""An answer that is not what was asked for says so on the command line, in words and exit code."""

from __future__ import annotations

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
        ("[{say: ''}]", 5, ["empty answer", "/model"]),
        ("[{think: Hm., say: ''}]", 5, ["reasoning", "no answer"]),
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
