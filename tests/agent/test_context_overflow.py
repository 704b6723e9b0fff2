"""Conversations longer than the context window are compacted before or after an error."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from agent.conftest import of_kind
from hermes_agent.context.compaction import SUMMARY_HEADING
from hermes_agent.context.window import (
    SHORTENED_NOTICE,
    SUMMARIZED_NOTICE,
    estimate_tokens,
    max_result_characters,
    newest_that_fit,
    with_short_results,
)
from hermes_agent.events import Failed, FailureKind, Notice, Retrying, TextDelta, TurnEnd
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.anthropic import Anthropic
from hermes_agent.providers.failures import ErrorReport, http_failure
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.tools.base import Tool
from hermes_agent.turn_control import Cancel

if TYPE_CHECKING:
    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent

LONG = "word " * 400  # about 500 tokens
TOO_LONG = "{fail: {status: 400, message: maximum context length is 4096 tokens}}"


def overflowing_agent(scene: Scene, steps: str, window: int, *tools: Tool) -> AIAgent:
    provider = OpenAICompatible("m", scene.server(f"steps: [{steps}]").base_url, window=window)
    return scene.with_providers([provider], *tools)


def notices(events: list[Any]) -> list[str]:
    return [event.text for event in of_kind(events, Notice)]


def test_a_request_that_is_too_long_is_compacted_and_repeated(scene: Scene) -> None:
    steps = ", ".join(["{say: A}"] * 6 + [TOO_LONG, "{say: Summary.}", "{say: Here you are.}"])
    agent = overflowing_agent(scene, steps, 100_000)
    for number in range(6):
        list(agent.turn(f"{number} {LONG}"))
    events = list(agent.turn("last"))
    assert events[-1].end is TurnEnd.COMPLETE
    assert notices(events) == [SUMMARIZED_NOTICE]
    assert [item.text for item in of_kind(events, TextDelta)] == ["Here ", "you ", "are."]
    sent = [request["content"] for request in scene.servers[0].requests[-1]["messages"]]
    assert sent[1].startswith(f"{SUMMARY_HEADING}Summary.\n\n")
    assert sent[-1] == "last"
    everything = scene.db.get_messages(agent.session_id, include_inactive=True)
    assert {f"{number} {LONG}" for number in range(6)} <= {row["content"] for row in everything}
    assert [text for _, text in scene.messages(agent)].count("last") == 1
    assert agent.window < 10_000, "the next request is measured before it is sent"


def test_a_second_context_error_has_a_hint(scene: Scene) -> None:
    steps = ", ".join(["{say: A}"] * 6 + [TOO_LONG, "{say: Summary.}", TOO_LONG, "{say: no}"])
    agent = overflowing_agent(scene, steps, 100_000)
    for number in range(6):
        list(agent.turn(f"{number} {LONG}"))
    last = list(agent.turn("last"))[-1]
    assert last.end is TurnEnd.FAILED
    assert "/compress" in last.error
    assert "/new" in last.error
    assert len(scene.servers[0].requests) == 9


def test_a_request_that_would_not_fit_is_not_sent(scene: Scene) -> None:
    steps = ", ".join(["{say: A}"] * 2 + ["{say: Summary.}", "{say: Done.}"])
    agent = overflowing_agent(scene, steps, 4_000)
    list(agent.turn(LONG))
    list(agent.turn(LONG))
    events = list(agent.turn(LONG * 5))
    assert notices(events)[0] == SUMMARIZED_NOTICE
    assert len(scene.servers[0].requests) == 4
    sent = scene.servers[0].requests[3]["messages"][1]["content"]
    assert sent.startswith(f"{SUMMARY_HEADING}Summary.\n\n")


def test_a_long_result_is_truncated_on_screen_and_stored_completely(scene: Scene) -> None:
    result = "begin " + "x" * 60_000 + " end"
    tool = Tool("read", "Reads.", {}, lambda _arguments, _context: result)
    agent = overflowing_agent(scene, "{calls: [{name: read}]}, {say: Read.}", 4_096, tool)
    assert list(agent.turn("read it"))[-1].end is TurnEnd.COMPLETE
    sent = scene.servers[0].requests[1]["messages"][-1]["content"]
    assert len(sent) < 4_000
    assert sent.startswith("begin ")
    assert sent.endswith(" end")
    assert ("tool", result) in scene.messages(agent)


def test_where_nothing_can_be_summed_up_results_are_shortened_further(scene: Scene) -> None:
    tool = Tool("read", "Reads.", {}, lambda _arguments, _context: "y" * 30_000)
    steps = f"{{calls: [{{name: read}}]}}, {TOO_LONG}, {{say: Read.}}"
    agent = overflowing_agent(scene, steps, 128_000, tool)
    events = list(agent.turn("read it"))
    assert events[-1].end is TurnEnd.COMPLETE
    assert notices(events) == [SHORTENED_NOTICE]
    first, second = (scene.servers[0].requests[number]["messages"][-1] for number in (1, 2))
    assert len(second["content"]) < len(first["content"]) / 4


def test_the_answer_after_a_cut_replaces_what_was_streamed(scene: Scene) -> None:
    agent = overflowing_agent(scene, "{say: Half of, cut: true}, {say: All of it.}", 100_000)
    events = list(agent.turn("hi"))
    assert events[-1].end is TurnEnd.COMPLETE
    (retry,) = of_kind(events, Retrying)
    assert retry.drops_text
    assert scene.messages(agent) == [("user", "hi"), ("assistant", "All of it.")]


def test_a_fallback_replaces_what_was_streamed(scene: Scene) -> None:
    cut = ", ".join(["{say: Half, cut: true}"] * 4)
    servers = [scene.server(f"steps: [{step}]") for step in (cut, "{say: B}")]
    agent = scene.with_providers([OpenAICompatible("m", server.base_url) for server in servers])
    events = list(agent.turn("hi"))
    assert [item.text for item in of_kind(events, TextDelta)] == ["Half"] * 4 + ["B"]
    assert [item.drops_text for item in of_kind(events, Retrying)] == [True] * 4
    assert scene.messages(agent) == [("user", "hi"), ("assistant", "B")]


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "the request exceeds the available context size (4096 tokens), try increasing it",
        "Please reduce the length of the messages or completion.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed",
        "Input is too long for requested model.",
        "Trying to keep the first 9000 tokens when context overflows.",
    ],
)
def test_every_servers_context_error_is_recognized(message: str) -> None:
    for provider in (OpenAICompatible("m", "http://127.0.0.1:1/v1"), Anthropic("m", "k")):
        assert http_failure(ErrorReport(400, message), provider).kind is FailureKind.CONTEXT
        provider.close()


class Refusing(BaseHTTPRequestHandler):
    """Begins to stream, as some servers do, before it sees how long the question is."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.end_headers()
        error = {"type": "error", "error": {"message": "prompt is too long: 9 > 8"}}
        self.wfile.write(f"data: {json.dumps(error)}\n\n".encode())

    def log_message(self, *_arguments: object) -> None:
        """Write no access log."""


