"""The API with the real clients: openai, LiteLLM, langchain-openai and llm.

`make clients` installs them; without them the tests are skipped. Each client is one process for
all its cases, and all of them use one gateway process. `pytest -rP` shows their versions.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.providers.scripted import ModelScript, ScriptStep
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.api_setup import API_KEY
from support.gateway_process import GatewayProcess
from support.scripted_server import ScriptServer
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.messages import Message

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / ".clients"
SCRIPTS = Path(__file__).parent / "api_clients"
NAMES = ("openai", "litellm", "langchain", "llm")
PROGRAM = CLIENTS / "bin" / "python"

pytestmark = pytest.mark.skipif(
    not (CLIENTS / "installed-clients.lock").exists(), reason="run `make clients`"
)


class PromptScript(ModelScript):
    """A model that fails as its prompt says, and otherwise repeats it."""

    def next_step(self, messages: list[Message]) -> tuple[int, ScriptStep]:
        number, step = super().next_step(messages)
        prompt = str(messages[-1].get("content"))
        if prompt.startswith("fail "):
            return number, ScriptStep(fail={"status": int(prompt.removeprefix("fail "))})
        if prompt == "slow":
            return number, ScriptStep(say="A slow answer.", pause=0.5)
        return number, step


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def client_process(name: str, url: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LLM_USER_PATH": str(folder / name),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # no request to the Internet
        "NO_PROXY": "127.0.0.1",
    }
    command = [str(PROGRAM), "-W", "ignore", str(SCRIPTS / f"{name}_client.py"), url, API_KEY]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(process: subprocess.Popen[str], text: str = "") -> dict[str, Any]:
    output, errors = process.communicate(text, timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, errors
    return dict(json.loads(output.splitlines()[-1]))  # LiteLLM prints advice before


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What each client has found, and the prompts of all conversations."""
    folder = tmp_path_factory.mktemp("clients")
    home = folder / "home"
    home.mkdir(mode=0o700)
    port = str(free_port())
    gateway = GatewayProcess()
    with pytest.MonkeyPatch.context() as patch, ScriptServer(PromptScript([])) as server:
        for name, value in {
            "HERMES_HOME": str(home),
            "HOME": str(folder),
            "HERMES_GATEWAY_HTTP_PORT": port,
            "API_SERVER_KEY": API_KEY,
        }.items():
            patch.setenv(name, value)
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", server.base_url)
        config.set("llm.model", "scripted")
        config.set("memory.review_turns", "0")
        try:
            gateway.start()
            wait_until(gateway.is_up)
            yield run_clients(gateway, server, f"http://127.0.0.1:{port}/v1", folder)
        finally:
            gateway.cleanup()


def run_clients(
    gateway: GatewayProcess, server: ScriptServer, url: str, folder: Path
) -> dict[str, Any]:
    results: dict[str, Any] = {}
    with client_process("openai", url, folder) as first:
        for name in NAMES[1:]:
            with client_process(name, url, folder) as process:
                results[name] = finish(process)
        assert first.stdin is not None
        first.stdin.write("\n")
        first.stdin.flush()
        wait_until(lambda: "slow" in map(last_prompt, server.requests))
        gateway.kill()
        gateway.start()
        results["openai"] = finish(first)
    with SessionDB() as db:
        rows = db.lists.sessions(limit=200)
        results["conversations"] = [
            [str(message["content"]) for message in db.get_messages(row.id)] for row in rows
        ]
    return results


def last_prompt(request: Any) -> str:
    return str(request["messages"][-1].get("content"))


def test_openai_gets_answers_with_usage(found: dict[str, Any]) -> None:
    sys.stdout.write(f"openai {found['openai']['version']}\n")
    answers = found["openai"]["answers"]
    names = ("chat", "stream", "response", "later", "fetched")
    assert {name: answers[name] for name in names} == {
        "chat": "You said: hi",
        "stream": "You said: stream",
        "response": "You said: respond",
        "later": "You said: again",
        "fetched": "You said: respond",
    }
    for name in ("chat usage", "response usage"):
        assert answers[name]["total_tokens"] > 0
    assert len(answers["stream usage"]) == 1
    assert answers["last choices"] == []
    assert (answers["last event"], answers["event usage"] > 0) == ("response.completed", True)
    assert (answers["models"], answers["model"]) == (["hermes"], "hermes")


