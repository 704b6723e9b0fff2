"""The profile of an agent depends on the context window, which servers report."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.context.system_prompt import Situation, system_prompt
from hermes_agent.context.window import PROFILES, profile_for, warning_for
from hermes_agent.events import Notice
from hermes_agent.project.instructions import read_instructions
from hermes_agent.providers.apis import ANTHROPIC_API, OPENAI_API, ModelChoice
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_core.config.file import ConfigFile
from hermes_core.known_models import find_known_model, is_loopback
from hermes_state import SessionDB
from support.model_servers import model_servers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def start_conversation(window: int, tmp_path: Path) -> tuple[dict[str, Any], list[str]]:
    """The first request of a conversation with a model of this window, and its notices."""
    ConfigFile.of_home().set("llm.window", str(window))
    ConfigFile.of_home().set("llm.model", "m")
    with model_servers() as serve, SessionDB() as db:
        server = serve("[{say: Hello.}]")
        ConfigFile.of_home().set("llm.base_url", server.base_url)
        ConfigFile.of_home().set("llm.api", "openai")
        bundle = agent_factory.build_agent(db, None, ConversationOptions(cwd=tmp_path))  # type: ignore[arg-type]
        events = [*bundle.agent.turn("hello"), *bundle.agent.turn("again")]
        bundle.close()
    return server.requests[0], [event.text for event in events if isinstance(event, Notice)]


def names(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request["tools"]}


def test_a_small_model_gets_the_small_profile_and_one_notice_of_each_kind(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n" * 1_000)
    request, notices = start_conversation(4_096, tmp_path)
    assert names(request) == {"terminal", "read_file", "write_file", "patch"}
    assert len(json.dumps(request)) / 4 < 4_096 / 2
    assert len(notices) == 2
    assert "4,096 tokens" in notices[0]
    assert "llm.window" in notices[0]
    assert str(tmp_path / "AGENTS.md") in notices[1]


def test_a_medium_model_gets_more(tmp_path: Path) -> None:
    request, notices = start_conversation(32_000, tmp_path)
    assert {"memory", "session_search", "clarify", "search_files"} < names(request)
    assert "delegate_task" not in names(request)
    assert len(notices) == 1


def test_a_large_model_gets_the_full_profile_without_a_notice(tmp_path: Path) -> None:
    request, notices = start_conversation(128_000, tmp_path)
    assert {"memory", "delegate_task"} < names(request)
    assert notices == []


def test_the_table_is_in_order() -> None:
    assert [profile_for(tokens).name for tokens in (2_000, 8_192, 8_193, 32_768, 40_000)] == [
        "small", "small", "medium", "medium", "large",
    ]  # fmt: skip
    assert [profile.full for profile in PROFILES] == sorted(profile.full for profile in PROFILES)
    assert warning_for("m", 200_000) == ""


def test_a_prompt_is_as_long_as_the_profile_allows(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n" * 1_000)
    situation = Situation(datetime.now(UTC), tmp_path)
    lengths = []
    for profile in PROFILES:
        found = read_instructions(tmp_path, profile.instructions_bytes)
        lengths.append(
            len(
                system_prompt(
                    situation._replace(memory=["m"] * 1_000, instructions=found.text),
                    skills="- s\n" * 300,
                    profile=profile,
                )
            )
        )
    assert lengths == sorted(lengths)
    assert lengths[0] < 3_000
    assert "Skills" not in system_prompt(situation, skills="- s\n", profile=PROFILES[0])


# Windows reported by servers

MODELS = {"data": [{"id": "other", "max_model_len": 1}, {"id": "m"}]}
ANSWERS: dict[str, dict[str, Any]] = {
    "vLLM": {"/v1/models": {"data": [{"id": "m", "max_model_len": 16_384}]}},
    "LM Studio": {"/v1/models": {"data": [{"id": "m", "loaded_context_length": 16_384}]}},
    "llama-server": {
        "/v1/models": MODELS,
        "/props": {"default_generation_settings": {"n_ctx": 16_384}},
    },
    "Ollama, loaded": {
        "/v1/models": MODELS,
        "/api/ps": {"models": [{"name": "m:latest", "context_length": 16_384}]},
    },
    "Ollama, with a parameter": {
        "/v1/models": MODELS,
        "/api/ps": {"models": []},
        "/api/show": {"parameters": "stop x\nnum_ctx    16384", "model_info": {}},
    },
}


@contextmanager
def answering(answers: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """A server with fixed responses, and the requested paths."""
    request_count: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request_count.append(self.path)
            data = json.dumps(answers.get(self.path, {})).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_arguments: object) -> None:
            """Write no access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", request_count
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("program", ANSWERS)
def test_a_local_server_reports_its_context_window(program: str) -> None:
    with answering(ANSWERS[program]) as (base_url, request_count):
        provider = OpenAICompatible("m", base_url)
        assert request_count == [], "nobody is asked before it is needed"
        assert provider.resolve_window() == 16_384
        count = len(request_count)
        assert provider.resolve_window() == provider.window == 16_384
        assert len(request_count) == count, "and only once"
        provider.close()


