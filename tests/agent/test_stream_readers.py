"""Whatever a provider sends, its answer ends in one reply or one failure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hermes_agent.events import Failed, Reply
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.anthropic import Anthropic
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.turn_control import Cancel
from support.answers import Answers, running_answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.providers.base import Provider

FIELDS = st.sampled_from(
    [
        "choices", "delta", "content", "tool_calls", "function", "name", "arguments", "index", "id",
        "usage", "prompt_tokens", "prompt_tokens_details", "cost", "finish_reason", "error",
        "message", "type", "content_block", "partial_json", "text", "thinking", "input_tokens",
        "stop_reason", "reasoning",
    ]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "error"]
)
PREFIXES = [b"data: ", b"event: error\ndata: ", b"event: content_block_delta\ndata: "]


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    with running_answers() as server:
        yield server


@pytest.fixture(params=["openai", "anthropic"], scope="module")
def provider(request: pytest.FixtureRequest, answers: Answers) -> Iterator[Provider]:
    made: Provider = (
        OpenAICompatible("m", answers.base_url, window=1000)
        if request.param == "openai"
        else Anthropic("m", "key", answers.base_url, window=1000)
    )
    yield made
    made.close()


def _stream(provider: Provider) -> list[ProviderEvent]:
    request = ModelRequest([{"role": "user", "content": "hi"}], [])
    return list(provider.stream(request, Cancel()))


def _ends_once(events: list[ProviderEvent]) -> bool:
    ends = [isinstance(event, Reply | Failed) for event in events]
    return sum(ends) == 1 and ends[-1]


def _line(prefix: bytes, value: object) -> bytes:
    return prefix + json.dumps(value).encode() + b"\n\n"


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chunks=st.lists(
        st.tuples(st.sampled_from(PREFIXES), VALUES | st.fixed_dictionaries({"type": KINDS})),
        max_size=4,
    )
)
@example(chunks=[(b"data: ", {"choices": [{"delta": {"content": ["a"]}}]})])
@example(chunks=[(b"data: ", [])])
@example(chunks=[(b"data: ", "text")])
@example(chunks=[(b"data: ", {"choices": [None]})])
@example(chunks=[(b"data: ", {"choices": [{"delta": {"tool_calls": [{"index": "one"}]}}]})])
@example(
    chunks=[
        (b"data: ", {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": {}}}]}}]})
    ]
)
@pytest.mark.timeout(60)
def test_chunks_of_any_shape_end_in_a_reply_or_a_failure(
    provider: Provider, answers: Answers, chunks: list[tuple[bytes, object]]
) -> None:
    answers.body = b"".join(_line(*chunk) for chunk in chunks) + b"data: [DONE]\n\n"
    assert _ends_once(_stream(provider))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=200))
@pytest.mark.timeout(60)
def test_any_bytes_end_in_a_reply_or_a_failure(
    provider: Provider, answers: Answers, body: bytes
) -> None:
    answers.body = body
    assert _ends_once(_stream(provider))


def test_content_in_parts_is_read_as_text(answers: Answers) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    answers.body = _line(b"data: ", {"choices": [{"delta": {"content": parts}}]})
    answers.body += b"data: [DONE]\n\n"
    provider = OpenAICompatible("m", answers.base_url, window=1000)
    *_deltas, reply = _stream(provider)
    provider.close()
    assert isinstance(reply, Reply)
    assert reply.text == "a\nb"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([r"a \ud83d", r"\ude00 b"], "a \N{GRINNING FACE} b"),  # a proxy cut it in two
        ([r"half \ud83d", " emoji"], "half \N{REPLACEMENT CHARACTER} emoji"),
        ([r"at the end \ud83d"], "at the end \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_half_a_character_costs_one_character_not_the_answer(
    answers: Answers, parts: list[str], expected: str
) -> None:
    chunks = [f'{{"choices": [{{"delta": {{"content": "{part}"}}}}]}}' for part in parts]
    provider = OpenAICompatible("m", answers.base_url, window=1000)
    answers.body = "".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]).encode()
    *_deltas, last = _stream(provider)
    provider.close()
    assert isinstance(last, Reply)
    assert last.text == expected
