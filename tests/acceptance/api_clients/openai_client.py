"""Calls the API with OpenAI's client; runs in `.clients`, prints its findings as JSON."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

import openai

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def error_of(call: Any) -> dict[str, Any]:
    try:
        call()
    except openai.APIStatusError as error:
        return {
            "class": type(error).__name__,
            "status": error.status_code,
            "code": error.code,
            "param": error.param,
        }
    return {"class": "none"}


def answers(client: openai.OpenAI) -> dict[str, Any]:
    completions = client.chat.completions
    chat = completions.create(model="hermes", messages=[user("hi")])
    chunks = list(
        completions.create(
            model="hermes",
            messages=[user("stream")],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    response = client.responses.create(model="hermes", input="respond", instructions="Be brief.")
    later = client.responses.create(model="hermes", input="again", previous_response_id=response.id)
    events = list(client.responses.create(model="hermes", input="events", stream=True))
    fetched = client.responses.retrieve(response.id)
    return {
        "chat": chat.choices[0].message.content,
        "chat usage": chat.usage.model_dump(),
        "stream": "".join(c.choices[0].delta.content or "" for c in chunks if c.choices),
        "stream usage": [c.usage.total_tokens for c in chunks if c.usage],
        "last choices": chunks[-1].choices,
        "response": response.output_text,
        "response usage": response.usage.model_dump(),
        "later": later.output_text,
        "last event": events[-1].type,
        "event usage": events[-1].response.usage.total_tokens,
        "fetched": fetched.output_text,
        "models": [model.id for model in client.models.list()],
        "model": client.models.retrieve("hermes").id,
    }


def errors(client: openai.OpenAI) -> dict[str, Any]:
    create = client.chat.completions.create
    calls: dict[str, Any] = {
        "unknown model": lambda: client.models.retrieve("gpt-9"),
        "delete": lambda: client.responses.delete("resp_1"),
        "embeddings": lambda: client.embeddings.create(model="hermes", input="hi"),
        "key": client.with_options(api_key="wrong").models.list,
        "tools": lambda: create(model="hermes", messages=[user("hi")], tools=[TOOL]),
        "tool result": lambda: create(
            model="hermes",
            messages=[user("hi"), {"role": "tool", "content": "4", "tool_call_id": "c"}],
        ),
        "format": lambda: create(
            model="hermes", messages=[user("hi")], response_format={"type": "json_object"}
        ),
        "no credit": lambda: create(model="hermes", messages=[user("fail 402")]),
        "no credit, streamed": lambda: create(
            model="hermes", messages=[user("fail 402")], stream=True
        ),
        "provider key": lambda: client.responses.create(model="hermes", input="fail 401"),
    }
    return {name: error_of(call) for name, call in calls.items()}


def sessions(client: openai.OpenAI) -> dict[str, Any]:
    raw = client.chat.completions.with_raw_response
    same_user = [
        raw.create(model="hermes", messages=[user(text)], user="ada").headers["x-hermes-session"]
        for text in ("one chat", "another chat")
    ]
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    names = []
    for number in range(20):
        messages.append(user(f"turn {number}"))
        answer = raw.create(model="hermes", messages=messages)
        names.append(answer.headers["x-hermes-session"])
        text = answer.parse().choices[0].message.content
        messages.append({"role": "assistant", "content": text})
    return {"of a user": same_user, "of a transcript": sorted(set(names))}


def main() -> None:
    base_url, key = sys.argv[1:]
    client = openai.OpenAI(base_url=base_url, api_key=key, timeout=60, max_retries=10)
    found: dict[str, Any] = {
        "version": version("openai"),
        "answers": answers(client),
        "errors": errors(client),
        "sessions": sessions(client),
    }
    sys.stdin.readline()  # from now on the gateway may be killed
    slow = client.chat.completions.create(model="hermes", messages=[user("slow")])
    found["after a crash"] = slow.choices[0].message.content
    sys.stdout.write(json.dumps(found))


main()
