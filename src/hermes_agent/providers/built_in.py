"""The built-in model, run inside this process: no key, no server, no network.

The model is tiny. It gets a one-line system prompt and no tools: constrained by a JSON schema
to a reply or one of three tools, it chose the right tool for none of five requests that needed
one, and its plain replies got worse.
"""

from __future__ import annotations

import importlib
import os
import queue
import secrets
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hermes_agent.events import Failed, FailureKind, Reply, TextDelta
from hermes_agent.local import built_in
from hermes_agent.messages import Usage
from hermes_agent.providers.base import interrupted
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from hermes_agent.events import ProviderEvent
    from hermes_agent.local.built_in import BuiltIn
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.turn_control import Cancel

PROMPT: Final = "You are a helpful AI assistant named Hermes."
WINDOW: Final = 8192
MAX_TOKENS: Final = 512  # without a limit a model this small may never stop
BATCH_TOKENS: Final = 128  # prompt tokens processed between two checks for a cancel
CLOSE_SECONDS: Final = 10.0
LISTENER_SECONDS: Final = 10.0
SETTLE_SECONDS: Final = 0.3
SAMPLING: Final = {"temperature": 0.2, "top_p": 0.9, "repeat_penalty": 1.1}
CHAT_ROLES: Final = ("user", "assistant")
DOWNLOAD_HINT: Final = "Download it with `hermes models get smollm2`."
REDOWNLOAD_HINT: Final = "Download it again with `hermes models get smollm2 --again`."


class LocalModel:
    """The small model, run on this machine's CPU."""

    api_mode = "local"
    name = "local"
    base_url = "local:"
    model = built_in.MODEL_NAME

    def __init__(self, home: BuiltIn | None = None, *, window: int = WINDOW) -> None:
        self.window = min(window, WINDOW)
        self._home = home or built_in.BuiltIn.of_home()
        self._engine: Any = None
        self._lock = threading.Lock()

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request; yield deltas as they arrive, then exactly one Reply or Failed.

        The engine runs in its own thread, so that a cancel takes effect at once, also while
        the model still processes the prompt.
        """
        if cancel.is_requested:
            yield interrupted()
            return
        answer = _LocalAnswer(cancel)
        unsubscribe = cancel.on_request(lambda: answer.events.put(interrupted()))
        work = Step("run the built-in model", lambda: self._answer(request, answer))
        threading.Thread(
            target=_run, args=(work, answer), name="hermes-local-model", daemon=True
        ).start()
        try:
            while True:
                event = answer.events.get()
                if isinstance(event, Failed):
                    event = event._replace(usage=answer.usage)
                yield event
                if isinstance(event, Reply | Failed):
                    return
        finally:
            unsubscribe()
            answer.is_abandoned = True

    def resolve_window(self) -> int:
        """Return the context window."""
        return self.window

    def close(self) -> None:
        """Release the weights once the engine has stopped.

        The process must not end while the engine still calls into it.
        """
        if self._lock.acquire(timeout=CLOSE_SECONDS):
            self._engine = None
            self._lock.release()

    def _installation_failure(self) -> Failed | None:
        if not self._home.is_installed:
            reason = "The built-in model is not installed."
            return Failed(FailureKind.MODEL, reason, DOWNLOAD_HINT)
        problem = self._home.problem()
        reason = f"The built-in model cannot be used: {problem}."
        return Failed(FailureKind.BROKEN, reason, REDOWNLOAD_HINT) if problem else None

    def _answer(self, request: ModelRequest, answer: _LocalAnswer) -> None:
        failure = self._installation_failure()
        if failure is not None:
            answer.events.put(failure)
            return
        body = {
            "messages": chat_messages(request.messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # callbacks, and so cancellation, during prompt processing
            "max_tokens": min(request.max_tokens or MAX_TOKENS, MAX_TOKENS),
            **SAMPLING,
        }
        with self._lock:
            engine = self._engine = self._engine or load(self._home, self.window)
            engine.handle_chat_completions(body, answer.add_chunk)
        answer.finish()


def _run(work: Step, answer: _LocalAnswer) -> None:
    failure = attempt(work)
    if failure is not None:
        reason = f"The built-in model cannot run here ({failure.error})."
        answer.events.put(Failed(FailureKind.BROKEN, reason, REDOWNLOAD_HINT))


def load(home: BuiltIn, window: int) -> Any:
    """Load the weights into a new engine."""
    engine = _engine(home)
    params = engine.CommonParams()
    params.model.path = str(home.weights())
    params.n_ctx = window
    params.n_batch = BATCH_TOKENS
    params.n_gpu_layers = 0
    params.warmup = False
    params.verbosity = -1
    params.cache_ram_mib = 0
    threads = free_cores()
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # The engine also listens on a loopback port; a random key keeps other programs out.
    params.api_keys = [secrets.token_hex(32)]
    params.ui = False
    params.endpoint_slots = False
    server = engine.Server(params)
    _wait_for_listener(server.listening_address)
    return server


def _wait_for_listener(address: str) -> None:
    """Wait until the engine's port answers.

    An engine that is released before its listener runs waits for that listener forever.
    """
    url = urlsplit(address)
    try:
        with socket.create_connection((url.hostname, url.port), LISTENER_SECONDS) as probe:
            probe.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            probe.recv(1)
    except OSError:  # a sandbox without loopback: the listener still needs a moment
        time.sleep(SETTLE_SECONDS)


def _engine(home: BuiltIn) -> ModuleType:
    """Import the engine's module; its folder is on the import path for this import only."""
    # Waiting OpenMP threads would otherwise spin and occupy the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.path.insert(0, str(home.folder))
    try:
        return importlib.import_module("xllamacpp")
    finally:
        sys.path.remove(str(home.folder))


