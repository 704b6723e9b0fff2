"""Plugins: discovery, loading, callbacks and delivery."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import hermes_plugin_host
from hermes_plugin_host.callbacks import Callback
from hermes_plugin_host.delivery import Delivery, calls_for
from hermes_plugin_host.discovery import bundled_folder, discover
from hermes_plugin_host.manager import PluginManager
from hermes_state import SessionDB
from support.plugin_folders import add_misbehaving_plugin
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def make_plugin(home: Path, key: str, code: str, manifest: str = "version: '1'") -> None:
    folder = home / "plugins" / key
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(manifest)
    (folder / "__init__.py").write_text(code)


def load_plugins(*enabled: str, disabled: tuple[str, ...] = ()) -> PluginManager:
    manager = PluginManager(enabled, disabled)
    manager.load()
    return manager


RECORDER_CODE = """
calls = []
def record(**fields):
    calls.append(fields)
    return fields.get("answer")
def register(ctx):
    ctx.register_hook("on_session_start", record)
"""


@pytest.fixture(autouse=True)
def forget_plugins() -> Iterator[None]:
    hermes_plugin_host.active.cache_clear()
    yield
    hermes_plugin_host.active.cache_clear()


def test_bundled_plugins_are_available_but_not_loaded_by_default() -> None:
    result = discover()
    assert result["boundary-log"].origin == "bundled"
    assert load_plugins().plugins["boundary-log"].status == "available"
    assert bundled_folder().name == "plugins"


def test_a_users_plugin_replaces_a_bundled_one_of_the_same_name(hermes_home: Path) -> None:
    make_plugin(hermes_home, "boundary-log", RECORDER_CODE, "description: mine")
    result = discover()["boundary-log"]
    assert (result.origin, result.manifest.description) == ("user", "mine")


def test_plugins_may_be_two_levels_deep(hermes_home: Path) -> None:
    make_plugin(hermes_home, "image_gen/openai", RECORDER_CODE)
    assert load_plugins("image_gen/openai").plugins["image_gen/openai"].status == "loaded"


def test_disabled_wins_over_enabled(hermes_home: Path) -> None:
    make_plugin(hermes_home, "mine", RECORDER_CODE)
    assert load_plugins("mine", disabled=("mine",)).plugins["mine"].status == "disabled"


@pytest.mark.parametrize(
    ("code", "manifest", "detail"),
    [
        ("raise RuntimeError('broken')", "", "broken"),
        ("import sys; sys.exit(3)", "", "called sys.exit"),
        ("def (", "", "SyntaxError"),
        ("x = 1", "", "no register"),
        ("def register(ctx): ctx.register_hook('on_session_start', 3)", "", "is not callable"),
        ("def register(ctx): ctx.nothing()", "", "nothing"),
        (RECORDER_CODE, "kind: wizard", "wizard"),
        (RECORDER_CODE, "requires_env: [NO_SUCH_VARIABLE]", "NO_SUCH_VARIABLE"),
        (RECORDER_CODE, "provides_tools: 7", "list of names"),
        (RECORDER_CODE, "a: [", "plugin.yaml"),
    ],
)
def test_a_failing_plugin_is_reported_and_affects_no_other(
    hermes_home: Path, code: str, manifest: str, detail: str
) -> None:
    make_plugin(hermes_home, "bad", code, manifest)
    make_plugin(hermes_home, "good", RECORDER_CODE)
    manager = load_plugins("bad", "good")
    assert manager.plugins["bad"].status == "failed"
    assert detail in manager.plugins["bad"].detail
    assert manager.plugins["good"].status == "loaded"
    assert len(manager.call("on_session_start", {"session_id": "s"})) == 1


def test_invoking_a_hook_collects_the_results(hermes_home: Path) -> None:
    make_plugin(hermes_home, "one", RECORDER_CODE)
    make_plugin(hermes_home, "two", RECORDER_CODE)
    (hermes_home / "config.yaml").write_text("plugins: {enabled: [one, two]}\n")
    assert hermes_plugin_host.invoke_hook("on_session_start", answer=5) == [5, 5]
    assert hermes_plugin_host.invoke_hook("on_session_start") == []
    assert hermes_plugin_host.invoke_hook("unknown_hook") == []


def test_a_mistake_in_the_settings_loads_no_plugins_and_breaks_nothing(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("plugins: {enabled: {a: 1}}\n")
    assert hermes_plugin_host.invoke_hook("on_session_start") == []


def fail() -> None:
    raise ValueError("no")


def leave() -> None:
    raise SystemExit(3)


async def fail_later() -> None:
    raise ValueError("later")


async def answer() -> int:
    return 7


async def wait_forever() -> None:
    await __import__("asyncio").sleep(3600)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (fail, "ValueError: no"),
        (leave, "SystemExit: 3"),
        (fail_later, "ValueError: later"),
        (lambda unexpected: None, "TypeError"),
        (lambda: time.sleep(600), "did not return"),
        (wait_forever, "did not return"),
    ],
)
def test_a_failure_of_a_callback_is_contained(function, error: str) -> None:
    outcome = Callback("p", "h", function).call({}, timeout_seconds=0.2)
    assert error in outcome.error
    assert outcome.is_failure


def test_plain_and_async_functions_return_results() -> None:
    assert Callback("p", "h", lambda: 7).call({}).result == 7
    assert Callback("p", "h", answer).call({}).result == 7


def test_a_callback_that_keeps_hanging_is_disabled() -> None:
    callback = Callback("p", "h", lambda: time.sleep(600))
    for _ in range(3):
        callback.call({}, timeout_seconds=0.05)
    outcome = callback.call({}, timeout_seconds=3600)
    assert "disabled after 3 consecutive timeouts" in outcome.error
    assert callback.calls == 3


def test_a_callback_that_returns_in_between_is_not_disabled() -> None:
    hangs = iter([True, True, False, True, True])

    def hang_at_times() -> str:
        if next(hangs, False):
            time.sleep(600)
        return "returned"

    callback = Callback("p", "h", hang_at_times)
    timeouts = (0.05, 0.05, 60, 0.05, 0.05, 60)
    outcomes = [callback.call({}, timeout_seconds=seconds) for seconds in timeouts]
    assert [outcome.is_failure for outcome in outcomes] == [True, True, False, True, True, False]
    assert outcomes[-1].result == "returned"


def test_commands_and_tools_are_registered(hermes_home: Path) -> None:
    code = """
