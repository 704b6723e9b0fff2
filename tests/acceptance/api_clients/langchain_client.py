"""Calls the API with langchain-openai; runs in `.clients`, prints its findings as JSON."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

import openai
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

SCHEMA = {"title": "Answer", "type": "object", "properties": {"text": {"type": "string"}}}


def error_of(call: Any) -> dict[str, Any]:
    try:
        call()
    except openai.APIStatusError as error:
        return {"status": error.status_code, "param": error.param}
    return {"status": 200}


def main() -> None:
    base_url, key = sys.argv[1:]
    model = ChatOpenAI(
        model="hermes", base_url=base_url, api_key=key, timeout=60, stream_usage=True
    )
    chat = model.invoke("hi")
    history = [
        SystemMessage("Be brief."),
        HumanMessage("hi"),
        AIMessage(chat.content),
        HumanMessage("and?"),
    ]
    later = model.invoke(history)
    chunks = list(model.stream("stream"))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    found = {
        "version": version("langchain-openai"),
        "chat": chat.content,
        "tokens": chat.usage_metadata["total_tokens"],
        "later": later.content,
        "stream": whole.content,
        "stream tokens": whole.usage_metadata["total_tokens"],
        "structured": error_of(
            lambda: model.with_structured_output(SCHEMA, method="json_schema").invoke("hi")
        ),
        "tools": error_of(lambda: model.bind_tools([SCHEMA]).invoke("hi")),
    }
    sys.stdout.write(json.dumps(found))


main()
