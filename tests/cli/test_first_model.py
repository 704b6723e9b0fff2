"""The first minute: keys of the environment, the list of models, the offer of a setup."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from hermes_agent.providers.apis import OPENAI_API, PRESETS, ModelChoice
from hermes_agent.providers.catalog import ModelCatalog, endpoint_of, known_endpoints, suggestions
from hermes_agent.providers.selection import environment_model, model_by_name
from hermes_core.clock import ManualClock
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.known_models import find_known_model
from support.model_servers import model_servers
from support.terminal import on_terminal, wait_for_exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes
    from support.scripted_server import ScriptServer

MODELS: list[Any] = [
    {"id": "alpha-large", "context_length": 200_000,
     "pricing": {"prompt": "0.000002", "completion": "0.00001"}},
    {"id": "alpha-small", "context_window": 8_000},
    {"id": "text-embedding-9"},
]  # fmt: skip


@pytest.fixture
def serve() -> Iterator[Callable[[str], ScriptServer]]:
    with model_servers() as start:
        yield start


def with_models(server: ScriptServer) -> ScriptServer:
    server.models = MODELS
    return server


@pytest.mark.parametrize(
    ("prefix", "header"), [("OPENAI", "authorization"), ("ANTHROPIC", "x-api-key")]
)
def test_a_key_of_the_environment_is_used_at_once(
    hermes: Hermes, serve: Any, prefix: str, header: str
) -> None:
    server = serve("[{say: Hello.}]")
    variables = {f"{prefix}_API_KEY": "sk-found", f"{prefix}_BASE_URL": server.base_url}
    result = hermes("chat", "-q", "hi", **variables)
    assert (result.code, result.out) == (0, "Hello.\n"), result.err
    assert f"using scripted ({server.base_url}) with {prefix}_API_KEY" in result.err
    assert server.headers[0][header].endswith("sk-found")


def test_a_configured_model_is_not_replaced_by_a_key(hermes: Hermes, serve: Any) -> None:
    server, other = serve("[{say: Mine.}]"), serve("[{say: Other.}]")
    config = ConfigFile.of_home()
    config.set("llm.base_url", server.base_url)
    config.set("llm.model", "scripted")
    variables = {"OPENAI_API_KEY": "sk-found", "OPENAI_BASE_URL": other.base_url}
    result = hermes("chat", "-q", "hi", **variables)
    assert result.out == "Mine.\n"
    assert "OPENAI_API_KEY" not in result.err


def test_a_stored_key_does_not_follow_a_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    ConfigFile.of_home().set("keys.openai", "sk-stored")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    found = environment_model(ConfigFile.of_home().settings())
    assert found is not None
    assert found.choice.base_url == "https://api.openai.com/v1"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_preset_is_complete(preset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {setting.name: setting.variable for setting in SETTINGS if setting.secret}
    assert variables[preset.key_setting] == preset.variable
    monkeypatch.setenv(preset.variable, "k")
    settings = ConfigFile.of_home().settings()
    found = environment_model(settings)
    assert found is not None
    assert found.choice == model_by_name(settings, f"{preset.name}:{preset.model}", None)
    assert found.choice.key == "k"
    known_hosts = {"api.together.xyz"}  # without a row in the table of known models
    assert urlsplit(preset.url).hostname in known_hosts or find_known_model(
        preset.url, preset.model
    )


def test_models_are_listed_searched_and_kept(hermes: Hermes, serve: Any) -> None:
    server = with_models(serve("[]"))
    variables = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
    listed = json.loads(hermes("models", "list", "--json", **variables).out)
    alpha, small = listed["models"]
    assert alpha["name"] == f"{server.base_url}#alpha-large"
    assert (alpha["window"], alpha["input_price"], alpha["output_price"]) == (200_000, 2.0, 10.0)
    assert (small["window"], small["input_price"]) == (8_000, None)
    server.models = [{"id": "newer"}]
    found = json.loads(hermes("models", "list", "--json", "--search", "SMALL", **variables).out)
    assert [model["model"] for model in found["models"]] == ["alpha-small"]
    text = hermes("models", "list", "--refresh", **variables).out
    assert "newer" in text
    assert "alpha" not in text


def test_an_old_list_is_used_if_there_is_no_new_one(serve: Any, tmp_path: Path) -> None:
    clock = ManualClock(1_000_000.0)
    catalog = ModelCatalog(tmp_path / "models.json", clock)
    with model_servers() as start:
        server = with_models(start("[]"))
        endpoint = endpoint_of(ModelChoice(OPENAI_API, "", server.base_url))
        assert len(catalog.load([endpoint])[0].models) == 2
    clock.advance(2 * 86_400)
    (listed,) = catalog.load([endpoint])
    assert [model.model for model in listed.models] == ["alpha-large", "alpha-small"]
    assert "Cannot connect" in listed.problem
    assert listed.fetched_at == 1_000_000.0


def test_similar_models_are_suggested(serve: Any, tmp_path: Path) -> None:
    server = with_models(serve("[]"))
    config = ConfigFile.of_home()
    config.set("llm.base_url", server.base_url)
    config.set("llm.model", "alpha-large")
    (listed,) = ModelCatalog(tmp_path / "m.json").load(known_endpoints(config.settings()))
    assert suggestions(listed.models, "alfa-smal") == [f"{server.base_url}#alpha-small"]


def test_a_model_is_chosen_in_a_dialog(serve: Any, hermes_home: Path) -> None:
    server = with_models(serve("[]"))
    variables = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
    child = on_terminal("models", TERM="xterm-256color", **variables)
    child.expect("Models: 2")
    child.send("small")
    child.expect("Models: 1")
    child.send("\r")
    child.expect("Default model: alpha-small")
    assert wait_for_exit(child) == 0
    assert "alpha-small" in (hermes_home / "config.yaml").read_text()


def test_a_chat_says_at_its_start_which_key_it_uses(serve: Any) -> None:
    server = serve("[{say: Hello.}]")
    child = on_terminal("chat", OPENAI_API_KEY="k", OPENAI_BASE_URL=server.base_url)
    child.expect("OPENAI_API_KEY. Run")
    assert server.requests == []  # before the first question
    child.send("hi\r")
    child.expect("Hello.")
    assert "OPENAI_API_KEY" not in child.before
    child.send("/quit\r")
    assert wait_for_exit(child) == 0


def checks(hermes: Hermes, **variables: str) -> dict[str, Any]:
    report = json.loads(hermes("doctor", "--json", **variables).out)
    return {check["name"]: check for check in report["checks"]}


def test_the_doctor_tests_the_model_and_says_what_is_missing(hermes: Hermes, serve: Any) -> None:
    found = checks(hermes)
    assert (found["model"]["status"], found["gateway"]["status"]) == ("warning", "skipped")
    assert "hermes setup" in found["model"]["advice"]
    assert {"daemon", "PATH", "disk space"} <= set(found)
    server = with_models(serve("[]"))
    variables = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
    assert checks(hermes, **variables)["model"]["status"] == "ok"
    renamed = checks(hermes, OPENAI_MODEL="beta", **variables)["model"]
    assert (renamed["status"], "beta" in renamed["detail"]) == ("warning", True)
    ConfigFile.of_home().set("llm.base_url", "https://api.openai.com/v1")
    ConfigFile.of_home().set("llm.model", "gpt-5.6")
    assert "API key is missing" in checks(hermes)["model"]["detail"]