def test_a_refusal_inside_the_stream_is_understood_too() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    request = ModelRequest([{"role": "user", "content": "hi"}], [])
    for provider in (OpenAICompatible("m", url), Anthropic("m", "k", url)):
        last = list(provider.stream(request, Cancel()))[-1]
        assert isinstance(last, Failed)
        assert last.kind is FailureKind.CONTEXT
        provider.close()
    server.shutdown()
    server.server_close()


def test_other_refusals_are_not_about_length() -> None:
    provider = OpenAICompatible("m", "http://127.0.0.1:1/v1")
    message = "Invalid 'tools[0].function.name': string too long. Expected at most 64."
    assert http_failure(ErrorReport(400, message), provider).kind is FailureKind.REFUSED
    provider.close()


def test_the_estimate_includes_images_and_tools() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:" + "x" * 100_000}}
    content = [{"type": "text", "text": "look"}, picture]
    tools = [{"function": {"name": "x" * 400}}]
    assert (
        1_500 < estimate_tokens(ModelRequest([{"role": "user", "content": content}], tools)) < 2_000
    )


def test_the_first_and_the_newest_messages_fit() -> None:
    messages = [{"role": "user", "content": f"{number} {LONG}"} for number in range(10)]
    that_fit = newest_that_fit(messages, 2_000)
    assert that_fit[0] == messages[0]
    assert that_fit[1:] == messages[-len(that_fit) + 1 :]
    assert 1 < len(that_fit) < 5
    assert newest_that_fit(messages, 100_000) == messages


def test_short_results_stay_as_they_are() -> None:
    messages = [{"role": "tool", "content": "short"}, {"role": "user", "content": "u" * 10_000}]
    assert with_short_results(messages, max_result_characters(4_096)) == messages


def test_a_prompt_longer_than_the_window_is_announced_before_it_is_sent(scene: Scene) -> None:
    provider = OpenAICompatible("m", scene.server("steps: [{say: A}]").base_url, window=2_048)
    events = list(scene.with_providers([provider]).turn("x" * 20_000))
    notices = [event.text for event in of_kind(events, Notice)]
    assert notices[0].startswith("Your message has about 5,004 tokens, but the context window of m")
    assert events.index(of_kind(events, Notice)[0]) < events.index(of_kind(events, TextDelta)[0])
