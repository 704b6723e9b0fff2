"""Gateway, hooks, settings and plugins: changes on the page take effect."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import hermes_plugin_host
from gateway import status
from hermes_core.config.file import ConfigFile
from hermes_dashboard.resources.gateway import GatewayAccess
from support.browsers import PHONE, ROOT
from support.command_line import run_hermes
from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from hermes_state import SessionDB
    from support.browsers import ReturningVisitor, Tabs, Visitor
    from support.dashboards import RunningDashboard

# As plugins for the original are written: no build, React and everything else from the window.
OLD_STYLE = """
(function () {
  const { React, hooks, components, fetchJSON, utils } = window.__HERMES_PLUGIN_SDK__;
  const { Card, CardContent, Button, Badge, Input } = components;
  const h = React.createElement;
  function Counter() {
    const [count, setCount] = hooks.useState(0);
    const [title, setTitle] = hooks.useState("…");
    const [text, setText] = hooks.useState("");
    hooks.useEffect(() => {
      fetchJSON("/api/sessions").then((found) => setTitle(`${found.total} sessions are here`));
    }, []);
    return h(Card, { className: utils.cn("counter", false) }, h(CardContent, null,
      h("h1", null, "Counter"), h("p", null, title), h(Badge, null, `count ${count}`),
      h(Input, { "aria-label": "Words", value: text, onChange: (e) => setText(e.target.value) }),
      h("p", null, `typed ${text}`),
      h(Button, { onClick: () => setCount(count + 1) }, "More")));
  }
  window.__HERMES_PLUGINS__.register("counter", Counter);
})();
"""
BROKEN = """
window.__HERMES_PLUGINS__.register("broken", () => { throw new Error("it fell over"); });
"""
SILENT = "console.log('I register nothing');"


@pytest.fixture
def with_tabs(hermes_home: Path) -> Iterator[None]:
    """Plugins of the user's own with a page each."""
    for name, code in (("counter", OLD_STYLE), ("broken", BROKEN), ("silent", SILENT)):
        make_plugin(hermes_home, name, "def register(ctx): pass")
        folder = hermes_home / "plugins" / name / "dashboard"
        (folder / "dist").mkdir(parents=True)
        (folder / "dist" / "index.js").write_text(code)
        fields: dict[str, Any] = {"name": name, "label": name.title(), "tab": {"path": f"/{name}"}}
        (folder / "manifest.json").write_text(json.dumps({**fields, "entry": "dist/index.js"}))
    hermes_plugin_host.active.cache_clear()  # cached per process, this one has many homes
    yield
    hermes_plugin_host.active.cache_clear()


def test_the_gateway_page_shows_what_does_not_work(
    db: SessionDB, stranger: ReturningVisitor, serve: Callable[..., RunningDashboard]
) -> None:
    served = serve(gateway=GatewayAccess(db))
    stranger.sign_in(served.access)
    with status.hold_lock(), stranger.context.new_page() as page:
        status.write_runtime_status(
            "degraded",
            platforms={"telegram": {"state": "lost", "error_message": "Get a new token. " * 9}},
            problems=["telegram is lost: Token revoked."],
            heartbeat_at=time.time(),
        )
        page.goto("/gateway")
        alert = page.get_by_role("alert").filter(has_text="Problems found")
        expect(alert.get_by_text("telegram is lost: Token revoked.")).to_be_visible()
        page.set_viewport_size(PHONE)
        label = page.locator(".mantine-Badge-label", has_text="lost")
        assert label.evaluate("item => item.scrollWidth <= item.clientWidth")  # not cut off


