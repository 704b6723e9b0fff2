"""Providers of plugins, from outside: `hermes chat -q`, `hermes models`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_core.config.file import ConfigFile
from support.plugin_folders import enable_plugins
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

ENDPOINT = """
def register(ctx):
    ctx.register_provider(
        "acme", "Acme", model="acme-1", base_url="{url}", variable="ACME_KEY",
        models=lambda: ["acme-1", "acme-2"],
    )
"""
IN_PROCESS = """
from hermes_agent.events import Reply, TextDelta
from hermes_agent.messages import Usage
from hermes_agent.providers.base import Provider

class Echo(Provider):
    name = "echo"
    base_url = "echo:"
    window = 100_000
    is_free = True

    def __init__(self, model):
        self.model = model

    def stream(self, request, cancel):
        text = f"{self.model} heard {len(request.messages)} messages"
        yield TextDelta(text)
        yield Reply(text, "", (), "stop", Usage(1, 1))

def register(ctx):
    ctx.register_provider("echo", model="small", open=lambda choice, folder: Echo(choice.model),
                          models=lambda: ["small", "large"])
"""


def test_an_endpoint_of_a_plugin_answers_with_its_key(hermes: Hermes, hermes_home: Path) -> None:
    with ScriptServer(ModelScript.parse("steps: [{say: From Acme.}, {say: Again.}]")) as server:
        enable_plugins(hermes_home, acme=ENDPOINT.format(url=server.base_url))
        result = hermes("chat", "-q", "hi", "--model", "acme:acme-2", ACME_KEY="k")
        assert "From Acme." in result.out
        saved = hermes("models", "use", "acme:", ACME_KEY="k")
        assert "Default model: acme-1 (Acme)." in saved.out
        (hermes_home / ".env").write_text("ACME_KEY=of-file\n")
        assert "Again." in hermes("chat", "-q", "hi").out
    assert [request["model"] for request in server.requests[:1]] == ["acme-2"]
    assert server.requests[-1]["model"] == "acme-1"
    keys = {headers["authorization"] for headers in server.headers}
    assert keys == {"Bearer k", "Bearer of-file"}
    assert ConfigFile.of_home().settings().get_str("llm.model") == "acme:acme-1"
    listed = json.loads(hermes("models", "list", "--json", "--search", "acme").out)
    names = {model["name"] for model in listed["models"]}
    assert {"acme:acme-1", "acme:acme-2"} <= names


def test_a_plugin_opens_a_provider_of_its_own(hermes: Hermes, hermes_home: Path) -> None:
    enable_plugins(hermes_home, echo=IN_PROCESS)
    assert "large heard 2 messages" in hermes("chat", "-q", "hi", "--model", "echo:large").out
    hermes("models", "use", "echo:")
    assert "small heard 2 messages" in hermes("chat", "-q", "hi").out
    assert "small; the endpoint answers" in hermes("doctor").out
    listed = json.loads(hermes("models", "list", "--json", "--search", "echo").out)
    assert [model["name"] for model in listed["models"]] == ["echo:small", "echo:large"]


def test_errors_of_a_plugin_are_failures_of_its_provider(hermes: Hermes, hermes_home: Path) -> None:
    raising = """
from hermes_agent.events import TextDelta
from hermes_agent.providers.base import Provider

class Broken(Provider):
    name = "broken"
    base_url = "broken:"
    window = 100_000

    def __init__(self, model):
        self.model = model

    def stream(self, request, cancel):
        yield TextDelta("Half")
        raise RuntimeError("no more")

def register(ctx):
    ctx.register_provider("broken", model="m", open=lambda choice, folder: Broken(choice.model),
                          models=lambda: 1 / 0)
    ctx.register_provider("unopened", model="m", open=lambda choice, folder: 1 / 0)
    ctx.register_provider("odd", model="m", open=lambda choice, folder: object())
"""
    enable_plugins(hermes_home, raising=raising)
    expected = {
        "broken:m": "broken failed: RuntimeError: no more",
        "unopened:m": "the provider unopened cannot be opened: ZeroDivisionError",
        "odd:m": "the provider odd has no name, model",
    }
    for model, problem in expected.items():
        result = hermes("chat", "-q", "hi", "--model", model)
        assert problem in result.err
        assert "Traceback" not in result.err
    listed = hermes("models", "list", "--search", "x")
    assert "ZeroDivisionError" in listed.out + listed.err
    assert "Traceback" not in listed.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('"x", model="m"', "needs a base_url or open"),
        ('"x", model="m", base_url="http://h/v1", api="other"', "unknown api 'other'"),
        ('"X", model="m"', "invalid provider name 'X'"),
    ],
)
def test_an_incomplete_provider_is_reported(
    hermes: Hermes, hermes_home: Path, arguments: str, problem: str
) -> None:
    enable_plugins(hermes_home, bad=f"def register(ctx):\n    ctx.register_provider({arguments})\n")
    assert problem in hermes("plugins", "list").out
