"""What a provider reports about a failed request reaches the user, with what to do."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from agent.conftest import of_kind
from hermes_agent.events import FailureKind, Retrying, TurnEnd
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.anthropic import Anthropic
from hermes_agent.providers.failures import ErrorReport, http_failure, window_in
from hermes_agent.providers.http_stream import retry_seconds
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.tools.base import Tool, success
from hermes_agent.turn_control import Cancel
from hermes_core import __version__
from hermes_core.human_format import duration

if TYPE_CHECKING:
    from agent.conftest import Scene


@pytest.mark.parametrize(
    ("fail", "kind", "words"),
    [
        (
            "{status: 403, message: Not in your country, request_id: req_7}",
            FailureKind.FORBIDDEN,
            ["(403)", "Not in your country", "req_7", "region"],
        ),
        ("{status: 401, message: bad key}", FailureKind.KEY, ["bad key", "hermes setup"]),
        ("{status: 404, message: nothing here}", FailureKind.MODEL, ["llm.base_url", "/v1"]),
        (
            "{status: 404, message: model not found}",
            FailureKind.MODEL,
            ["no model 'scripted'", "hermes models list"],
        ),
        (
            "{status: 400, message: Unknown field credit_card}",
            FailureKind.REFUSED,
            ["credit_card"],
        ),
        (
            "{status: 429, code: insufficient_quota, message: Too bad}",
            FailureKind.CREDIT,
            ["Too bad", "Add credit"],
        ),
        (
            "{status: 400, message: Your credit balance is too low}",
            FailureKind.CREDIT,
            ["balance"],
        ),
        (
            "{status: 200, body: <html>, content_type: text/html}",
            FailureKind.BROKEN,
            ["text/html", "llm.base_url", "llm.api"],
        ),
        (
            "{status: 502, body: '<html><title>502 Bad Gateway</title>', retry_after: 9999}",
            FailureKind.SERVER,
            ["502 Bad Gateway"],
        ),
    ],
)
def test_an_error_is_shown_with_the_providers_own_text(
    scene: Scene, fail: str, kind: FailureKind, words: list[str]
) -> None:
    last = list(scene.agent(f"steps: [{{fail: {fail}}}]").turn("hi"))[-1]
    assert last.failure.kind is kind
    assert [word for word in words if word not in last.error] == []


def test_a_retry_names_the_reason_and_the_attempt(scene: Scene) -> None:
    fail = "{fail: {status: 500, message: Disk on fire., request_id: r1}}"
    events = list(scene.agent(f"steps: [{', '.join([fail] * 4)}]").turn("hi"))
    shown = [event.description for event in of_kind(events, Retrying)]
    reason = "Server error (500) from {}: Disk on fire (request ID r1)."
    host = scene.servers[0].base_url.removeprefix("http://").removesuffix("/v1")
    assert shown == [f"{reason.format(host)} Attempt {number} of 4:" for number in (2, 3, 4)]
    assert "Tried 4 times." in events[-1].error
    assert "/retry" in events[-1].error


def test_a_pause_of_an_hour_is_not_cut_short_but_reported(scene: Scene) -> None:
    agent = scene.agent("steps: [{fail: {status: 429, retry_after: 3600}}, {say: Too early.}]")
    events = list(agent.turn("hi"))
    assert of_kind(events, Retrying) == []
    assert events[-1].failure.retry_after == 3600
    assert "pause of 1 h" in events[-1].error
    assert len(scene.servers[0].requests) == 1


def test_a_requested_pause_longer_than_the_backoff_is_kept(scene: Scene) -> None:
    agent = scene.agent("steps: [{fail: {status: 429, retry_after: 200}}, {say: Too early.}]")
    for event in agent.turn("hi"):
        if isinstance(event, Retrying):
            assert event.seconds == 200
            agent.interrupt()
    assert len(scene.servers[0].requests) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("You exceeded your current quota, please check your plan and billing details. Please "
         "retry in 34.074824224s.", 34.074824224),  # Gemini, per minute
        ("Rate limit reached for m on tokens per min. Please try again in 20s. Visit", 20),
        ("Please try again in 7m12.5s.", 432.5),  # Groq
        ("Please try again in 350ms.", 0.35),
        ("Please try again in 1h2m3s.", 3723),
        ("Please try again in 12 seconds", 12),
        ("Try again later.", None),
    ],
)  # fmt: skip
def test_the_pause_may_be_in_the_text_of_an_error(text: str, seconds: float | None) -> None:
    provider = OpenAICompatible("m", "http://127.0.0.1:9", window=1000)
    failed = http_failure(ErrorReport(429, text), provider)
    provider.close()
    assert (failed.kind, failed.is_transient) == (FailureKind.LIMIT, True)
    assert failed.retry_after == (pytest.approx(seconds) if seconds is not None else None)


@pytest.mark.parametrize("is_list", [False, True])
def test_the_pause_may_be_in_the_details_of_an_error(scene: Scene, is_list: bool) -> None:
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.01s"}
    message = "You exceeded your current quota, please check your plan and billing details."
    error: Any = {"error": {"code": 429, "message": message, "details": [{}, delay]}}
    body = json.dumps([error] if is_list else error)
    fail = json.dumps({"status": 429, "content_type": "application/json", "body": body})
    events = list(scene.agent(f"steps: [{{fail: {fail}}}, {{say: Hello.}}]").turn("hi"))
    (retry,) = of_kind(events, Retrying)
    assert retry.seconds == pytest.approx(0.01)
    assert events[-1].text == "Hello."


def test_the_pause_may_be_milliseconds_or_a_date() -> None:
    assert retry_seconds({"retry-after-ms": "1500"}) == 1.5
    assert retry_seconds({}) is None
    assert retry_seconds({"retry-after": "soon"}) is None
    seconds = retry_seconds({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert seconds is not None
    assert 0 < seconds <= 100


def test_a_dead_model_is_left_alone_while_another_one_answers(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = "{calls: [{name: noop}]}"
    noop = Tool("noop", "Does nothing.", {"type": "object"}, lambda *_: success())
    dead = scene.server(f"steps: [{', '.join(['{fail: {status: 503}}'] * 9)}]")
    other = scene.server(f"steps: [{call}, {call}, {{say: Done.}}, {{say: Again.}}]")
    providers = [OpenAICompatible("m", server.base_url) for server in (dead, other)]
    agent = scene.with_providers(providers, noop)
    assert list(agent.turn("go"))[-1].text == "Done."
    assert list(agent.turn("and?"))[-1].text == "Again."
    assert len(dead.requests) == 4  # once, with its retries
    later = time.monotonic() + 301
    monkeypatch.setattr(time, "monotonic", lambda: later)
    list(agent.turn("now?"))
    assert len(dead.requests) == 8


def test_a_request_is_repeated_after_an_error_within_the_stream(scene: Scene) -> None:
    body = json.dumps('data: {"error": {"code": 502, "message": "Upstream"}}\n\n')
    fail = f"{{fail: {{status: 200, content_type: text/event-stream, body: {body}}}}}"
    agent = scene.agent(f"steps: [{fail}, {{say: Hello.}}]")
    assert list(agent.turn("hi"))[-1].text == "Hello."
    assert len(scene.servers[0].requests) == 2


HALF = "{say: Half of, cut: true}"


def test_a_lost_connection_has_advice_instead_of_a_class_name(scene: Scene) -> None:
    last = list(scene.agent(f"steps: [{', '.join([HALF] * 4)}]").turn("hi"))[-1]
    assert "Error" not in last.error
    assert "/retry" in last.error
    assert "kept" in last.error


@pytest.mark.parametrize(("api", "other"), [("openai", "Anthropic"), ("anthropic", "OpenAI")])
def test_the_wrong_api_is_recognized(scene: Scene, api: str, other: str) -> None:
    body = {
        "openai": 'data: {"type": "message_start", "message": {}}\n\n',
        "anthropic": 'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n',
    }[api]
    fail = f"{{status: 200, content_type: text/event-stream, body: {body!r}}}".replace("\\n", "\n")
    server = scene.server(f"steps: [{{fail: {fail}}}]")
    provider: Any = (
        OpenAICompatible("m", server.base_url)
        if api == "openai"
        else Anthropic("m", "k", server.base_url)
    )
    last = list(scene.with_providers([provider]).turn("hi"))[-1]
    assert other in last.error
    assert f"llm.api (now {api})" in last.error


def test_requests_name_the_program(scene: Scene) -> None:
    list(scene.agent("steps: [{say: Hi.}]").turn("hi"))
    assert scene.servers[0].headers[0]["user-agent"] == f"Hermes/{__version__}"


# The context window


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("This model's maximum context length is 128000 tokens. You sent 130000.", 128_000),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 200_000),
        ("request (9000 tokens) exceeds the available context size (4096 tokens)", 4_096),
        ("This model's maximum prompt length is 131072 but the request has 200000", 131_072),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed "
         "(1048576).", 1_048_576),
        ("Please reduce the length of the messages or completion.", 0),
    ],
)  # fmt: skip
def test_the_window_is_read_from_the_error(text: str, window: int) -> None:
    assert window_in(text) == window


def overflow(scene: Scene, message: str) -> tuple[Any, Any]:
    steps = f"[{{say: One.}}, {{fail: {{status: 400, message: {message!r}}}}}, {{say: Two.}}]"
    provider = OpenAICompatible("m", scene.server(f"steps: {steps}").base_url, window=200_000)
    agent = scene.with_providers([provider])
    list(agent.turn("word " * 20_000))
    return agent, list(agent.turn("second"))[-1]


def test_an_error_that_names_the_window_sets_it(scene: Scene) -> None:
    agent, _ = overflow(scene, "maximum context length is 128000 tokens")
    assert agent.window == 128_000


def test_the_window_never_becomes_smaller_than_an_accepted_request(scene: Scene) -> None:
    agent, _ = overflow(scene, "maximum context length is 4096 tokens")
    assert agent.window == agent._provider.current.accepted_tokens > 20_000


def test_a_guessed_window_is_forgotten_after_the_turn(scene: Scene) -> None:
    agent, _ = overflow(scene, "too many tokens")
    assert agent.window == 200_000


# Output limits and effort


def sent_by(provider: Any) -> None:
    request = ModelRequest([{"role": "user", "content": "hi"}], [])
    list(provider.stream(request, Cancel()))
    provider.close()


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-3-5-sonnet-20241022", 8_192),
        ("claude-3-opus-latest", 4_096),
        ("claude-opus-4-20250514", 32_000),
        ("claude-sonnet-4-5", 64_000),
        ("claude-opus-4-6", 128_000),
        ("claude-haiku-5-5", 128_000),
        ("another-model", 32_000),
    ],
)
def test_the_output_limit_is_that_of_the_model(scene: Scene, model: str, limit: int) -> None:
    server = scene.server("steps: []")
    sent_by(Anthropic(model, "k", server.base_url))
    assert server.requests[0]["max_tokens"] == limit


def test_a_chosen_output_limit_is_sent(scene: Scene) -> None:
    server = scene.server("steps: []")
    sent_by(Anthropic("claude-opus-4-6", "k", server.base_url, max_output=500))
    sent_by(OpenAICompatible("m", server.base_url, max_output=600))
    sent_by(OpenAICompatible("m", server.base_url))
    limits = [request.get("max_tokens") for request in server.requests]
    assert limits == [500, 600, None]


def test_a_limit_that_the_server_corrects_is_learned(scene: Scene) -> None:
    message = "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens"
    server = scene.server(f"steps: [{{fail: {{status: 400, message: '{message}'}}}}]")
    provider = Anthropic("another-model", "k", server.base_url)
    agent = scene.with_providers([provider])
    assert list(agent.turn("hi"))[-1].end is TurnEnd.COMPLETE
    assert [request["max_tokens"] for request in server.requests] == [32_000, 8_192]


def test_the_effort_is_sent_in_the_form_of_the_api(scene: Scene) -> None:
    server = scene.server("steps: []")
    url = server.base_url
    sent_by(Anthropic("claude-sonnet-4-5", "k", url, effort="high"))
    sent_by(Anthropic("claude-opus-4-7", "k", url, effort="low"))
    sent_by(OpenAICompatible("m", url, effort="medium"))
    budget, adaptive, openai = server.requests
    assert budget["thinking"] == {"type": "enabled", "budget_tokens": 24_576}
    assert budget["max_tokens"] > 24_576
    assert adaptive["thinking"] == {"type": "adaptive"}
    assert adaptive["output_config"] == {"effort": "low"}
    assert openai["reasoning_effort"] == "medium"


def test_signed_thinking_is_sent_back_with_the_calls_it_led_to(scene: Scene) -> None:
    steps = "[{think: Hm., calls: [{name: noop}]}, {calls: [{name: noop}]}, {say: Done.}]"
    server = scene.server(f"steps: {steps}")
    provider = Anthropic("claude-sonnet-4-5", "k", server.base_url, effort="low")
    noop = Tool("noop", "Does nothing.", {"type": "object"}, lambda *_: success())
    agent = scene.with_providers([provider], noop)
    list(agent.turn("go"))
    first, second, third = server.requests
    assert first["thinking"] == second["thinking"]
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "signed"}
    assert second["messages"][-2]["content"][0] == thinking
    assert "thinking" not in third  # the second answer came without any
    author = {
        "type": "author",
        "provider": urlsplit(server.base_url).netloc,
        "model": "claude-sonnet-4-5",
    }
    assert agent.conversation_store.history()[1]["reasoning_details"] == [author, thinking]


def test_durations_are_readable() -> None:
    assert [duration(seconds) for seconds in (7.2, 60, 125, 3600, 5400)] == [
        "8 s", "1 min", "2 min 5 s", "1 h", "1 h 30 min",
    ]  # fmt: skip