def test_the_gateway_is_started_and_stopped_on_the_page(
    db: SessionDB, stranger: ReturningVisitor, serve: Callable[..., RunningDashboard]
) -> None:
    db.inbox.quarantine("telegram", "77", '{"odd": 1}', "unknown kind")
    served = serve(gateway=GatewayAccess(db))
    stranger.sign_in(served.access)
    page = stranger.open("/gateway")
    platforms = page.get_by_role("region", name="Platforms")
    expect(platforms.get_by_role("row", name="local not running")).to_be_visible()
    unhandled = page.get_by_role("region", name="Messages that could not be handled")
    unhandled.get_by_role("button", name="Skip message").click()
    page.get_by_role("dialog").get_by_role("button", name="Skip").click()
    expect(unhandled).to_have_count(0)
    page.get_by_role("button", name="Start").click()
    expect(platforms.get_by_role("row", name="local connected")).to_be_visible()
    log = page.get_by_role("region", name="gateway.jsonl")
    expect(log).to_contain_text("info")
    nodes = page.get_by_role("region", name="Processes")
    expect(nodes.get_by_text("alive").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("The gateway is not running")).to_be_visible()
    assert status.running_pid() is None


def test_a_boundary_is_delivered_again(db: SessionDB, page: Page) -> None:
    db.create_session("talk", "cli", is_owned=False)
    db.append_message("talk", "user", "Goodbye")
    db.end_session("talk", "done")
    page.goto("/hooks")
    log = page.get_by_role("region", name="Event log")
    row = log.get_by_role("row").nth(1)
    expect(row.get_by_role("link", name="talk")).to_be_visible()
    with page.expect_response("**/replay") as waiting:
        row.get_by_role("button", name="Replay").click()
    assert waiting.value.status == 202
    expect(page.get_by_text("The event will be delivered again.")).to_be_visible()
    expect(page.get_by_text("on_session_finalize", exact=True)).to_be_visible()


def test_a_setting_is_changed_in_the_file_and_reset(visitor: Visitor, hermes_home: Path) -> None:
    visitor.problems.allow("status of 400")
    page = visitor.open("/settings")
    page.get_by_role("searchbox", name="Search settings").fill("trash_days")
    field = page.get_by_role("textbox", name="store.trash_days")
    field.fill("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved store.trash_days.")).to_be_visible()
    expect(page.get_by_text("set in the config file")).to_be_visible()
    assert "trash_days: 7" in (hermes_home / "config.yaml").read_text()
    field.fill("-5")
    page.get_by_role("button", name="Save").click()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("-5"))
    field.fill("5")
    expect(field).not_to_have_attribute("aria-invalid", "true")  # of another value
    assert "trash_days: 7" in (hermes_home / "config.yaml").read_text()
    page.get_by_role("button", name="Reset to default").click()
    expect(field).to_have_value("30")
    assert "trash_days" not in (hermes_home / "config.yaml").read_text()


def test_settings_are_grouped_and_internal_ones_are_advanced(page: Page) -> None:
    page.goto("/settings")
    history = page.get_by_role("region", name="History")
    expect(history.get_by_text("store.trash_days")).to_be_visible()
    expect(page.get_by_text("store.busy_seconds")).to_have_count(0)
    page.get_by_role("switch", name="Show advanced settings").click(force=True)
    expect(page.get_by_text("store.busy_seconds")).to_be_visible()
    page.get_by_role("button", name="Dashboard", exact=True).click()
    expect(page.get_by_role("heading", name="Dashboard", exact=True)).to_be_in_viewport()


