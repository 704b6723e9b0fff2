"""A server that refuses a part of a request is asked again without it, once, and remembered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.messages import ModelRequest
from hermes_agent.providers.failures import ErrorReport, http_failure
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.providers.rules import UNKNOWN, lesson_of
from hermes_core.paths import hermes_home
from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes
    from support.scripted_server import ScriptServer

READ_IMAGE = "{calls: [{name: read_file, arguments: {path: dot.png}}]}"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)


@pytest.fixture
def serve() -> Iterator[Any]:
    with model_servers() as start:
        yield start


def refusal(status: int, message: str) -> str:
    return f"{{fail: {{status: {status}, message: {json.dumps(message)}}}}}"


def ask(hermes: Hermes, server: ScriptServer, *options: str) -> Any:
    return hermes("chat", "-q", "hi", "--model", model_argument(server), *options)


def test_a_model_without_tools_talks(hermes: Hermes, serve: Any) -> None:
    text = "registry.ollama.ai/library/gemma:2b does not support tools"
    server = serve(f"[{refusal(400, text)}, {{say: Hello.}}, {{say: Again.}}]")
    first = ask(hermes, server)
    assert (first.code, first.out.strip()) == (0, "Hello.")
    assert first.err.count("scripted cannot use tools") == 1
    assert [bool(request.get("tools")) for request in server.requests] == [True, False]
    second = ask(hermes, server)  # another process
    assert (second.out.strip(), len(server.requests)) == ("Again.", 3)
    assert "cannot use tools" not in second.err
    assert not server.requests[2].get("tools")


def test_what_was_learned_is_forgotten_after_a_week(hermes: Hermes, serve: Any) -> None:
    server = serve(f"[{refusal(400, 'does not support tools')}, {{say: Hello.}}, {{say: Again.}}]")
    ask(hermes, server)
    path = hermes_home() / "cache" / "learned-rules.json"
    known = json.loads(path.read_text())
    ((model, lessons),) = known.items()
    lessons = {name: at - 8 * 86_400 for name, at in lessons.items()}
    path.write_text(json.dumps({model: lessons}))
    ask(hermes, server)
    assert server.requests[2].get("tools")


def test_a_damaged_memory_of_lessons_is_set_aside(hermes: Hermes, serve: Any) -> None:
    path = hermes_home() / "cache" / "learned-rules.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for text in ("[]", '{"a": 1}', '{"a": {"no tools": "x"}}', "{"):
        path.write_text(text)
        assert ask(hermes, serve("[{say: Hello.}]")).out.strip() == "Hello."


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "image_url is only supported by certain models"),
        (500, "image input is not supported - hint: if this is unexpected, provide the mmproj"),
    ],
)
def test_a_model_that_cannot_see_gets_a_note_for_each_image(
    hermes: Hermes, serve: Any, tmp_path: Path, monkeypatch: Any, status: int, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dot.png").write_bytes(PIXEL)
    server = serve(f"[{READ_IMAGE}, {refusal(status, text)}, {{say: A dot.}}, {{say: Fine.}}]")
    first = ask(hermes, server)
    assert (first.code, first.out.strip()) == (0, "A dot.")
    assert first.err.count("scripted cannot see images") == 1
    assert "image_url" in json.dumps(server.requests[1])
    assert "image_url" not in json.dumps(server.requests[2])
    assert "cannot see" in json.dumps(server.requests[2]["messages"])
    again = hermes("chat", "-c", "-q", "and?", "--model", model_argument(server))
    assert (again.out.strip(), len(server.requests)) == ("Fine.", 4)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("Extra inputs are not permitted: stream_options", "stream_options"),
        ("Unsupported parameter: reasoning_effort is not supported", "reasoning_effort"),
    ],
)
def test_an_option_that_is_refused_is_left_out(
    hermes: Hermes, serve: Any, text: str, field: str
) -> None:
    hermes("config", "set", "llm.effort", "low")
    server = serve(f"[{refusal(422, text)}, {{say: Hello.}}]")
    assert ask(hermes, server).out.strip() == "Hello."
    assert [field in request for request in server.requests] == [True, False]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        (500, "Jinja Exception: System role not supported"),
    ],
)
def test_a_model_without_a_system_role_reads_the_prompt_before_the_first_question(
    hermes: Hermes, serve: Any, status: int, text: str
) -> None:
    server = serve(f"[{refusal(status, text)}, {{say: Hello.}}, {{say: Again.}}]")
    assert ask(hermes, server).out.strip() == "Hello."
    assert hermes("chat", "-c", "-q", "and?", "--model", model_argument(server)).code == 0
    refused, first, second = (request["messages"] for request in server.requests)
    assert [message["role"] for message in refused] == ["system", "user"]
    assert [message["role"] for message in first] == ["user"]
    assert first[0]["content"] == f"{refused[0]['content']}\n\nhi"
    assert second[0] == first[0]


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("no images", [
            "Image inputs are not supported by this model.",
            "Image input is not enabled for this model",
            "Content type 'image_url' is not supported by this model",
            "this model is missing data required for image input",
            "At most 0 image(s) may be provided in one request.",
            "Model does not support images. Please use a model that does.",
        ]),
        ("no tools", [
            "'tools' is not supported with this model.",
            "tool calling is not supported with this model",
            "tools param requires --jinja flag",
        ]),
        ("no effort", [
            "Model grok-4 does not support parameter reasoningEffort.",
            "This model does not support the effort parameter.",
            "Budget 0 is invalid. This model only works in thinking mode.",
            "Unrecognized request argument supplied: reasoning_effort",
            "\"m\" does not support thinking",
        ]),
        ("roles alternate", [
            "Conversation roles must alternate user/assistant/user/assistant/...",
            "Unexpected role 'user' after role 'tool'",
        ]),
        ("", [
            "messages.3: image exceeds 5 MB maximum",
            "Unsupported image format: image/tiff",
            "Invalid schema for function 'x': tools[0] has an unknown type",
        ]),
    ],
)  # fmt: skip
def test_error_texts_teach_what_they_mean(name: str, texts: list[str]) -> None:
    schema: Any = {"type": "function", "function": {"name": "look"}}
    request = ModelRequest([], [schema])
    provider = OpenAICompatible("m", "http://127.0.0.1:9", window=1000)
    provider.close()
    rules = UNKNOWN._replace(answer_before_prompt=False)
    failures = [http_failure(ErrorReport(400, text), provider) for text in texts]
    lessons = [lesson_of(rules, failed, request) for failed in failures]
    assert [lesson.name if lesson else "" for lesson in lessons] == [name] * len(texts)


def test_an_error_that_teaches_nothing_is_reported_once(hermes: Hermes, serve: Any) -> None:
    server = serve(f"[{refusal(400, 'model overloaded with nonsense')}, {{say: Hello.}}]")
    result = ask(hermes, server)
    assert result.code != 0
    assert len(server.requests) == 1
