"""Calls the API with LiteLLM; runs in `.clients`, prints its findings as JSON."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

import litellm

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def main() -> None:
    base_url, key = sys.argv[1:]
    place = {"model": "openai/hermes", "api_base": base_url, "api_key": key, "timeout": 60}

    def ask(text: str, **fields: Any) -> Any:
        messages = fields.pop("messages", [])
        messages = [*messages, {"role": "user", "content": text}]
        return litellm.completion(messages=messages, **place, **fields)

    def error_of(text: str, **fields: Any) -> dict[str, Any]:
        try:
            ask(text, num_retries=0, max_retries=0, **fields)
        except litellm.exceptions.APIError as error:
            return {"class": type(error).__name__, "status": error.status_code}
        except litellm.exceptions.BadRequestError as error:
            return {"class": type(error).__name__, "status": error.status_code}
        return {"class": "none"}

    chat = ask("hi")
    text = chat.choices[0].message.content
    answer = {"role": "assistant", "content": text}
    later = ask("and?", messages=[{"role": "user", "content": "hi"}, answer])
    chunks = list(ask("stream", stream=True, stream_options={"include_usage": True}))
    response = litellm.responses(input="respond", **place)
    usages = [getattr(chunk, "usage", None) for chunk in chunks]
    found = {
        "version": version("litellm"),
        "chat": text,
        "tokens": chat.usage.total_tokens,
        "later": later.choices[0].message.content,
        "stream": "".join(c.choices[0].delta.content or "" for c in chunks if c.choices),
        "stream tokens": [usage.total_tokens for usage in usages if usage],
        "response": response.output[0].content[0].text,
        "response tokens": response.usage.total_tokens,
        "tools": error_of("hi", tools=[TOOL]),
        "no credit": error_of("fail 402"),
    }
    sys.stdout.write(json.dumps(found))


main()
