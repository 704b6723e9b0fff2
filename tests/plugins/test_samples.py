"""Sample plugins, one for each interface of hermes-agent, as a user would install them."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hermes_plugin_host
from gateway.config import Platform, PlatformConfig
from gateway.platforms.base import OutgoingMessage
from gateway.platforms.registry import PlatformRegistry
from hermes_cli import plugins as original_names
from hermes_compat.platforms import OriginalConnection
from hermes_conversation import slash_commands
from hermes_conversation.transcription import transcriber_of
from hermes_core.config.file import ConfigFile
from hermes_core.errors import PlatformDownError, PlatformRefusedError, PluginError, UsageError
from hermes_plugin_host.interface import warn_deprecated
from hermes_state import SessionDB
from support.adapters import AdapterSetup, DictMemory
from support.agent_conversation import open_conversation, tool_call_step
from support.gateway_process import GatewayProcess
from support.model_servers import model_servers
from support.plugin_folders import make_dashboard_plugin
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_plugin_host.manager import Plugin
    from support.command_line import Hermes

SAMPLES = Path(__file__).with_name("samples")
REFUSED = {
    "refused_method": "UnsupportedInterfaceError: ctx.register_context_engine is not supported by "
    "Hermes: Hermes shortens conversations itself.",
    "refused_module": "UnsupportedModuleError: the module providers of hermes-agent is not "
    "available: add a provider with ctx.register_provider",
    "refused_middleware": "PluginError: middleware 'llm_request' is not supported",
}


@pytest.fixture
def install(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Plugin]]:
    """Copies samples into the home and enables them."""
    monkeypatch.setenv("SAMPLE_CHAT_TOKEN", "token")

    def copy(*names: str) -> dict[str, Plugin]:
        for name in names:
            shutil.copytree(SAMPLES / name, hermes_home / "plugins" / name)
        ConfigFile.of_home().set("plugins.enabled", ", ".join(names))
        hermes_plugin_host.active.cache_clear()
        return hermes_plugin_host.active().plugins

    return copy


def run_command(line: str) -> str:
    name, _, words = line[1:].partition(" ")
    return slash_commands.find(name).run(None, words).text  # type: ignore[arg-type]


def test_every_sample_loads_or_is_refused_with_the_reason(install: Any) -> None:
    names = sorted(folder.name for folder in SAMPLES.iterdir() if folder.is_dir())
    plugins = install(*names)
    states = {name: (plugins[name].status, plugins[name].detail) for name in names}
    for name, (status, detail) in states.items():
        if name in REFUSED:
            assert status == "failed"
            assert detail.startswith(REFUSED[name])
            assert plugins[name].registered.hooks == []
        else:
            assert (name, status, detail) == (name, "loaded", "")
    assert len(names) - len(REFUSED) == 11


def test_a_plugin_of_several_files(install: Any, hermes_home: Path) -> None:
    install("several_files")
    assert run_command("/count yes") == "1 YES"
    assert run_command("/count no") == "2 NO"
    assert run_command("/home") == str(hermes_home)


def test_a_plugin_with_every_hook(install: Any, hermes_home: Path, tmp_path: Path) -> None:
    install("every_hook")
    with open_conversation(tmp_path, tool_call_step("terminal", {"command": "true"})) as talk:
        talk.results()
    called = {line.split()[0] for line in (hermes_home / "called").read_text().splitlines()}
    expected = {"pre_llm_call", "post_tool_call", "transform_terminal_output", "on_session_end"}
    assert expected <= called
    assert run_command("/hooked pre_llm_call") == "True"


def test_tools_with_handlers(install: Any, tmp_path: Path) -> None:
    install("tools")
    steps = [
        tool_call_step("sample_add", {"a": 1, "b": 2}),
        tool_call_step("sample_add_later", {"b": 2}),
        tool_call_step("sample_self_registered", {}),
    ]
    with open_conversation(tmp_path, *steps) as talk:
        added, failed, registered = talk.results()
    assert added["sum"] == 3
    assert failed["error"] == "a is missing"
    assert registered == {"registered": True}


def test_slash_and_command_line_commands(install: Any, hermes: Hermes) -> None:
    install("commands")
    assert run_command("/greet Ada") == "hello Ada"
    assert run_command("/later now") == "later: now"
    assert hermes("greet", "Ada").out == "hello Ada\n"
    assert hermes("meet", "join").out == "joined\n"


def test_a_dashboard_tab_without_plugin_yaml(install: Any, hermes: Hermes) -> None:
    assert install("board")["board"].discovered.has_dashboard
    assert json.loads(hermes("plugins", "info", "board", "--json").out)["kind"] == "dashboard"


def test_a_memory_provider(install: Any, hermes_home: Path, tmp_path: Path) -> None:
    plugins = install("memory")
    assert plugins["memory"].registered.memory_providers == ["file-memory"]
    with open_conversation(tmp_path, tool_call_step("recall_all", {}), {"say": "Blue."}) as talk:
        (result,) = talk.results("What is my colour?")
        list(talk.bundle.agent.turn("And now?"))
        session_id = talk.bundle.agent.session_id
        first, second = (request["messages"] for request in talk.server.requests[::2])
    assert result == {"tool": "recall_all", "session": session_id}
    assert "Memory of cli." in first[1]["content"]
    assert "Remembered: What is my colour? -> Blue." in second[-1]["content"]
    hermes_plugin_host.invoke_hook("on_session_finalize", session_id=session_id, platform="cli")
    assert int((hermes_home / "ended").read_text()) > 3


def test_a_memory_provider_that_is_not_available_fails_to_load(
    install: Any, hermes_home: Path
) -> None:
    (hermes_home / "no_memory").touch()
    plugin = install("memory")["memory"]
    assert plugin.detail == "PluginError: the memory provider file-memory is not available"


def test_middleware_changes_arguments_and_results(install: Any, tmp_path: Path) -> None:
    install("middleware")
    steps = [
        tool_call_step("terminal", {"command": "@greeting"}),
        tool_call_step("terminal", {"command": "cached"}),
        tool_call_step("read_file", {"path": "missing"}),
    ]
    with open_conversation(tmp_path, *steps) as talk:
        greeting, cached, missing = talk.results()
    assert (greeting["output"], greeting["wrapped"]) == ("hello\n", True)
    assert cached == {"output": "from the cache", "error": None}
    assert missing["error"]


def test_middleware_cannot_get_around_the_permissions(install: Any, tmp_path: Path) -> None:
    plugin = install("middleware")["middleware"]
    del plugin
    around = hermes_plugin_host.active().middleware("tool_execution")[0]
    around.function = lambda next_call, **facts: next_call({"command": "git push origin main"})
    with open_conversation(tmp_path, tool_call_step("terminal", {"command": "true"})) as talk:
        (result,) = talk.results()
        (asked,) = talk.prompter.requests
    assert asked.command == "git push origin main"
    assert "denied" in result["error"]


def test_the_model_the_tools_and_the_input_of_a_conversation(install: Any, tmp_path: Path) -> None:
    install("services")
    with open_conversation(
        tmp_path, tool_call_step("ask_around", {}), {"say": "A plugin."}
    ) as talk:
        (result,) = talk.results()
        last = talk.server.requests[-1]["messages"]
        with SessionDB() as db:
            row = db.get_session(talk.bundle.agent.session_id)
        outside = json.loads(run_command("/tool echo again"))
        assert run_command("/inject too late") == "False"
    assert result == {"answer": "A plugin.", "output": "from a plugin\n", "injected": True}
    assert last[-1] == {"role": "user", "content": "Also mention the weather."}
    assert outside["output"] == "again\n"
    assert row is not None
    with pytest.raises(PluginError, match="no conversation is open"):
        run_command("/tool echo closed")


def test_a_skill_of_a_plugin(install: Any, tmp_path: Path) -> None:
    install("skill")
    with open_conversation(tmp_path, tool_call_step("skill_view", {"name": "reading"})) as talk:
        (result,) = talk.results()
        assert "- reading: How to read a text slowly." in talk.prompt()
    assert "Read every sentence twice." in json.dumps(result)


def test_a_transcriber_of_a_plugin(install: Any, tmp_path: Path) -> None:
    install("transcription")
    transcribe = transcriber_of(ConfigFile.of_home().settings())
    assert transcribe is not None
    assert transcribe(tmp_path / "a.ogg") == "a.ogg was transcribed"
    with pytest.raises(UsageError, match="plugin transcription: cannot hear anything"):
        transcribe(tmp_path / "a.bad")


def test_a_message_travels_through_an_adapter_of_hermes_agent(
    install: Any, hermes_home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "questions"
    folder.mkdir()
    install("chat_platform")
    gateway = GatewayProcess()
    with model_servers() as start:
        server = start("[{say: '**Forty-two** is the answer to it.'}]")
        config = {
            "plugins": {"enabled": ["chat_platform"]},
            "llm": {"api": "openai", "base_url": server.base_url, "model": "scripted"},
            "platforms": {
                "samplechat": {"enabled": True, "folder": str(folder), "allowed_users": ["ada"]}
            },
        }
        (hermes_home / "config.yaml").write_text(json.dumps(config))
        (folder / "q1.question").write_text("What is six times seven?")
        try:
            gateway.start()
            wait_until(lambda: "answer" in _text(folder / "q1.answer"))
        finally:
            gateway.stop()
    assert " ".join(_text(folder / "q1.answer").split()) == "Forty-two is the answer to it."
    assert all(len(line) <= 20 for line in _text(folder / "q1.answer").splitlines())


def test_a_message_of_an_adapter_of_hermes_agent_that_cannot_be_stored_is_set_aside(
    install: Any, hermes_home: Path, tmp_path: Path, hermes: Hermes
) -> None:
    folder = tmp_path / "questions"
    folder.mkdir()
    install("chat_platform")
    platform = {"enabled": True, "folder": str(folder), "allowed_users": ["ada"]}
    config = {"plugins": {"enabled": ["chat_platform"]}, "platforms": {"samplechat": platform}}
    (hermes_home / "config.yaml").write_text(json.dumps(config))
    (folder / "q1.question").write_text("")  # the adapter passes an event without a text
    gateway = GatewayProcess()
    try:
        gateway.start()
        wait_until(lambda: "samplechat" in hermes("gateway", "quarantine").out)
    finally:
        gateway.stop()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def create_adapter(context: Any, **extra: Any) -> OriginalConnection:
    config = PlatformConfig(enabled=True, extra=extra)
    made = PlatformRegistry.of_home().create_adapter("samplechat", context._replace(config=config))
    assert isinstance(made, OriginalConnection)
    return made


async def test_the_failures_of_an_adapter_of_hermes_agent_are_understood(
    install: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("chat_platform")
    secrets = {"SAMPLE_CHAT_TOKEN": "token"}
    adapter_context = AdapterSetup(DictMemory(), tmp_path, secrets).context()
    with pytest.raises(PlatformRefusedError, match="its configuration is not valid"):
        create_adapter(adapter_context)
    adapter = create_adapter(adapter_context, folder=str(tmp_path / "missing"))
    assert Platform("samplechat").value == "samplechat"
    with pytest.raises(PlatformDownError, match="could not connect"):
        await adapter.connect(None)  # type: ignore[arg-type]
    monkeypatch.setenv("SAMPLE_CHAT_TOKEN", "revoked")
    with pytest.raises(PlatformRefusedError, match="the token is revoked"):
        await adapter.connect(None)  # type: ignore[arg-type]
    assert adapter.problem == "the token is revoked"
    full = await adapter.send(OutgoingMessage("full", "text", "key"))
    assert (full.success, full.retryable, full.error) == (False, True, "try again")
    broken = await adapter.send(OutgoingMessage("broken", "text", "key"))
    assert (broken.error, broken.may_have_arrived) == ("OSError: no route", True)
    adapter._adapter.folder = tmp_path
    await adapter.typing("q1")
    assert (tmp_path / "q1.typing").exists()
    assert (adapter.abilities.typing, adapter.abilities.edit, adapter.abilities.files) == (
        True,
        False,
        False,
    )


def test_names_of_hermes_cli_plugins(install: Any, caplog: pytest.LogCaptureFixture) -> None:
    install("commands")
    warn_deprecated.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert original_names.get_plugin_manager() is hermes_plugin_host.active()
            original_names.discover_plugins(force=True)
    assert caplog.text.count("get_plugin_manager is deprecated: use hermes_plugin_host.active") == 1
    assert set(original_names.get_plugin_commands()) == {"greet", "later"}
    handler = original_names.get_plugin_command_handler("/greet")
    assert handler is not None
    assert handler("Ada") == "hello Ada"
    assert original_names.get_plugin_command_handler("nothing") is None
    assert "pre_llm_call" in original_names.VALID_HOOKS


def test_an_interface_that_is_asked_for_politely_is_absent(install: Any, hermes_home: Path) -> None:
    make_dashboard_plugin(hermes_home / "plugins", "unused")
    install("several_files")
    with pytest.raises(ModuleNotFoundError, match=r"tools\.browser_tool of hermes-agent"):
        __import__("tools.browser_tool")
    with pytest.raises(ModuleNotFoundError, match="No module named 'unrelated_module'"):
        __import__("unrelated_module")


def test_the_command_line_gives_plugins_the_interface_of_hermes_agent(
    hermes: Hermes, hermes_home: Path
) -> None:
    for name in ("memory", "refused_method"):
        shutil.copytree(SAMPLES / name, hermes_home / "plugins" / name)
    ConfigFile.of_home().set("plugins.enabled", "memory, refused_method")
    listed = json.loads(hermes("plugins", "list", "--json").out)
    plugins = {plugin["name"]: plugin for plugin in listed}
    assert plugins["memory"]["state"] == "loaded"
    assert plugins["refused_method"]["problem"].startswith(REFUSED["refused_method"])