def free_cores() -> int:
    """The number of idle cores; at least one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load_average = os.getloadavg()[0]
    return max(1, round((cores or 1) - load_average))


def chat_messages(messages: list[Message]) -> list[Message]:
    """The user and assistant messages, without tool calls and the long system prompt."""
    texts = [(str(message.get("role")), _text(message.get("content"))) for message in messages]
    chat = [{"role": role, "content": text} for role, text in texts if role in CHAT_ROLES and text]
    return [{"role": "system", "content": PROMPT}, *chat]


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


class _LocalAnswer:
    """Assembles one answer from the engine's chunks, in the engine's thread."""

    def __init__(self, cancel: Cancel) -> None:
        self.events: queue.SimpleQueue[ProviderEvent] = queue.SimpleQueue()
        self.usage = Usage()
        self.is_abandoned = False
        self._cancel = cancel
        self._text: list[str] = []
        self._finish = "stop"
        self._failure: Failed | None = None

    def add_chunk(self, chunk: dict[str, Any]) -> bool:
        """Handle a chunk; the engine stops when this returns true."""
        if chunk.get("error"):
            self._failure = _engine_failure(chunk["error"])
        if isinstance(chunk.get("usage"), dict):
            self.usage = _usage(chunk["usage"])
        for choice in chunk.get("choices") or ():
            text = (choice.get("delta") or {}).get("content")
            self._finish = choice.get("finish_reason") or self._finish
            if text and not self._cancel.is_requested:
                self._text.append(text)
                self.events.put(TextDelta(text))
        return self._cancel.is_requested or self.is_abandoned

    def finish(self) -> None:
        """Queue the final event."""
        if self._cancel.is_requested:
            self.events.put(interrupted())
        elif self._failure is not None:
            self.events.put(self._failure)
        else:
            text = "".join(self._text)
            self.events.put(Reply(text, "", (), self._finish, self.usage))


def _usage(counts: dict[str, Any]) -> Usage:
    cached = int((counts.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
    prompt, output = (
        int(counts.get("prompt_tokens") or 0),
        int(counts.get("completion_tokens") or 0),
    )
    return Usage(input=max(0, prompt - cached), output=output, cache_read=cached)


def _engine_failure(error: Any) -> Failed:
    details = error if isinstance(error, dict) else {"message": error}
    if details.get("type") == "exceed_context_size_error":
        return Failed(
            FailureKind.CONTEXT,
            "The conversation exceeds the context window of the built-in model "
            f"({WINDOW:,} tokens).",
            "Shorten it with /compress, or choose another model with `hermes setup`.",
        )
    return Failed(FailureKind.BROKEN, f"The built-in model: {details.get('message')}")