def test_the_plugin_of_the_tutorial_has_a_page_and_fills_a_slot(
    hermes_home: Path, db: SessionDB, stranger: Visitor, serve: Callable[..., RunningDashboard]
) -> None:
    text = (ROOT / "docs" / "tutorial" / "dashboard-plugin.md").read_text("utf-8")
    blocks = dict(re.findall(r"^```(json|js)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    folder = hermes_home / "plugins" / "word-count" / "dashboard"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(blocks["json"])
    (folder / "index.js").write_text(blocks["js"])
    enabled = run_hermes("plugins", "enable", "word-count")
    assert enabled.code == 0, enabled.err
    db.create_session("talk", "cli", is_owned=False)
    db.append_message("talk", "user", "Hello")
    stranger.sign_in(serve().access)
    page = stranger.open("/")
    summary = page.get_by_text("1 messages in your latest conversations")
    expect(summary).to_be_visible()
    box = summary.bounding_box()
    assert box is not None
    assert box["height"] > 12
    assert box["y"] > 0
    page.get_by_role("link", name="Word count").click()
    heading = page.get_by_role("heading", name="Word count", level=1)
    expect(heading).to_be_visible()
    inner, outer = heading.bounding_box(), page.get_by_role("main").bounding_box()
    assert inner is not None
    assert outer is not None
    assert inner["x"] - outer["x"] >= 16
    expect(page.get_by_role("link", name="talk")).to_be_visible()


def test_a_secret_is_stored_and_never_sent_to_the_page(tabs: Tabs) -> None:
    ConfigFile.of_home().set("keys.openai", "sk-very-secret")
    bodies: list[str] = []
    page = tabs.new()
    page.on("response", lambda item: "/api/settings" in item.url and bodies.append(item.text()))
    page.goto("/settings")
    page.get_by_role("searchbox", name="Search settings").fill("keys.")
    first = page.get_by_role("textbox", name="keys.openai")
    expect(first).to_have_attribute("placeholder", "Set and hidden. Type to replace the value.")
    assert "sk-very-secret" not in page.content()
    first.fill("sk-another-one")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved keys.openai.")).to_be_visible()
    expect(first).to_have_value("")
    assert ConfigFile.of_home().secret("keys.openai") == "sk-another-one"
    assert "sk-another-one" not in page.content()
    assert "sk-" not in "".join(bodies)


def test_a_plugin_confirmed_in_a_terminal_brings_its_page(with_tabs: None, page: Page) -> None:
    page.goto("/plugins")
    tabs = page.get_by_role("navigation", name="Pages")
    expect(tabs.get_by_role("link", name="Achievements")).to_be_visible()
    expect(tabs.get_by_role("link", name="Counter")).to_have_count(0)
    switch = page.get_by_role("switch", name="Enable counter")
    expect(switch).not_to_be_checked()
    switch.click(force=True)
    changes = page.get_by_role("region", name="Changes to confirm")
    expect(changes).to_contain_text("Plugin counter: not enabled → enabled")
    expect(switch).not_to_be_checked()
    expect(tabs.get_by_role("link", name="Counter")).to_have_count(0)
    code = (changes.get_by_text("dashboard confirm").text_content() or "").split()[-1]
    assert run_hermes("dashboard", "confirm", code, "--yes").code == 0
    expect(changes).to_contain_text("The change is in effect")
    expect(switch).to_be_checked()
    changes.get_by_role("button", name="Dismiss").click()
    expect(changes).to_have_count(0)
    tabs.get_by_role("link", name="Counter").click()
    expect(page.get_by_text("0 sessions are here")).to_be_visible()
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="More").click()
    expect(page.get_by_text("count 2")).to_be_visible()
    page.get_by_role("textbox", name="Words").fill("hello")
    expect(page.get_by_text("typed hello")).to_be_visible()
    page.goto("/plugins")
    expect(switch).to_be_checked()
    switch.click(force=True)
    expect(tabs.get_by_role("link", name="Counter")).to_have_count(0)


def test_a_plugin_that_breaks_breaks_its_own_page_only(
    with_tabs: None, stranger: Visitor, serve: Callable[..., RunningDashboard]
) -> None:
    ConfigFile.of_home().set("plugins.enabled", "broken,silent,counter")
    stranger.sign_in(serve().access)
    stranger.problems.allow("it fell over")
    page = stranger.open("/broken")
    expect(page.get_by_role("alert")).to_contain_text("Broken: it fell over")
    tabs = page.get_by_role("navigation", name="Pages")
    tabs.get_by_role("link", name="Silent").click()
    expect(page.get_by_role("alert")).to_contain_text("did not register a page")
    tabs.get_by_role("link", name="Counter").click()
    expect(page.get_by_text("count 0")).to_be_visible()
    tabs.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
