"""A scripted model: its answers come from a file, for tests, documentation and demos.

A script is YAML with a list of steps; each request consumes the next one:

    steps:
      - say: Hello there.            # streamed word by word
        think: They greeted me.      # reasoning first
        pause: 0.02                  # seconds between words
      - calls:
          - {name: terminal, arguments: {command: ls}}
      - fail: {status: 429, retry_after: 1}
      - fail: {status: 400, message: Too much., code: too_much, request_id: req_1}
      - fail: {status: 200, body: <html>, content_type: text/html}
      - say: This will
        cut: true                    # the connection is cut here
      - say: Too slow
        hang: 60                     # seconds of silence before the first word
      - say: Not for nothing.
        cost: 0.01                   # dollars, as some providers report it
      - say: This is cut off at the
        finish: length               # the reported reason of the end

After the last step the model echoes the last user message.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

from hermes_agent.events import ReasoningDelta, Reply, TextDelta
from hermes_agent.messages import ToolCall, Usage
from hermes_agent.providers.base import Provider
from hermes_agent.providers.failures import (
    ErrorReport,
    connection_lost,
    http_failure,
    interrupted,
)
from hermes_core.config.yaml_reader import parse, read_text
from hermes_core.errors import ConfigError
from hermes_core.json_values import number_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonObject, JsonValue


class ScriptedCall(TypedDict):
    """A tool call of a script."""

    name: str
    arguments: NotRequired[JsonValue]


class ScriptStep(NamedTuple):
    """One scripted answer."""

    say: str = ""
    think: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    pause: float = 0.0
    hang: float = 0.0
    cut: bool = False
    fail: JsonObject | None = None
    cost: float | None = None
    finish: str = ""

    @property
    def finish_reason(self) -> str:
        """Why the answer ends, with the names of OpenAI."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def words(self) -> list[str]:
        """The words of the text, with their trailing spaces; empty for an empty text."""
        *words, last = self.say.split(" ")
        return [*(word + " " for word in words), *([last] if last else [])]

    def tool_calls(self, number: int) -> tuple[ToolCall, ...]:
        """The tool calls of the step, with IDs that are unique in the script."""
        return tuple(
            ToolCall(
                f"call_{number}_{index}",
                str(call["name"]),
                arguments
                if isinstance(arguments := call.get("arguments", {}), str)
                else json.dumps(arguments),
            )
            for index, call in enumerate(self.calls)
        )


class ModelScript:
    """The steps of a script, consumed one per request."""

    def __init__(self, steps: list[ScriptStep]) -> None:
        self._steps = steps
        self._step_count = 0
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: Path) -> ModelScript:
        """Load a script from a file."""
        text = read_text(path)
        if text is None:
            raise ConfigError(f"script not found: {path} (`script:FILE` names a file)")
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: Path = Path("script")) -> ModelScript:
        """Parse a script; errors name *path*."""
        steps = parse(text, path).get("steps")
        if not isinstance(steps, list):
            raise ConfigError(f"{path} is not a script: it must have a list of `steps`")
        return cls([_step(item, path) for item in steps])

    def next_step(self, messages: list[Message]) -> tuple[int, ScriptStep]:
        """Consume a step; return its number and the step."""
        with self._lock:
            self._step_count += 1
            number = self._step_count
        if number <= len(self._steps):
            return number, self._steps[number - 1]
        prompts = [message.get("content") for message in messages if message.get("role") == "user"]
        return number, ScriptStep(say=f"You said: {prompts[-1] if prompts else 'nothing'}")


def _step(data: Any, path: Path) -> ScriptStep:
    if not isinstance(data, dict) or not set(data) <= set(ScriptStep._fields):
        fields = ", ".join(ScriptStep._fields)
        raise ConfigError(f"{path}: a step may only have {fields}; invalid step: {data!r}")
    return ScriptStep(**{**data, "calls": tuple(data.get("calls") or ())})


def count_usage(messages: list[Message], text: str) -> Usage:
    """Estimate token counts: four characters per token."""
    characters = sum(len(str(message.get("content") or "")) for message in messages)
    return Usage(input=characters // 4 + 1, output=len(text) // 4 + 1)


class ScriptedProvider(Provider):
    """A script as a provider, without HTTP."""

    name = "script"
    base_url = "script:"
    api_mode = "script"
    is_free = True

    def __init__(self, script: ModelScript, model: str = "scripted", window: int = 64_000) -> None:
        self.model = model
        self.window = window
        self.requests: list[ModelRequest] = []
        self._script = script

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Yield the events of the next step."""
        self.requests.append(request)
        number, step = self._script.next_step(request.messages)
        usage = count_usage(request.messages, step.say)
        if step.fail is not None:
            status = number_in(step.fail, "status", 500)
            yield http_failure(ErrorReport(status, str(step.fail.get("message", ""))), self)
            return
        if cancel.wait(step.hang) if step.hang else cancel.is_requested:
            yield interrupted()
            return
        if step.think:
            yield ReasoningDelta(step.think)
        for word in step.words():
            if cancel.wait(step.pause) if step.pause else cancel.is_requested:
                yield interrupted()._replace(usage=usage)
                return
            yield TextDelta(word)
        if step.cut:
            yield connection_lost("the script")._replace(usage=usage)
            return
        calls = step.tool_calls(number)
        yield Reply(step.say, step.think, calls, step.finish_reason, usage)
