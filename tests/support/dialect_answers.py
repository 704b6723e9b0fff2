"""Answers in the form of each provider, with the signatures that it wants back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hermes_core.json_values import parse_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.messages import ToolCall
    from hermes_agent.providers.scripted import ScriptStep
    from support.dialects import Dialect

    Writer = Callable[[Dialect, int, ScriptStep], Iterator[bytes]]

KIMI_NAMES: Final = "functions.{name}:{index}"


def _data(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _issue(dialect: Dialect, text: str) -> str:
    dialect.issued.add(text)
    return text


def _call_id(dialect: Dialect, number: int, index: int, call: ToolCall) -> str:
    """IDs as the provider makes them: some are the same in each answer."""
    if dialect.name == "Mistral":
        return f"m{number:04}{index:04}"
    if dialect.name == "Kimi":
        return KIMI_NAMES.format(name=call.name, index=f"{number}{index}")
    if dialect.name in {"Ollama", "llama.cpp"}:
        return f"call_{index}"
    return f"call_{number}_{index}"


def _chat(dialect: Dialect, number: int, step: ScriptStep) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    if step.think and dialect.think_field == "reasoning_details":
        detail = {"type": "reasoning.text", "text": step.think, "index": 0, "signature": "s"}
        dialect.spoken.add(json.dumps([detail], sort_keys=True))
        dialect.spoken.add(step.think)
        half = len(step.think) // 2
        first = {**detail, "text": step.think[:half], "signature": None}
        yield chunk({"reasoning_details": [first], "reasoning": step.think[:half]})
        second = {**detail, "text": step.think[half:]}
        yield chunk({"reasoning_details": [second], "reasoning": step.think[half:]})
    elif step.think and dialect.think_field:
        dialect.spoken.add(step.think)
        yield chunk({dialect.think_field: step.think})
    for word in step.words():
        yield chunk({"content": word})
    for index, call in enumerate(step.tool_calls(number)):
        function = {"name": call.name, "arguments": call.arguments}
        sent: dict[str, Any] = {
            "index": index,
            "id": _call_id(dialect, number, index, call),
            "type": "function",
            "function": function,
        }
        if dialect.signs and index == 0:
            signature = _issue(dialect, f"signature-{number}")
            sent["extra_content"] = {"google": {"thought_signature": signature}}
        yield chunk({"tool_calls": [sent]})
    yield chunk({}, step.finish_reason)
    yield _data({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}})
    yield b"data: [DONE]\n\n"


def _anthropic(dialect: Dialect, number: int, step: ScriptStep) -> Iterator[bytes]:
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if step.think:
        signature = _issue(dialect, f"signature-{number}")
        blocks.append(
            (
                {"type": "thinking", "thinking": "", "signature": ""},
                [{"thinking": step.think}, {"signature": signature}],
            )
        )
    if step.say:
        blocks.append(({"type": "text", "text": ""}, [{"text": word} for word in step.words()]))
    for index, call in enumerate(step.tool_calls(number)):
        call_id = f"toolu_{number}_{index}"
        block = {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}
        blocks.append((block, [{"partial_json": call.arguments}]))
    yield _data({"type": "message_start", "message": {"usage": {"input_tokens": 10}}})
    for index, (block, deltas) in enumerate(blocks):
        yield _data({"type": "content_block_start", "index": index, "content_block": block})
        for delta in deltas:
            yield _data({"type": "content_block_delta", "index": index, "delta": delta})
    reason = "tool_use" if step.calls else "end_turn"
    ended = {"stop_reason": reason}
    yield _data({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
    yield _data({"type": "message_stop"})


def _responses(dialect: Dialect, number: int, step: ScriptStep) -> Iterator[bytes]:
    place = 0

    def event(kind: str, **fields: Any) -> bytes:
        return _data({"type": f"response.{kind}", "output_index": place, **fields})

    if step.think:
        encrypted = _issue(dialect, f"encrypted-{number}")
        yield event("reasoning_summary_text.delta", delta=step.think)
        summary = [{"type": "summary_text", "text": step.think}]
        item = {"type": "reasoning", "id": f"rs_{number}", "summary": summary}
        yield event("output_item.done", item={**item, "encrypted_content": encrypted})
        place += 1
    if step.say:
        for word in step.words():
            yield event("output_text.delta", delta=word)
        content = [{"type": "output_text", "text": step.say}]
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        yield event("output_item.done", item={**message, "content": content})
        place += 1
    for index, call in enumerate(step.tool_calls(number)):
        item = {"type": "function_call", "id": f"fc_{number}_{index}", "name": call.name,
                "call_id": f"call_{number}_{index}", "arguments": ""}  # fmt: skip
        yield event("output_item.added", item=item)
        yield event("function_call_arguments.delta", delta=call.arguments)
        yield event("output_item.done", item={**item, "arguments": call.arguments})
        place += 1
    usage = {"input_tokens": 10, "output_tokens": 5}
    yield event("completed", response={"status": "completed", "usage": usage, "error": None})


def _gemini(dialect: Dialect, number: int, step: ScriptStep) -> Iterator[bytes]:
    def chunk(parts: list[dict[str, Any]], reason: str | None = None) -> bytes:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}}
        if reason:
            candidate["finishReason"] = reason
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5}
        return _data({"candidates": [candidate], "usageMetadata": usage})

    if step.think:
        yield chunk([{"text": step.think, "thought": True}])
    for word in step.words():
        yield chunk([{"text": word}])
    parts: list[dict[str, Any]] = []
    for index, call in enumerate(step.tool_calls(number)):
        called = {"name": call.name, "args": parse_object(call.arguments) or {}}
        part: dict[str, Any] = {"functionCall": called}
        if index == 0:
            part["thoughtSignature"] = _issue(dialect, f"signature-{number}")
        parts.append(part)
    yield chunk(parts or [{"text": ""}], "STOP")


ANSWERS: Final[dict[str, Writer]] = {
    "chat": _chat,
    "anthropic": _anthropic,
    "responses": _responses,
    "gemini": _gemini,
}
