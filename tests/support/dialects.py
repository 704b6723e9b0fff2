"""The rules that providers document for requests, checked as their servers check them.

Written from their documentation and error texts alone, not from the code under test; the
addresses are in docs/reference/providers.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHAT_FIELDS: Final = {"role", "content", "tool_calls", "tool_call_id", "name"}
REASONING: Final = {"reasoning", "reasoning_content", "reasoning_details"}
TOOL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")  # all of them accept this
PLACEHOLDER_SIGNATURE: Final = "skip_thought_signature_validator"


@dataclass
class Dialect:
    """A provider: what it accepts, and how it answers."""

    name: str
    api: str = "chat"  # chat, responses, anthropic or gemini
    host: str = ""  # whose rules the product applies; empty for a server of one's own
    model: str = "scripted"
    id_pattern: str = r"\S{1,64}"
    has_prompt_after_result: bool = True
    extra_fields: frozenset[str] = frozenset()  # of answers
    needs_reasoning: bool = False  # of answers with calls
    think_field: str = "reasoning_content"
    signs: bool = False
    refused_options: frozenset[str] = frozenset()
    issued: set[str] = field(default_factory=set)  # signatures and the like
    spoken: set[str] = field(default_factory=set)  # reasoning that this server has sent

    def problem(self, body: dict[str, Any]) -> str:
        """Why the server refuses a request; empty if it does not."""
        return next(CHECKS[self.api](self, body), "")


LOCAL: Final = frozenset({"reasoning", "reasoning_content"})


def dialects() -> list[Dialect]:
    """All of them, each with a memory of its own."""
    return [
        Dialect("OpenAI chat", host="api.openai.com", id_pattern=r"[\w-]{1,40}",
                think_field="reasoning", refused_options=frozenset({"max_tokens"})),
        Dialect("OpenAI Responses", api="responses", id_pattern=r"[\w-]{1,64}"),
        Dialect("Anthropic", api="anthropic", model="claude-sonnet-4-5", id_pattern=r"[\w-]+"),
        Dialect("Anthropic, adaptive", api="anthropic", model="claude-opus-4-7",
                id_pattern=r"[\w-]+"),
        Dialect("Gemini", api="gemini", model="gemini-3.8-flash", signs=True),
        Dialect("Gemini, OpenAI endpoint", host="generativelanguage.googleapis.com",
                model="gemini-3.8-flash", signs=True, think_field="reasoning"),
        Dialect("OpenRouter", host="openrouter.ai", think_field="reasoning_details",
                extra_fields=frozenset({"reasoning_details", "reasoning"})),
        Dialect("Groq", host="api.groq.com", think_field="reasoning"),
        Dialect("Cerebras", host="api.cerebras.ai", think_field="reasoning",
                extra_fields=frozenset({"reasoning"})),
        Dialect("Mistral", host="api.mistral.ai", id_pattern=r"[a-zA-Z0-9]{9}",
                has_prompt_after_result=False, think_field="",
                refused_options=frozenset({"stream_options", "reasoning_effort"})),
        Dialect("DeepSeek", host="api.deepseek.com", needs_reasoning=True,
                extra_fields=frozenset({"reasoning_content"})),
        Dialect("Kimi", host="api.moonshot.ai", needs_reasoning=True,
                extra_fields=frozenset({"reasoning_content"})),
        Dialect("Z.ai", host="api.z.ai", extra_fields=frozenset({"reasoning_content"})),
        Dialect("xAI", host="api.x.ai"),
        Dialect("Together AI", host="api.together.xyz", think_field="reasoning"),
        Dialect("Ollama", has_prompt_after_result=False, extra_fields=LOCAL,
                think_field="reasoning"),
        Dialect("llama.cpp", has_prompt_after_result=False, extra_fields=LOCAL),
        Dialect("vLLM", has_prompt_after_result=False, extra_fields=LOCAL),
        Dialect("LM Studio", has_prompt_after_result=False, extra_fields=LOCAL),
    ]  # fmt: skip


def of_path(path: str, spoken: set[str]) -> Dialect:
    """The dialect of a server of which only the path of a request is known."""
    if path.endswith("/messages"):
        return Dialect("Anthropic", api="anthropic", id_pattern=r"[\w-]+", issued={"signed"})
    return Dialect("a server", has_prompt_after_result=False, extra_fields=LOCAL, spoken=spoken)


def _call(name: str, arguments: str) -> Iterator[str]:
    """The name of a call is that of a tool, its arguments are an object."""
    if not TOOL_NAME.fullmatch(name):
        yield f"name {name!r} does not match {TOOL_NAME.pattern}"
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except ValueError:
        is_object = False
    if not is_object:
        yield f"arguments {arguments!r} are not an object"


def _pairs(
    dialect: Dialect, calls: list[tuple[int, str]], results: list[tuple[int, str]]
) -> Iterator[str]:
    """Each call has one ID of its own and one result after it."""
    ids = [call_id for _, call_id in calls]
    for call_id in ids:
        if not re.fullmatch(dialect.id_pattern, call_id):
            yield f"Tool call id {call_id!r} does not match {dialect.id_pattern}"
    if len(set(ids)) != len(ids):
        yield "tool call ids must be unique"
    answered = [call_id for _, call_id in results]
    if sorted(answered) != sorted(ids):
        yield f"calls {ids} have results {answered}"
    places = {call_id: place for place, call_id in calls}
    for place, call_id in results:
        if places.get(call_id, place) >= place:
            yield f"the result of {call_id} is not after its call"


def _chat(dialect: Dialect, body: dict[str, Any]) -> Iterator[str]:
    messages = body["messages"]
    for option in dialect.refused_options & body.keys():
        yield f"Unsupported parameter: {option}"
    calls = [
        (place, call["id"])
        for place, message in enumerate(messages)
        for call in message.get("tool_calls") or ()
    ]
    results = [
        (place, message["tool_call_id"])
        for place, message in enumerate(messages)
        if message["role"] == "tool"
    ]
    yield from _pairs(dialect, calls, results)
    if calls and not body.get("tools"):
        yield "tools must be declared where calls are"
    if messages[-1]["role"] not in {"user", "tool"}:
        yield f"the last message is of {messages[-1]['role']}"
    before = "system"
    for message in messages:
        yield from _chat_message(dialect, message, before)
        before = message["role"]


def _chat_message(dialect: Dialect, message: dict[str, Any], before: str) -> Iterator[str]:
    role, content = message["role"], message.get("content")
    extra = message.keys() - CHAT_FIELDS - dialect.extra_fields
    if extra:
        yield f"property {sorted(extra)} is unsupported"
    if role == before and role in {"user", "assistant"}:
        yield "roles must alternate user/assistant"
    if role == "user" and before == "tool" and not dialect.has_prompt_after_result:
        yield "Unexpected role 'user' after role 'tool'"
    if role == "tool" and before == "user":
        yield "Unexpected role 'tool' after role 'user'"
    if role == "user" and not str(content).strip():
        yield "the content of user must not be blank"
    if content is None or (role != "user" and isinstance(content, list)):
        yield f"the content of {role} must be a string"
    if role == "assistant":
        yield from _chat_answer(dialect, message)


def _chat_answer(dialect: Dialect, message: dict[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls") or ()
    if not message["content"] and not calls:
        yield "an answer must have content or calls"
    for name in REASONING & message.keys():
        value = message[name]
        text = json.dumps(value, sort_keys=True) if name == "reasoning_details" else value
        if text and text not in dialect.spoken:
            yield f"{name} is not what this server has sent: {text}"
    if dialect.needs_reasoning and calls and "reasoning_content" not in message:
        yield "Missing `reasoning_content` field in the assistant message"
    for number, call in enumerate(calls):
        yield from _call(call["function"]["name"], call["function"]["arguments"])
        extra = call.keys() - {"id", "type", "function"}
        if dialect.signs:
            signature = (call.get("extra_content") or {}).get("google", {}).get("thought_signature")
            yield from _signature(dialect, signature, is_needed=number == 0)
        elif extra:
            yield f"property {sorted(extra)} of a call is unsupported"


def _signature(dialect: Dialect, signature: str | None, *, is_needed: bool) -> Iterator[str]:
    if signature is None:
        if is_needed:
            yield "Function call is missing a thought_signature in functionCall parts"
    elif signature not in dialect.issued | {PLACEHOLDER_SIGNATURE}:
        yield f"Thought signature {signature!r} is not valid"


def _anthropic(dialect: Dialect, body: dict[str, Any]) -> Iterator[str]:
    messages = body["messages"]
    if messages[0]["role"] != "user" or messages[-1]["role"] != "user":
        yield "the first and the last message must be of the user"
    calls, results = (
        [
            (place, block[name])
            for place, message in enumerate(messages)
            for block in message["content"]
            if block["type"] == kind
        ]
        for kind, name in (("tool_use", "id"), ("tool_result", "tool_use_id"))
    )
    yield from _pairs(dialect, calls, results)
    for place, call_id in results:
        if (place - 1, call_id) not in calls:
            yield "tool_result must follow its tool_use at once"
    if calls and not body.get("tools"):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"
    for place, message in enumerate(messages):
        if place and message["role"] == messages[place - 1]["role"]:
            yield "roles must alternate"
        yield from _anthropic_message(dialect, message)
    marked = json.dumps(body).count('"cache_control"')
    if marked > 4:
        yield f"{marked} cache points; at most 4"
    if (body.get("thinking") or {}).get("type") == "enabled":
        yield from _thinking(body)


def _anthropic_message(dialect: Dialect, message: dict[str, Any]) -> Iterator[str]:
    if not message["content"]:
        yield "content must not be empty"
    others = False
    for block in message["content"]:
        yield from _anthropic_block(dialect, block)
        if block["type"] == "tool_result" and others:
            yield "tool_result blocks must come first"
        others |= block["type"] != "tool_result"


def _anthropic_block(dialect: Dialect, block: dict[str, Any]) -> Iterator[str]:
    kind = block["type"]
    if kind == "tool_use":
        yield from _call(block["name"], json.dumps(block["input"]))
    if kind == "text" and not block["text"].strip():
        yield "text content blocks must contain non-whitespace text"
    if kind == "thinking" and block.get("signature") not in dialect.issued:
        yield "Invalid `signature` in `thinking` block"
    if kind in {"thinking", "redacted_thinking"} and "cache_control" in block:
        yield "thinking blocks cannot have cache_control"
    if kind not in {"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image"}:
        yield f"unknown block {kind}"


def _thinking(body: dict[str, Any]) -> Iterator[str]:
    """The answer before the last results must begin with its thinking."""
    if body["thinking"]["budget_tokens"] >= body["max_tokens"]:
        yield "max_tokens must be greater than thinking.budget_tokens"
    if body.get("tool_choice", {}).get("type") not in {None, "auto", "none"}:
        yield "thinking may not be enabled when tool_choice forces tool use"
    messages = body["messages"]
    for place in range(len(messages) - 1, 0, -1):
        kinds = [block["type"] for block in messages[place]["content"]]
        if messages[place]["role"] == "user" and "tool_result" not in kinds:
            return
        if messages[place]["role"] == "assistant":
            if "thinking" not in kinds[0]:
                yield f"Expected `thinking` or `redacted_thinking`, but found `{kinds[0]}`"
            return


def _responses(dialect: Dialect, body: dict[str, Any]) -> Iterator[str]:
    if body.get("store") is not False:
        yield "the conversation must not be stored there"
    items = body["input"]
    calls = [
        (place, item["call_id"])
        for place, item in enumerate(items)
        if item["type"] == "function_call"
    ]
    results = [
        (place, item["call_id"])
        for place, item in enumerate(items)
        if item["type"] == "function_call_output"
    ]
    yield from _pairs(dialect, calls, results)
    for place, item in enumerate(items):
        if item["type"] == "reasoning":
            if item.get("encrypted_content") not in dialect.issued:
                yield "The encrypted content could not be verified"
            following = items[place + 1]["type"] if place + 1 < len(items) else ""
            if following not in {"function_call", "message", "reasoning"}:
                yield "Item of type 'reasoning' was provided without its required following item"
        if item["type"] == "function_call":
            yield from _call(item["name"], item["arguments"])
        if item["type"] == "message":
            yield from _responses_message(item)
        if item.keys() & REASONING:
            yield "Unknown parameter"


def _responses_message(item: dict[str, Any]) -> Iterator[str]:
    wanted = "output_text" if item["role"] == "assistant" else "input_"
    if not all(part["type"].startswith(wanted) for part in item["content"]):
        yield f"content of {item['role']} has other types"
    if not any(_is_filled(part) for part in item["content"]):
        yield "content must not be blank"


def _is_filled(part: dict[str, Any]) -> bool:
    """Whether a part is more than white space."""
    return "text" not in part or bool(part["text"].strip()) or "thoughtSignature" in part


def _gemini(dialect: Dialect, body: dict[str, Any]) -> Iterator[str]:
    contents = body["contents"]
    if contents[0]["role"] != "user" or contents[-1]["role"] != "user":
        yield "the first and the last content must be of the user"
    for place, content in enumerate(contents):
        if place and content["role"] == contents[place - 1]["role"]:
            yield "contents must alternate"
        if not any(_is_filled(part) for part in content["parts"]):
            yield "contents.parts must not be empty"
        calls = [part for part in content["parts"] if "functionCall" in part]
        results = [part for part in content["parts"] if "functionResponse" in part]
        if calls:
            following = contents[place + 1]["parts"] if place + 1 < len(contents) else []
            answered = [part for part in following if "functionResponse" in part]
            names = [part["functionCall"]["name"] for part in calls]
            if names != [part["functionResponse"]["name"] for part in answered]:
                yield "the number of function response parts must equal that of the call parts"
        elif results and not any("functionCall" in p for p in contents[place - 1]["parts"]):
            yield "function response turn must come after a function call turn"
        for number, part in enumerate(calls):
            called = part["functionCall"]
            yield from _call(called["name"], json.dumps(called["args"]))
            signature = part.get("thoughtSignature")
            yield from _signature(dialect, signature, is_needed=dialect.signs and number == 0)
    if any("functionCall" in part for content in contents for part in content["parts"]) and not (
        body.get("tools")
    ):
        yield "tools must be declared"


CHECKS: Final[dict[str, Callable[[Dialect, dict[str, Any]], Iterator[str]]]] = {
    "chat": _chat,
    "anthropic": _anthropic,
    "responses": _responses,
    "gemini": _gemini,
}
