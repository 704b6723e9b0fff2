"""Servers stream answers in many ways; each is read as what was meant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from hermes_agent.events import Failed, FailureKind, Reply, TextDelta
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.anthropic import Anthropic
from hermes_agent.providers.apis import APIS, ModelChoice
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.turn_control import Cancel
from support.answers import Answers, running_answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.providers.base import Provider

ARGUMENTS: Final = '{"path": "a"}'
OTHER: Final = '{"path": "b"}'
DONE: Final = "[DONE]"


class Expected(NamedTuple):
    """What an answer is read as."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()  # names and arguments
    reasoning: str = ""
    finish: str = "stop"


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def call(
    name: str | None = None, arguments: Any = None, *, index: Any = ..., call_id: Any = ...
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    part: dict[str, Any] = {"function": {n: v for n, v in function.items() if v is not None}}
    if index is not ...:
        part["index"] = index
    if call_id is not ...:
        part["id"] = call_id
    return delta(tool_calls=[part])


def end(reason: str = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **fields}


READ = (("read_file", ARGUMENTS),)
BOTH = (("read_file", ARGUMENTS), ("read_file", OTHER))
CALLS = "tool_calls"
STREAMS: Final[dict[str, tuple[list[Any], Expected]]] = {
    "index 0 for each call": (
        [call("read_file", ARGUMENTS, index=0, call_id="a"),
         call("read_file", OTHER, index=0, call_id="b"), end(CALLS), DONE],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "index 0 for each call, without IDs": (
        [call("read_file", ARGUMENTS, index=0), call("read_file", OTHER, index=0), end(CALLS)],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "neither index nor ID": (
        [call("read_file", ARGUMENTS), call("read_file", OTHER), end(CALLS), DONE],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "IDs without an index": (
        [call("read_file", '{"path":', call_id="a"), call(None, ' "a"}', call_id="a"),
         call("read_file", OTHER, call_id="b"), end(CALLS), DONE],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "parts mixed by index": (
        [call("read_file", '{"path":', index=0, call_id="a"),
         call("read_file", '{"path":', index=1, call_id="b"),
         call(None, ' "a"}', index=0), call(None, ' "b"}', index=1), end(CALLS), DONE],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "the last index first": (
        [call("read_file", OTHER, index=1, call_id="b"),
         call("read_file", ARGUMENTS, index=0, call_id="a"), end(CALLS), DONE],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "the index begins at 1": (
        [call("read_file", ARGUMENTS, index=1, call_id="a"),
         call("read_file", OTHER, index=2, call_id="b"), end(CALLS), DONE],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "the name in each part": (
        [call("read_file", '{"path":', index=0, call_id="a"),
         call("read_file", ' "a"}', index=0), end(CALLS), DONE],
        Expected(calls=READ, finish=CALLS),
    ),
    "the name in parts": (
        [call("read_", "", index=0, call_id="a"), call("file", ARGUMENTS, index=0), end(CALLS)],
        Expected(calls=READ, finish=CALLS),
    ),
    "the name grows": (
        [call("read_", "", index=0, call_id="a"),
         call("read_file", ARGUMENTS, index=0), end(CALLS)],
        Expected(calls=READ, finish=CALLS),
    ),
    "the name after the ID": (
        [call(None, None, index=0, call_id="a"), call("read_file", ARGUMENTS, index=0), end(CALLS)],
        Expected(calls=READ, finish=CALLS),
    ),
    "another ID in each part": (
        [call("read_file", '{"path":', index=0, call_id="a"),
         call(None, ' "a"}', index=0, call_id="b"), end(CALLS)],
        Expected(calls=READ, finish=CALLS),
    ),
    "an empty ID in later parts": (
        [call("read_file", '{"path":', index=0, call_id="a"),
         call("", ' "a"}', index=0, call_id=""), end(CALLS)],
        Expected(calls=READ, finish=CALLS),
    ),
    "arguments later without index and ID": (
        [call("read_file", '{"path":', call_id="a"), call(None, ' "a"}'), end(CALLS), DONE],
        Expected(calls=READ, finish=CALLS),
    ),
    "arguments as an object": (
        [call("read_file", {"path": "a"}, index=0, call_id="a"), end(CALLS), DONE],
        Expected(calls=READ, finish=CALLS),
    ),
    "no arguments": (
        [call("read_file", None, index=0, call_id="a"), end(CALLS), DONE],
        Expected(calls=(("read_file", "{}"),), finish=CALLS),
    ),
    "calls that end with stop": (
        [call("read_file", ARGUMENTS, index=0, call_id="a"), end("stop"), DONE],
        Expected(calls=READ),
    ),
    "calls without an end": (
        [call("read_file", ARGUMENTS, index=0, call_id="a"), DONE],
        Expected(calls=READ, finish=CALLS),
    ),
    "null instead of calls and text": (
        [delta(content=None, tool_calls=None), delta(content="Hi."), end(), DONE],
        Expected("Hi."),
    ),
    "an end without [DONE]": ([delta(content="Hi."), end()], Expected("Hi.")),
    "[DONE] without an end": ([delta(content="Hi."), DONE], Expected("Hi.")),
    "text with the end": (
        [{"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}, DONE],
        Expected("Hi."),
    ),
    "text in parts": (
        [delta(content=[{"type": "text", "text": "Hi."}]), end(), DONE], Expected("Hi."),
    ),
    "no choices in some events": (
        [{"choices": []}, {"object": "ping"}, delta(content="Hi."), end(), DONE], Expected("Hi."),
    ),
    "tags around the reasoning": (
        [delta(content="<think>\nSo"), delta(content=" it is.\n</think>\n\nHi."), end(), DONE],
        Expected("Hi.", reasoning="\nSo it is.\n"),
    ),
    "tags in pieces": (
        [delta(content=piece) for piece in ("<th", "ink>So", " </thi", "s> </", "think>", "\n\n",
                                            "\nHi", " <think>")] + [end(), DONE],
        Expected("Hi <think>", reasoning="So </this> "),
    ),
    "reasoning that never ends": (
        [delta(content="<think>So it"), end("length"), DONE],
        Expected("", reasoning="So it", finish="length"),
    ),
    "text that begins like a tag": (
        [delta(content="<thi"), delta(content="s> is HTML"), end(), DONE],
        Expected("<this> is HTML"),
    ),
    "only the beginning of a tag": ([delta(content="<thin"), end(), DONE], Expected("<thin")),
    "reasoning under another name": (
        [delta(reasoning="So"), delta(content="Hi."), end(), DONE],
        Expected("Hi.", reasoning="So"),
    ),
    "both names for the reasoning": (
        [delta(reasoning="So", reasoning_content="So"), delta(content="Hi."), end(), DONE],
        Expected("Hi.", reasoning="So"),
    ),
    "a refusal": ([delta(refusal="No."), end(), DONE], Expected("No.", finish="refusal")),
    "comments and blank lines": (
        [": OPENROUTER PROCESSING", "", delta(content="Hi."), "event: x", end(), DONE],
        Expected("Hi."),
    ),
    "one ID for all calls": (
        [call("read_file", ARGUMENTS, index=0, call_id="a"),
         call("read_file", OTHER, index=1, call_id="a"), end(CALLS), DONE],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "one ID and one index for all calls": (
        [call("read_file", ARGUMENTS, index=0, call_id="a"),
         call("read_file", OTHER, index=0, call_id="a"), end(CALLS), DONE],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "the name again at the end": (
        [call("read_file", ARGUMENTS, index=0, call_id="a"), call("read_file", "", index=0),
         end(CALLS), DONE],
        Expected(calls=READ, finish=CALLS),
    ),
    "no arguments, then arguments": (
        [call("read_file", "{}", index=0, call_id="a"), call(None, ARGUMENTS, index=0), end(CALLS)],
        Expected(calls=READ, finish=CALLS),
    ),
    "the arguments grow": (
        [call("read_file", '{"path":', index=0, call_id="a"),
         call("read_file", ARGUMENTS, index=0, call_id="a"), end(CALLS), DONE],
        Expected(calls=READ, finish=CALLS),
    ),
    "an empty text as index": (
        [call("read_file", ARGUMENTS, index="", call_id="a"), end(CALLS), DONE],
        Expected(calls=READ, finish=CALLS),
    ),
    "a number as ID": (
        [call("read_file", ARGUMENTS, index=0, call_id=5), end(CALLS), DONE],
        Expected(calls=READ, finish=CALLS),
    ),
    "null among the calls": (
        [delta(tool_calls=[None]), call("read_file", ARGUMENTS, index=0, call_id="a"), end(CALLS)],
        Expected(calls=READ, finish=CALLS),
    ),
    "the whole message again at the end": (
        [delta(content="Hi."),
         {"choices": [{"delta": {}, "message": {"content": "Hi."}, "finish_reason": "stop"}]}],
        Expected("Hi."),
    ),
    "a second choice": (
        [{"choices": [{"index": 0, "delta": {"content": "Hi."}},
                      {"index": 1, "delta": {"content": "No."}}]}, end(), DONE],
        Expected("Hi."),
    ),
    "null as a choice": ([{"choices": [None]}, delta(content="Hi."), end(), DONE], Expected("Hi.")),
    "events that are no objects": (
        [None, [], "data: \"ping\"", delta(content="Hi."), end(), 'data: "[DONE]"'],
        Expected("Hi."),
    ),
    "an event without data": (["data:", delta(content="Hi."), end(), DONE], Expected("Hi.")),
    "an event whose data has two lines": (
        ['data: {"choices": [{"delta":\ndata: {"content": "Hi."}}]}', end(), DONE],
        Expected("Hi."),
    ),
    "a byte order mark": (
        ['\ufeffdata: {"choices": [{"delta": {"content": "Hi."}}]}', end(), DONE],
        Expected("Hi."),
    ),
    "reasoning as parts": (
        [delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "So"}]}]),
         delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": " on"}]},
                        {"type": "text", "text": "Hi."}]), end(), DONE],
        Expected("Hi.", reasoning="So on"),
    ),
    "reasoning only as details": (
        [delta(reasoning_details=[{"type": "reasoning.text", "text": "So"}]),
         delta(content="Hi."), end(), DONE],
        Expected("Hi.", reasoning="So"),
    ),
    "other tags around the reasoning": (
        [delta(content="<thought>So</"), delta(content="thought>Hi."), end(), DONE],
        Expected("Hi.", reasoning="So"),
    ),
    "brackets around the reasoning": (
        [delta(content="[TH"), delta(content="INK]So[/THINK]Hi."), end(), DONE],
        Expected("Hi.", reasoning="So"),
    ),
}  # fmt: skip


@pytest.fixture
def answers() -> Iterator[Answers]:
    with running_answers() as server:
        yield server


def body_of(events: list[Any]) -> bytes:
    lines = [
        each if isinstance(each, str) and each != DONE
        else f"data: {each if each == DONE else json.dumps(each)}"
        for each in events
    ]  # fmt: skip
    return "\n\n".join(lines).encode() + b"\n\n"


def read(provider: Provider) -> list[Any]:
    try:
        request = ModelRequest([{"role": "user", "content": "hi"}], [])
        return list(provider.stream(request, Cancel()))
    finally:
        provider.close()


def reply_of(provider: Provider) -> Reply:
    last = read(provider)[-1]
    assert isinstance(last, Reply), last
    return last


def found_in(reply: Reply) -> Expected:
    calls = tuple((each.name, each.arguments) for each in reply.calls)
    assert len({each.id for each in reply.calls}) == len(calls)
    return Expected(reply.text, calls, reply.reasoning, reply.finish_reason)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read_as_what_was_meant(answers: Answers, name: str) -> None:
    events, expected = STREAMS[name]
    answers.body = body_of(events)
    assert found_in(reply_of(OpenAICompatible("m", answers.base_url, window=1))) == expected


def block(place: int | None, **fields: Any) -> dict[str, Any]:
    index = {} if place is None else {"index": place}
    return {"type": "content_block_start", **index, "content_block": fields}


def more(place: int | None, **fields: Any) -> dict[str, Any]:
    index = {} if place is None else {"index": place}
    return {"type": "content_block_delta", **index, "delta": fields}


def use(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": "read_file", "input": {}, **fields}


def ended(reason: str) -> list[dict[str, Any]]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]


ANTHROPIC_STREAMS: Final[dict[str, tuple[list[Any], Expected]]] = {
    "the whole input at the start": (
        [block(0, **use(id="a", input={"path": "a"})), *ended("tool_use")],
        Expected(calls=READ, finish=CALLS),
    ),
    "the whole input at the start and in parts": (
        [block(0, **use(id="a", input={"path": "a"})), more(0, partial_json=ARGUMENTS),
         *ended("tool_use")],
        Expected(calls=READ, finish=CALLS),
    ),
    "thinking at the start of its block": (
        [block(0, type="thinking", thinking="So", signature="s"),
         block(1, type="text", text="Hi."), *ended("end_turn")],
        Expected("Hi.", reasoning="So"),
    ),
    "no message_stop": (
        [block(0, type="text", text=""), more(0, text="Hi."), ended("end_turn")[0]],
        Expected("Hi."),
    ),
    "one index for all blocks": (
        [block(0, type="text", text=""), more(0, text="Hi."),
         block(0, **use(id="a")), more(0, partial_json=ARGUMENTS),
         block(0, **use(id="b")), more(0, partial_json=OTHER), *ended("tool_use")],
        Expected("Hi.", BOTH, finish=CALLS),
    ),
    "no index": (
        [block(None, type="text", text=""), more(None, text="Hi."),
         block(None, **use(id="a")), more(None, partial_json=ARGUMENTS), *ended("tool_use")],
        Expected("Hi.", READ, finish=CALLS),
    ),
    "calls without an ID": (
        [block(0, **use()), more(0, partial_json=ARGUMENTS),
         block(1, **use()), more(1, partial_json=OTHER), *ended("tool_use")],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "one ID for all calls": (
        [block(0, **use(id="a")), more(0, partial_json=ARGUMENTS),
         block(1, **use(id="a")), more(1, partial_json=OTHER), *ended("tool_use")],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "unknown events and blocks": (
        [{"type": "ping"}, {"type": "new"}, block(0, type="new", text="No."),
         block(1, type="text", text="Hi."), *ended("end_turn")],
        Expected("Hi."),
    ),
}  # fmt: skip


def item(place: int | None, kind: str = "done", **fields: Any) -> dict[str, Any]:
    index = {} if place is None else {"output_index": place}
    return {"type": f"response.output_item.{kind}", **index, "item": fields}


def called(**fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": "read_file", **fields}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    response = {"status": "completed", "output": list(output)}
    return {"type": "response.completed", "response": response}


def arguments_of(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.function_call_arguments.{kind}", **fields}


HI: Final = {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}
RESPONSES_STREAMS: Final[dict[str, tuple[list[Any], Expected]]] = {
    "text only in the whole item": ([item(0, **HI), completed()], Expected("Hi.")),
    "text only in the whole answer": ([completed(HI)], Expected("Hi.")),
    "a call only in the whole answer": (
        [completed(called(call_id="a", arguments=ARGUMENTS))],
        Expected(calls=READ, finish=CALLS),
    ),
    "the whole answer again at the end": (
        [{"type": "response.output_text.delta", "output_index": 0, "delta": "Hi."},
         item(0, **HI), completed(HI)],
        Expected("Hi."),
    ),
    "items without an index": (
        [item(None, "added", **called(id="f1", call_id="a")),
         arguments_of("delta", item_id="f1", delta=ARGUMENTS),
         item(None, **called(id="f1", call_id="a", arguments=ARGUMENTS)),
         item(None, **called(id="f2", call_id="b", arguments=OTHER)), completed()],
        Expected(calls=BOTH, finish=CALLS),
    ),
    "a whole call without its arguments": (
        [item(0, "added", **called(call_id="a")),
         arguments_of("delta", output_index=0, delta=ARGUMENTS),
         item(0, **called(call_id="a")), completed()],
        Expected(calls=READ, finish=CALLS),
    ),
    "arguments in one piece": (
        [item(0, "added", **called(call_id="a")),
         arguments_of("done", output_index=0, arguments=ARGUMENTS), completed()],
        Expected(calls=READ, finish=CALLS),
    ),
    "[DONE] without an end": (
        [{"type": "response.output_text.delta", "output_index": 0, "delta": "Hi."}, DONE],
        Expected("Hi."),
    ),
}  # fmt: skip
OF_OTHER_APIS: Final = {
    f"{api}: {name}": (api, *stream)
    for api, streams in (("anthropic", ANTHROPIC_STREAMS), ("responses", RESPONSES_STREAMS))
    for name, stream in streams.items()
}


@pytest.mark.parametrize("name", OF_OTHER_APIS)
def test_a_stream_of_another_api_is_read_as_what_was_meant(answers: Answers, name: str) -> None:
    api, events, expected = OF_OTHER_APIS[name]
    answers.body = body_of(events)
    provider = ModelChoice(APIS[api], "claude-sonnet-4-5", answers.base_url, "key", 1000).provider()
    assert found_in(reply_of(provider)) == expected


def test_reasoning_after_the_text_of_a_cut_answer_does_not_go_back(answers: Answers) -> None:
    thought = item(1, type="reasoning", id="r", summary=[], encrypted_content="e")
    incomplete = {"incomplete_details": {"reason": "max_output_tokens"}}
    answers.body = body_of(
        [item(0, **HI), thought, {"type": "response.incomplete", "response": incomplete}]
    )
    provider = ModelChoice(APIS["responses"], "m", answers.base_url, "key", 1000).provider()
    answer = reply_of(provider).message()
    next_prompt: Any = {"role": "user", "content": "continue"}
    request = ModelRequest([{"role": "user", "content": "hi"}, answer, next_prompt], [])
    sent = json.loads(provider.body(request))["input"]  # type: ignore[attr-defined]
    assert [each["type"] for each in sent] == ["message"] * 3


def test_a_stream_that_is_called_json_is_read(answers: Answers) -> None:
    answers.content_type = "application/json"
    answers.body = body_of([delta(content="Hi."), end(), DONE])
    assert reply_of(OpenAICompatible("m", answers.base_url, window=1)).text == "Hi."


BOOM: Final = {"code": 503, "message": "boom"}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": BOOM}),
        f"error: {json.dumps(BOOM)}",
        f"event: error\ndata: {json.dumps(BOOM)}",
        f"data: {json.dumps({'object': 'error', **BOOM})}\n\ndata: [DONE]",
        f"data: {json.dumps({'type': 'error', **BOOM})}",
        f"data: {json.dumps({'choices': [{'finish_reason': 'error', 'error': BOOM}]})}",
    ],
    ids=["not an event", "llama.cpp", "name of the event", "vLLM", "Responses", "OpenRouter"],
)
def test_an_error_is_found_wherever_it_is_in_a_stream(answers: Answers, body: str) -> None:
    answers.body = f"{body}\n\n".encode()
    last = read(OpenAICompatible("m", answers.base_url, window=1000))[-1]
    assert isinstance(last, Failed)
    assert (last.kind, last.is_transient) == (FailureKind.SERVER, True)
    assert "boom" in last.message


def test_a_stream_that_ends_within_an_event_is_cut_off(answers: Answers) -> None:
    answers.body = b'data: {"choices": [{"delta": {"content": "Hi'
    last = read(OpenAICompatible("m", answers.base_url, window=1000))[-1]
    assert isinstance(last, Failed)
    assert (last.kind, last.is_transient) == (FailureKind.CUT, True)


@pytest.mark.parametrize("finish", ["tool_calls", "eos", "unexpected_tool_call", "stop"])
def test_an_answer_without_text_and_calls_is_empty(answers: Answers, finish: str) -> None:
    answers.body = body_of([end(finish), DONE])
    assert reply_of(OpenAICompatible("m", answers.base_url, window=1)).is_empty


def test_what_is_shown_is_what_is_stored(answers: Answers) -> None:
    answers.body = body_of(STREAMS["tags in pieces"][0])
    events = read(OpenAICompatible("m", answers.base_url, window=1))
    shown = "".join(each.text for each in events if isinstance(each, TextDelta))
    assert shown == events[-1].text


@pytest.mark.parametrize(
    ("usage", "read_tokens", "written"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 900}}, 900, 0),
        ({"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100}, 900, 0),
        ({"cached_tokens": 900}, 900, 0),
        ({"prompt_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 100}}, 800, 100),
    ],
    ids=["OpenAI", "DeepSeek", "Kimi", "OpenRouter"],
)
def test_cached_tokens_are_counted_as_such(
    answers: Answers, usage: dict[str, Any], read_tokens: int, written: int
) -> None:
    counts = {"prompt_tokens": 1000, "completion_tokens": 7, **usage}
    for events in (
        [delta(content="Hi."), end(), {"choices": [], "usage": counts}, DONE],
        [delta(content="Hi."), {"choices": [{"finish_reason": "stop", "usage": counts}]}, DONE],
        [delta(content="Hi."), end(x_groq={"usage": counts}), DONE],
    ):
        answers.body = body_of(events)
        found = reply_of(OpenAICompatible("m", answers.base_url, window=1)).usage
        assert (found.cache_read, found.cache_write) == (read_tokens, written)
        assert (found.input, found.output) == (1000 - read_tokens - written, 7)


WHOLE: Final[dict[str, dict[str, Any]]] = {
    "openai": {
        "choices": [
            {
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "Hi.",
                    "tool_calls": [
                        {"id": "a", "function": {"name": "read_file", "arguments": ARGUMENTS}}
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    },
    "anthropic": {
        "type": "message",
        "content": [
            {"type": "text", "text": "Hi."},
            {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    },
    "responses": {
        "status": "completed",
        "error": None,
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]},
            {
                "type": "function_call",
                "call_id": "a",
                "name": "read_file",
                "arguments": ARGUMENTS,
            },
        ],
        "usage": {"input_tokens": 10, "output_tokens": 5},
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "Hi."},
                        {"functionCall": {"name": "read_file", "args": {"path": "a"}}},
                    ]
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5},
    },
}


@pytest.mark.parametrize("api", WHOLE)
def test_a_whole_answer_in_place_of_a_stream_is_read(answers: Answers, api: str) -> None:
    answers.content_type = "application/json; charset=utf-8"
    answers.body = json.dumps(WHOLE[api]).encode()
    provider = ModelChoice(APIS[api], "m", answers.base_url, "key", 1000).provider()
    reply = reply_of(provider)
    assert found_in(reply) == Expected("Hi.", READ, finish="tool_calls")
    assert reply.usage[:2] == (10, 5)


@pytest.mark.parametrize("api", ["openai", "anthropic", "responses", "gemini"])
def test_an_answer_whose_connection_is_reset_after_its_end_is_complete(
    answers: Answers, api: str
) -> None:
    ends = {
        "openai": [delta(content="Hi."), end()],
        "anthropic": [
            {"type": "content_block_delta", "index": 0, "delta": {"text": "Hi."}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ],
        "responses": [
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi."},
            {"type": "response.completed", "response": {"status": "completed"}},
        ],
        "gemini": [{"candidates": [{"content": {"parts": [{"text": "Hi."}]},
                                    "finishReason": "STOP"}]}],
    }  # fmt: skip
    answers.body = body_of(ends[api])
    answers.missing_bytes = 10  # the server promises more than it sends
    provider = ModelChoice(APIS[api], "m", answers.base_url, "key", 1000).provider()
    assert reply_of(provider).text == "Hi."


@pytest.mark.parametrize("api", ["openai", "anthropic", "responses", "gemini"])
def test_an_answer_that_is_cut_off_is_not_complete(answers: Answers, api: str) -> None:
    starts = {
        "openai": [delta(content="Hi")],
        "anthropic": [{"type": "content_block_delta", "index": 0, "delta": {"text": "Hi"}}],
        "responses": [{"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}],
        "gemini": [{"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}],
    }
    answers.body = body_of(starts[api])
    answers.missing_bytes = 10
    last = read(ModelChoice(APIS[api], "m", answers.base_url, "key", 1000).provider())[-1]
    assert isinstance(last, Failed)
    assert last.kind is FailureKind.CUT


@pytest.mark.parametrize(
    ("error", "kind", "is_transient"),
    [
        ({"code": 429, "message": "Slow down"}, FailureKind.LIMIT, True),
        ({"code": 502, "message": "Upstream"}, FailureKind.SERVER, True),
        ({"code": "rate_limit_exceeded", "message": "Slow down"}, FailureKind.LIMIT, True),
        ({"code": "server_error", "message": "Oops"}, FailureKind.SERVER, True),
        ({"type": "api_error", "message": "Oops"}, FailureKind.SERVER, True),
        ({"type": "rate_limit_error", "message": "Slow down"}, FailureKind.LIMIT, True),
        ({"type": "overloaded_error", "message": "Overloaded"}, FailureKind.SERVER, True),
        ({"code": 402, "message": "Pay"}, FailureKind.CREDIT, False),
        ({"type": "authentication_error", "message": "key"}, FailureKind.KEY, False),
        ({"type": "invalid_request_error", "message": "No"}, FailureKind.REFUSED, False),
        ({"code": 400, "message": "maximum context length is 10 tokens"}, FailureKind.CONTEXT,
         False),
        ("out of memory", FailureKind.SERVER, True),
    ],
)  # fmt: skip
def test_an_error_within_the_stream_is_that_of_a_response(
    answers: Answers, error: Any, kind: FailureKind, is_transient: bool
) -> None:
    answers.body = body_of([{"type": "error", "error": error}])
    for provider in (
        OpenAICompatible("m", answers.base_url, window=1000),
        Anthropic("m", "key", answers.base_url, window=1000),
    ):
        last = read(provider)[-1]
        assert isinstance(last, Failed)
        assert (last.kind, last.is_transient) == (kind, is_transient)


def test_blocks_go_back_in_the_order_in_which_they_came(answers: Answers) -> None:
    started = {"type": "content_block_start"}
    answers.body = body_of(
        [
            {**started, "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"text": "First. "}},
            {**started, "index": 1,
             "content_block": {"type": "thinking", "thinking": "Hm", "signature": "s1"}},
            {**started, "index": 2, "content_block": {"type": "text", "text": "Then."}},
            {**started, "index": 3,
             "content_block": {"type": "redacted_thinking", "data": "secret"}},
            {**started, "index": 4,
             "content_block": {"type": "tool_use", "id": "a", "name": "look", "input": {}}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ]
    )  # fmt: skip
    provider = Anthropic("claude-opus-4-7", "key", answers.base_url, window=1000)
    answer = reply_of(provider).message()
    assert answer["content"] == "First. Then."
    result: Any = {"role": "tool", "tool_call_id": "a", "tool_name": "look", "content": "{}"}
    tools: Any = [{"type": "function", "function": {"name": "look", "description": "",
                                                    "parameters": {}}}]  # fmt: skip
    request = ModelRequest([{"role": "user", "content": "hi"}, answer, result], tools)
    sent = json.loads(provider.body(request))["messages"][1]["content"]
    kinds = ["text", "thinking", "text", "redacted_thinking", "tool_use"]
    assert [block["type"] for block in sent] == kinds
    assert (sent[0]["text"], sent[2]["text"]) == ("First. ", "Then.")
    answer["content"] = "Changed by a plugin."
    sent = json.loads(provider.body(request))["messages"][1]["content"]
    kinds = ["thinking", "redacted_thinking", "text", "tool_use"]
    assert [block["type"] for block in sent] == kinds


def test_reasoning_items_stand_before_what_they_led_to(answers: Answers) -> None:
    def item(place: int, **fields: Any) -> dict[str, Any]:
        return {"type": "response.output_item.done", "output_index": place, "item": fields}

    def called(place: int, call_id: str) -> dict[str, Any]:
        return item(place, type="function_call", call_id=call_id, name="look", arguments="{}")

    answers.body = body_of(
        [
            item(0, type="reasoning", id="r1", summary=[], encrypted_content="e1"),
            called(1, "a"),
            item(2, type="reasoning", id="r2", summary=[], encrypted_content="e2"),
            called(3, "b"),
            {"type": "response.completed", "response": {"status": "completed"}},
        ]
    )
    provider = ModelChoice(APIS["responses"], "m", answers.base_url, "key", 1000).provider()
    answer = reply_of(provider).message()
    results: list[Any] = [
        {"role": "tool", "tool_call_id": call_id, "tool_name": "look", "content": "{}"}
        for call_id in ("a", "b")
    ]
    tools: Any = [{"type": "function", "function": {"name": "look", "description": "",
                                                    "parameters": {}}}]  # fmt: skip
    request = ModelRequest([{"role": "user", "content": "hi"}, answer, *results], tools)
    sent = json.loads(provider.body(request))["input"]  # type: ignore[attr-defined]
    assert [each.get("id") or each.get("call_id") for each in sent[1:]] == [
        "r1", "a", "r2", "b", "a", "b",
    ]  # fmt: skip
