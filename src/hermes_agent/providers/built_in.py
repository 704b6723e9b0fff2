"""The built-in model: no key, no account, no network beyond this machine.

Its engine is a child process with an HTTP server on a loopback port. The model is tiny. It gets
a one-line system prompt and no tools: constrained by a JSON schema to a reply or one of three
tools, it chose the right tool for none of five requests that needed one, and its plain replies
got worse.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypedDict, cast

from hermes_agent.events import Failed, FailureKind
from hermes_agent.local import built_in
from hermes_agent.local.engine import EngineSettings
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.base import Provider
from hermes_agent.providers.failures import interrupted
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.local.built_in import BuiltIn
    from hermes_agent.messages import Message
    from hermes_agent.turn_control import Cancel

PROMPT: Final = "You are a helpful AI assistant named Hermes."
WINDOW_TOKENS: Final = 8192
MAX_TOKENS: Final = 512  # without a limit a model this small may never stop
CLOSE_SECONDS: Final = 2.0
SAMPLING: Final = {"temperature": 0.2, "top_p": 0.9, "repeat_penalty": 1.1}
CHAT_ROLES: Final = ("user", "assistant")
DOWNLOAD_HINT: Final = "Download it with `hermes models get smollm2`."
REDOWNLOAD_HINT: Final = "Download it again with `hermes models get smollm2 --again`."
ENGINE: Final = Path(built_in.__file__).with_name("engine.py")


class LocalModel(Provider):
    """The small model, run on this machine's CPU."""

    api_mode = "local"
    name = "local"
    base_url = "local:"
    is_free = True
    is_demo = True
    model = built_in.MODEL_NAME

    def __init__(self, home: BuiltIn | None = None, *, window: int = WINDOW_TOKENS) -> None:
        self.window = min(window, WINDOW_TOKENS)
        self._home = home or built_in.BuiltIn.of_home()
        self._engine: EngineProcess | None = None
        self._lock = threading.Lock()  # two requests must not start two engines

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request; yield deltas as they arrive, then exactly one Reply or Failed."""
        if cancel.is_requested:
            yield interrupted()
            return
        failure = self._installation_failure()
        if failure is not None:
            yield failure
            return
        try:
            provider = self._start(cancel)
        except EngineError as error:
            yield _start_failure(error, cancel)
            return
        max_tokens = min(request.max_tokens or MAX_TOKENS, MAX_TOKENS)
        yield from provider.stream(
            ModelRequest(chat_messages(request.messages), [], max_tokens), cancel
        )

    def close(self) -> None:
        """End the engine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _installation_failure(self) -> Failed | None:
        if not self._home.is_installed:
            reason = "The built-in model is not installed."
            return Failed(FailureKind.MODEL, reason, DOWNLOAD_HINT)
        problem = self._home.problem()
        return _broken(f"cannot be used: {problem}") if problem else None

    def _start(self, cancel: Cancel) -> OpenAICompatible:
        """Start the engine unless it runs; it may have been killed since the last request."""
        with self._lock:
            if self._engine is None or not self._engine.is_running:
                self.close()
                self._engine = EngineProcess(self._home, self.window, cancel)
            return self._engine.provider


def _start_failure(error: EngineError, cancel: Cancel) -> Failed:
    return interrupted() if cancel.is_requested else _broken(f"cannot run here ({error})")


def _broken(problem: str) -> Failed:
    reason = f"The built-in model {problem}."
    return Failed(FailureKind.BROKEN, reason, REDOWNLOAD_HINT)


class EngineError(HermesError):
    """The engine did not start."""


class EngineReport(TypedDict, total=False):
    """The answer of an engine: the address of its server, or why it has none."""

    url: str
    error: str


class EngineProcess:
    """A running engine; it ends when our end of its standard input is closed."""

    def __init__(self, home: BuiltIn, window: int, cancel: Cancel) -> None:
        key = secrets.token_hex(32)
        settings = EngineSettings(
            folder=str(home.folder),
            weights=str(home.weights()),
            window=window,
            threads=free_cores(),
            key=key,
        )
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(ENGINE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C in the terminal is for Hermes
            # Waiting OpenMP threads would otherwise spin and occupy the cores.
            env={"OMP_WAIT_POLICY": "passive"},
        )
        unsubscribe = cancel.on_request(self._process.kill)
        try:
            self.url = self._exchange(settings)
        except EngineError:
            self.close()
            raise
        finally:
            unsubscribe()
        # With progress reports the server notices a closed connection while it reads the prompt.
        self.provider = OpenAICompatible(
            built_in.MODEL_NAME,
            f"{self.url}/v1",
            key,
            name="the built-in model",
            window=window,
            extra={"return_progress": True, **SAMPLING},
        )

    @property
    def process_id(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # a process that ended did not read everything
                    pipe.close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _exchange(self, settings: EngineSettings) -> str:
        """Send the settings; return the address that the engine reports."""
        stdin, stdout = cast("tuple[IO[str], IO[str]]", (self._process.stdin, self._process.stdout))
        try:
            stdin.write(json.dumps(settings._asdict()) + "\n")
            stdin.flush()
            report: EngineReport = json.loads(stdout.readline())
        except (OSError, ValueError) as error:
            msg = f"its process ended with exit code {self._process.wait()}"
            raise EngineError(msg) from error
        if "url" not in report:
            raise EngineError(report.get("error"))
        return str(report["url"])


def free_cores() -> int:
    """The number of idle cores; at least one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load_average = os.getloadavg()[0]
    return max(1, round((cores or 1) - load_average))


def chat_messages(messages: list[Message]) -> list[Message]:
    """The user and assistant messages, without tool calls and the long system prompt."""
    texts = [(str(message.get("role")), _text(message.get("content"))) for message in messages]
    chat: list[Message] = [{"role": "system", "content": PROMPT}]
    for role, text in texts:
        if role in CHAT_ROLES and text:
            chat.append({"role": role, "content": text})
    return chat


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