def test_ollama_gives_a_model_that_is_not_loaded_less_than_it_could_read() -> None:
    info = {"model_info": {"llama.context_length": 131_072}}
    with answering({"/api/ps": {"models": []}, "/api/show": info}) as (base_url, _):
        provider = OpenAICompatible("m", base_url)
        assert provider.resolve_window() == 4_096
        provider.close()


@pytest.mark.parametrize("answers", [{}, {"/v1/models": [1]}, {"/props": {"a": 1}}])
def test_a_server_without_a_window_leaves_the_default(answers: dict[str, Any]) -> None:
    with answering(answers) as (base_url, _):
        provider = OpenAICompatible("m", base_url)
        assert provider.resolve_window() == 128_000
        provider.close()


def test_a_busy_or_unreachable_server_is_not_probed_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        provider = OpenAICompatible("m", f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        assert provider.resolve_window() == 128_000
        provider.close()
    gone = OpenAICompatible("m", provider.base_url)
    assert gone.resolve_window() == 128_000
    gone.close()


def test_a_configured_window_is_not_probed() -> None:
    with answering(ANSWERS["vLLM"]) as (base_url, request_count):
        provider = OpenAICompatible("m", base_url, window=5_000)
        assert provider.resolve_window() == 5_000
        assert request_count == []
        provider.close()


@pytest.mark.parametrize(
    ("choice", "window"),
    [
        (ModelChoice(OPENAI_API, "gpt-4o"), 128_000),
        (ModelChoice(OPENAI_API, "gpt-4o-2024-11-20"), 128_000),
        (ModelChoice(ANTHROPIC_API, "claude-sonnet-4-5"), 200_000),
        (ModelChoice(ANTHROPIC_API, "claude-of-tomorrow"), 200_000),
        (ModelChoice(OPENAI_API, "unknown", "https://models.example.com/v1"), 128_000),
    ],
)
def test_known_models_elsewhere_are_in_a_table(choice: ModelChoice, window: int) -> None:
    provider = choice.provider()
    assert provider.resolve_window() == window
    provider.close()


def test_the_table_finds_a_model_by_name_beginning_and_date() -> None:
    exact = find_known_model("https://api.openai.com/v1", "gpt-4o")
    assert exact is not None
    assert exact == find_known_model("https://api.openai.com/v1", "gpt-4o-2031-01-01")
    assert find_known_model("https://api.openai.com/v1", "nothing-like-it") is None
    assert find_known_model("http://127.0.0.1:1/v1", "gpt-4o") is None
    assert is_loopback("http://localhost:11434/v1")
    assert not is_loopback("https://api.openai.com/v1")