def register(ctx):
    ctx.register_command("/roll", lambda args: args, "roll dice", "[sides]")
    ctx.register_cli_command("dice", "roll", lambda parser: None, lambda args: 0)
    ctx.register_tool("roll", "games", {"type": "object"}, lambda **k: "{}", requires_env=["X"])
    assert ctx.manifest.name == "dice" and ctx.profile_name == "main"
"""
    make_plugin(hermes_home, "dice", code, "name: dice")
    registered = load_plugins("dice").plugins["dice"].registered
    assert [command.name for command in registered.commands] == ["roll"]
    assert [cli_command.name for cli_command in registered.cli_commands] == ["dice"]
    assert registered.tools[0].requires_env == ("X",)


FILE_RECORDER_CODE = """
import json, os, pathlib
def record(**fields):
    path = pathlib.Path(os.environ["HERMES_HOME"]) / "hook_calls.jsonl"
    with path.open("a") as file:
        file.write(json.dumps(fields) + "\\n")
    if path.with_name("fail").exists():
        raise RuntimeError("not now")
def register(ctx):
    for name in ("on_session_finalize", "on_session_reset", "on_session_boundary"):
        ctx.register_hook(name, record)
"""


def recorded_calls(home: Path) -> list[str]:
    path = home / "hook_calls.jsonl"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        store.create_session("old", "telegram")
        yield store


def test_an_end_is_announced_with_exactly_the_documented_fields(db: SessionDB) -> None:
    db.end_session("old", "session_reset", new_session_id="new")
    (event,) = db.boundaries.claim()
    calls = calls_for(event)
    assert [call.hook for call in calls] == [
        "on_session_finalize",
        "on_session_reset",
        "on_session_boundary",
    ]
    assert calls[0].facts == {"session_id": "old", "platform": "telegram"}
    assert calls[1].facts == {"session_id": "new", "platform": "telegram"}
    assert calls[2].facts["event_id"] == event.event_id
    assert calls[2].facts["reason"] == "session_reset"


def test_a_boundary_that_is_not_an_end_finalises_nothing(db: SessionDB) -> None:
    db.edits.branch("old")
    (event,) = db.boundaries.claim()
    assert [call.hook for call in calls_for(event)] == ["on_session_boundary"]


def test_every_plugin_receives_each_event_once(db: SessionDB, hermes_home: Path) -> None:
    make_plugin(hermes_home, "recorder", FILE_RECORDER_CODE)
    delivery = Delivery(db.boundaries, load_plugins("recorder"))
    db.end_session("old", "idle")
    assert delivery.deliver_due() == 1
    assert delivery.deliver_due() == 0
    assert len(recorded_calls(hermes_home)) == 2
    assert db.boundaries.recent()[0].state == "delivered"


def test_only_the_failing_plugin_is_called_again(db: SessionDB, hermes_home: Path) -> None:
    make_plugin(hermes_home, "recorder", FILE_RECORDER_CODE)
    make_plugin(hermes_home, "broken", "def f(**k): raise ValueError('x')\n"
                "def register(ctx): ctx.register_hook('on_session_boundary', f)")  # fmt: skip
    delivery = Delivery(db.boundaries, load_plugins("recorder", "broken"))
    db.end_session("old", "idle")
    delivery.deliver_due()
    event = db.boundaries.recent()[0]
    assert event.state == "waiting"
    assert "broken:on_session_boundary:1: ValueError: x" in event.error
    db.engine.write(lambda tx: tx.run("UPDATE hermes_boundary SET due_at = 0"))
    delivery.deliver_due()
    assert db.boundaries.recent()[0].attempts == 2
    assert len(recorded_calls(hermes_home)) == 2


def test_a_replayed_event_is_delivered_again_with_the_same_id(
    db: SessionDB, hermes_home: Path
) -> None:
    make_plugin(hermes_home, "recorder", FILE_RECORDER_CODE)
    delivery = Delivery(db.boundaries, load_plugins("recorder"))
    db.end_session("old", "idle")
    delivery.deliver_due()
    assert db.boundaries.replay(db.boundaries.recent()[0].event_id)
    delivery.deliver_due()
    assert len(recorded_calls(hermes_home)) == 4
    assert len(set(recorded_calls(hermes_home))) == 2
    assert not db.boundaries.replay("nothing")


def test_delivery_in_the_background_is_prompt(db: SessionDB, hermes_home: Path) -> None:
    make_plugin(hermes_home, "recorder", FILE_RECORDER_CODE)
    delivery = Delivery(db.boundaries, load_plugins("recorder"))
    delivery.start()
    db.end_session("old", "idle")
    wait_until(lambda: len(recorded_calls(hermes_home)) >= 2)
    delivery.stop()
    assert len(recorded_calls(hermes_home)) == 2


def test_the_example_writes_each_boundary_once(db: SessionDB, hermes_home: Path) -> None:
    delivery = Delivery(db.boundaries, load_plugins("boundary-log"))
    db.end_session("old", "idle")
    delivery.deliver_due()
    db.boundaries.replay(db.boundaries.recent()[0].event_id)
    delivery.deliver_due()
    lines = (hermes_home / "logs" / "boundaries.jsonl").read_text().splitlines()
    assert sum('"on_session_boundary"' in line for line in lines) == 1


@pytest.mark.parametrize("how", ["raise", "hang", "exit", "async", "late"])
def test_the_misbehaving_plugin_affects_no_other_plugin(
    db: SessionDB, hermes_home: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_MISBEHAVE", how)
    add_misbehaving_plugin(hermes_home)
    make_plugin(hermes_home, "recorder", FILE_RECORDER_CODE)
    delivery = Delivery(db.boundaries, load_plugins("misbehaving", "recorder"), timeout_seconds=0.2)
    db.end_session("old", "idle")
    delivery.deliver_due()
    assert len(recorded_calls(hermes_home)) == 2
    assert db.boundaries.recent()[0].state == "waiting"


def test_the_misbehaving_plugin_can_refuse_to_load(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_misbehaving_plugin(hermes_home)
    monkeypatch.setenv("HERMES_MISBEHAVE", "import")
    assert load_plugins("misbehaving").plugins["misbehaving"].status == "failed"