@pytest.mark.parametrize(
    ("case", "name", "status", "code"),
    [
        ("unknown model", "NotFoundError", 404, "model_not_found"),
        ("delete", "APIStatusError", 405, "method_not_allowed"),
        ("embeddings", "NotFoundError", 404, "unknown_url"),
        ("key", "AuthenticationError", 401, "invalid_api_key"),
        ("tools", "BadRequestError", 400, "unsupported_parameter"),
        ("tool result", "BadRequestError", 400, "unsupported_value"),
        ("format", "BadRequestError", 400, "unsupported_parameter"),
        ("no credit", "APIStatusError", 402, "insufficient_quota"),
        ("no credit, streamed", "APIStatusError", 402, "insufficient_quota"),
        ("provider key", "AuthenticationError", 401, "provider_key_rejected"),
    ],
)
def test_openai_raises_the_error_that_fits(
    found: dict[str, Any], case: str, name: str, status: int, code: str
) -> None:
    error = found["openai"]["errors"][case]
    assert (error["class"], error["status"], error["code"]) == (name, status, code)


def test_a_chat_of_twenty_turns_is_one_conversation(found: dict[str, Any]) -> None:
    sessions = found["openai"]["sessions"]
    assert len(sessions["of a transcript"]) == 1
    assert len(set(sessions["of a user"])) == 2
    (texts,) = [texts for texts in found["conversations"] if "turn 0" in texts]
    assert len(texts) == 40
    assert texts[-2:] == ["turn 19", "You said: turn 19"]


def test_the_retry_of_openai_over_a_crash_is_the_same_request(found: dict[str, Any]) -> None:
    assert "A slow answer." in found["openai"]["after a crash"]
    prompts = [texts for texts in found["conversations"] if "slow" in texts]
    assert len(prompts) == 1
    assert prompts[0].count("slow") == 1


def test_litellm_gets_answers_with_usage(found: dict[str, Any]) -> None:
    result = found["litellm"]
    sys.stdout.write(f"litellm {result['version']}\n")
    assert [result[name] for name in ("chat", "later", "stream", "response")] == [
        "You said: hi",
        "You said: and?",
        "You said: stream",
        "You said: respond",
    ]
    assert result["tokens"] > 0
    assert result["stream tokens"][-1] > 0
    assert result["response tokens"] > 0
    assert result["tools"] == {"class": "BadRequestError", "status": 400}
    assert result["no credit"]["class"] != "none"


def test_langchain_gets_answers_with_usage(found: dict[str, Any]) -> None:
    result = found["langchain"]
    sys.stdout.write(f"langchain-openai {result['version']}\n")
    assert [result[name] for name in ("chat", "later", "stream")] == [
        "You said: hi",
        "You said: and?",
        "You said: stream",
    ]
    assert result["tokens"] > 0
    assert result["stream tokens"] > 0
    assert result["structured"] == {"status": 400, "param": "response_format"}
    assert result["tools"] == {"status": 400, "param": "tools"}


def test_llm_answers_continues_and_fails(found: dict[str, Any]) -> None:
    result = found["llm"]
    sys.stdout.write(f"llm {result['version']}\n")
    assert (result["complete"]["code"], result["streamed"]["code"]) == (0, 0), result
    assert "You said: hi" in result["complete"]["output"]
    assert "Token usage" in result["complete"]["output"]
    assert result["streamed"]["output"] == "You said: stream"
    assert result["continued"] == {"code": 0, "output": "You said: and?"}
    assert result["failed"]["code"] == 1
    assert "no credit" in result["failed"]["output"]
