"""Platforms, people, models and MCP servers: forms on the page, and what a terminal confirms."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from hermes_agent.memory.facts import AgentMemory
from hermes_core.config.file import ConfigFile
from hermes_core.config.webhook_routes import parse_options, route_entries
from hermes_core.paths import person_memory_path
from hermes_core.roles import Person
from support.browsers import PHONE, axe_violations, overflowing_elements
from support.command_line import run_hermes
from support.mcp_process import PROGRAM
from support.model_servers import configured_models
from support.pairings import pair
from support.telegram_server import TOKEN, TelegramServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

    from hermes_state import SessionDB
    from support.browsers import Visitor


CLOSE_NOTICES = """() => document.querySelectorAll('.mantine-Notification-closeButton')
  .forEach((button) => button.click())"""


def confirm_change(page: Page) -> None:
    """Run the command that the page shows; it then says that the change is in effect."""
    changes = page.get_by_role("region", name="Changes to confirm")
    command = changes.get_by_text("dashboard confirm").first
    expect(command).to_be_visible()
    code = command.inner_text().split()[-1]
    assert run_hermes("dashboard", "confirm", code, "--yes").code == 0
    expect(changes.get_by_text("The change is in effect")).to_be_visible()
    changes.get_by_role("button", name="Dismiss").click()
    expect(changes).to_have_count(0)


def check_look(page: Page) -> None:
    assert axe_violations(page, "wcag2a", "wcag2aa", "best-practice") == []  # with its notices
    page.evaluate(CLOSE_NOTICES)
    expect(page.locator(".mantine-Notification-root")).to_have_count(0)
    desktop = page.viewport_size
    page.set_viewport_size(PHONE)
    assert overflowing_elements(page) == []
    assert desktop is not None
    page.set_viewport_size(desktop)


@contextmanager
def telegram() -> Iterator[str]:
    """A Bot API on a thread of its own; its URL."""
    server, loop = TelegramServer(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(30)
    try:
        yield server.base_url
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def open_form(page: Page, title: str) -> Locator:
    panel = page.get_by_role("region", name="Set up platforms")
    panel.get_by_role("button", name=title).click()
    form = panel.get_by_role("group", name=title, exact=True)
    expect(form).to_be_visible()
    return form


def test_a_platform_is_set_up_on_its_form_and_tested(visitor: Visitor) -> None:
    visitor.problems.allow("status of 400")
    with telegram() as url:
        page = visitor.open("/gateway")
        form = open_form(page, "Telegram")
        token = form.get_by_label("keys.telegram", exact=False).first
        token.fill(TOKEN)
        token.press("Enter")
        confirm_change(page)
        expect(token).to_have_value("")  # a stored credential is never shown
        assert ConfigFile.of_home().secret("keys.telegram") == TOKEN
        # A wrong value is refused at its field, a right one is stored at once.
        seconds = form.get_by_label("platforms.telegram.poll_seconds")
        seconds.fill("0")
        seconds.press("Enter")
        expect(form.get_by_text("it must be a whole number from 1 to 86400")).to_be_visible()
        seconds.fill("9")
        seconds.press("Enter")
        expect(page.get_by_text("Saved platforms.telegram.poll_seconds.")).to_be_visible()
        base = form.get_by_label("platforms.telegram.base_url")
        base.fill(url)
        base.press("Enter")
        confirm_change(page)
        expect(base).to_have_value(url)
        form.get_by_role("button", name="Test the connection").click()
        expect(form.get_by_role("status").filter(has_text="Connected as")).to_be_visible()
        check_look(page)
    form.get_by_role("button", name="Test the connection").click()
    expect(form.get_by_role("status").filter(has_text="Cannot reach")).to_be_visible()


def test_a_webhook_route_is_added_changed_and_removed(visitor: Visitor) -> None:
    visitor.problems.allow("status of 400")
    page = visitor.open("/gateway")
    panel = page.get_by_role("region", name="Webhook routes")
    expect(panel.get_by_text("No routes yet.")).to_be_visible()
    panel.get_by_role("button", name="Add a route").click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="Name").fill("reviews")
    form.get_by_role("textbox", name="Prompt").fill("Review {title}")
    url = form.get_by_role("textbox", name="URL for answers")
    url.fill("ftp://ci.example")
    form.get_by_role("button", name="Request").click()
    expect(form.get_by_text("must be an http(s):// URL")).to_be_visible()
    assert "http(s)://" in field_error(url)
    url.fill("https://ci.example/answers")
    form.get_by_label("New secret").fill("hunter2-hunter2-hunter2")
    form.get_by_role("button", name="Request").dblclick()
    expect(form).to_have_count(0)
    confirm_change(page)
    expect(page.get_by_text("hunter2")).to_have_count(0)
    row = panel.get_by_role("row", name="/webhooks/reviews")
    expect(row.get_by_text("https://ci.example/answers")).to_be_visible()
    edit = row.get_by_role("button", name="Edit the route reviews")
    edit.click()
    form.get_by_label("Accept only signatures with a timestamp").check()
    form.get_by_label("Deliveries per minute").fill("5")
    form.get_by_role("button", name="Save").click()  # fewer rights, at once
    expect(page.get_by_text("Saved the route reviews.")).to_be_visible()
    expect(edit).to_be_focused()
    entry = route_entries(ConfigFile.of_home())["reviews"]
    assert parse_options(entry)[2:] == ("https://ci.example/answers", "per-delivery", True, 5)
    check_look(page)
    edit.click()
    form.get_by_role("textbox", name="Prompt").fill("Look at {title}")
    form.get_by_role("button", name="Save").click()
    confirm_change(page)
    expect(row.get_by_text("Look at {title}")).to_be_visible()
    row.get_by_role("button", name="Remove the route reviews").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(panel.get_by_text("No routes yet.")).to_be_visible()
    assert route_entries(ConfigFile.of_home()) == {}


def test_several_changes_have_one_command_and_one_can_be_cancelled(page: Page) -> None:
    changes = page.get_by_role("region", name="Changes to confirm")
    page.goto("/settings")
    for name in ("llm.base_url", "gateway.transcribe_url"):
        field = page.get_by_role("textbox", name=re.compile(re.escape(name)))
        field.fill("http://127.0.0.1:9")
        field.press("Enter")
        expect(changes.get_by_text(f"Setting {name}")).to_be_visible()
    expect(changes.get_by_text("Confirm these 2 changes in a terminal")).to_be_visible()
    expect(changes.get_by_text(re.compile(r"dashboard confirm \w{6} \w{6}$"))).to_be_visible()
    check_look(page)
    changes.get_by_role("button", name="Cancel the change: Setting llm.base_url").click()
    expect(changes.get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("main")).to_be_focused()
    confirm_change(page)


def test_a_person_is_paired_and_gets_a_role(db: SessionDB, visitor: Visitor, page: Page) -> None:
    code = db.pairings.request("telegram", "42", "Ada")
    assert code is not None
    page.goto("/gateway")
    users = page.get_by_role("region", name="Users")
    expect(users.get_by_text("Ada · telegram")).to_be_visible()
    field = users.get_by_role("textbox", name="Pairing code: Ada")
    visitor.problems.allow("status of 404")
    field.fill("WRONG123")
    field.press("Enter")
    expect(field).to_have_accessible_description(re.compile("Unknown or expired code"))
    field.fill(code)
    users.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Confirm the change for Ada in a terminal.")).to_be_visible()
    assert db.pairings.allowed() == []
    confirm_change(page)
    row = users.get_by_role("row", name="Ada · telegram")
    expect(row.get_by_text("paired")).to_be_visible()
    role = row.get_by_role("combobox", name="Role: Ada")
    role.click()
    page.get_by_role("option", name="owner").click()
    confirm_change(page)
    expect(role).to_have_value("owner")
    role.click()
    page.get_by_role("option", name="guest").click()  # fewer rights, at once
    expect(page.get_by_text("Ada has the role guest.")).to_be_visible()
    assert db.people.role_of("telegram", "42") == "guest"
    check_look(page)
    users.get_by_role("button", name="Revoke access: Ada").click()
    expect(page.get_by_text("Access revoked for Ada.")).to_be_visible()
    expect(users.get_by_text("No one else has access yet.")).to_be_visible()


def test_models_show_window_and_price_and_a_price_can_be_set(page: Page) -> None:
    with configured_models() as choose:
        server = choose("[]")
        page.goto("/models")
        providers = page.get_by_role("region", name="Providers")
        expect(providers.get_by_text(server.base_url).first).to_be_visible()
        models = page.get_by_role("region", name="Models", exact=True)
        row = models.get_by_role("row", name="scripted").first
        expect(row.get_by_text("default")).to_be_visible()
        row.get_by_role("button", name="Set the price of scripted").click()
        form = page.get_by_role("dialog")
        form.get_by_label("Input", exact=True).fill("2.5")
        form.get_by_label("Output").fill("10")
        form.get_by_role("button", name="Save").click()
        expect(row.get_by_text("$2.5")).to_be_visible()
        opener = row.get_by_role("button", name="Set the price of scripted")
        expect(opener).to_be_focused()
        expect(row.get_by_text("Own price")).to_be_visible()
        assert ConfigFile.of_home().block("prices") == {"scripted": {"input": 2.5, "output": 10.0}}
        check_look(page)
        row.get_by_role("button", name="Set the price of scripted").click()
        form.get_by_role("button", name="Use the known price").click()
        expect(row.get_by_text("Set price")).to_be_visible()
        models.get_by_role("searchbox").fill("nothing like it")
        expect(models.get_by_text("No model matches.")).to_be_visible()


def test_an_mcp_server_is_added_tested_and_removed(visitor: Visitor) -> None:
    visitor.problems.allow("status of 400")
    page = visitor.open("/mcp")
    expect(page.get_by_text("No MCP servers yet.")).to_be_visible()
    page.get_by_role("button", name="Add a server").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill("shop")
    form.get_by_role("textbox", name="Command").fill("'unclosed")
    form.get_by_role("button", name="Request").click()
    expect(form.get_by_text("cannot be split")).to_be_visible()
    form.get_by_role("textbox", name="Command").fill(f"{sys.executable} {PROGRAM} stdio")
    form.get_by_label("Environment variables").fill("no value")
    form.get_by_role("button", name="Request").click()
    expect(form.get_by_text("Write each environment variable as NAME=VALUE.")).to_be_visible()
    form.get_by_label("Environment variables").fill("SHOP_TOKEN=hunter2")
    form.get_by_role("button", name="Request").click()
    expect(page.get_by_text("hunter2")).to_have_count(0)
    confirm_change(page)
    row = page.get_by_role("row", name="shop")
    expect(row.get_by_text("enabled")).to_be_visible()
    row.get_by_role("button", name="Test shop").click()
    tools = page.get_by_role("region", name="shop: ")
    expect(tools.get_by_text("price", exact=True)).to_be_visible()
    check_look(page)
    row.get_by_role("button", name="Remove shop").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No MCP servers yet.")).to_be_visible()
    assert ConfigFile.of_home().block("mcp_servers") == {}


def field_error(field: Locator) -> str:
    """The text that a browser reads out as the error of a field."""
    return str(
        field.evaluate(
            """(field) => (field.getAttribute("aria-describedby") ?? "").split(" ")
              .filter((id) => id.endsWith("-error"))
              .map((id) => document.getElementById(id)?.innerText ?? "").join("")"""
        )
    )


def test_a_refused_server_says_so_at_the_field_that_is_wrong(visitor: Visitor) -> None:
    visitor.problems.allow("status of 400")
    page = visitor.open("/mcp")
    page.get_by_role("button", name="Add a server").click()
    form = page.get_by_role("dialog")
    name, command = form.get_by_label("Name"), form.get_by_role("textbox", name="Command")
    variables = form.get_by_label("Environment variables")
    name.fill("shop")
    command.fill("mcp-shop")
    variables.fill("A B=1")
    form.get_by_role("button", name="Request").click()
    expect(form.get_by_text("'A B' is not the name of a variable.")).to_be_visible()
    assert "'A B'" in field_error(variables)
    assert (field_error(command), field_error(name)) == ("", "")
    expect(variables).to_be_focused()
    variables.fill("no value")
    form.get_by_role("button", name="Request").click()
    expect(form.get_by_text("Write each environment variable as NAME=VALUE.")).to_be_visible()
    assert (field_error(command), "NAME=VALUE" in field_error(variables)) == ("", True)
    variables.fill("")
    name.fill("a shop")
    form.get_by_role("button", name="Request").click()
    expect(form.get_by_text("A name has at most 64 letters")).to_be_visible()
    assert (field_error(command), field_error(variables)) == ("", "")


def test_a_price_below_zero_is_refused_at_its_field(visitor: Visitor) -> None:
    visitor.problems.allow("status of 422")
    page = visitor.open("/models")
    page.get_by_role("button", name="Add a price").click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="Model").fill("own-model")
    price, output = form.get_by_label("Input", exact=True), form.get_by_label("Output")
    price.fill("-5")
    output.fill("10")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("The price must be a number from 0 to 1000000.")).to_be_visible()
    assert ("from 0 to 1000000" in field_error(price), field_error(output)) == (True, "")
    assert ConfigFile.of_home().block("prices") == {}
    expect(price).to_be_focused()
    price.fill("5")
    form.get_by_role("button", name="Save").dblclick()
    expect(form).to_have_count(0)
    assert ConfigFile.of_home().block("prices") == {"own-model": {"input": 5.0, "output": 10.0}}


@pytest.mark.parametrize(
    ("path", "button", "fields"),
    [
        ("/mcp", "Add a server", {"Name": "shop", "Command": "mcp-shop"}),
        ("/schedules", "Add a job", {"When": "every 2h", "What to do": "Say hello."}),
    ],
)
def test_a_double_click_sends_a_form_once(
    page: Page, path: str, button: str, fields: dict[str, str]
) -> None:
    sent = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    page.goto(path)
    page.get_by_role("button", name=button).click()
    form = page.get_by_role("dialog")
    for label, text in fields.items():
        form.get_by_role("textbox", name=label).fill(text)
    form.get_by_role("button", name="Request").dblclick()
    expect(form).to_have_count(0)
    assert len(sent) == 1
    expect(page.locator(".mantine-Notification-root")).to_have_count(1)


def test_notes_of_another_person_are_edited_with_undo(db: SessionDB, page: Page) -> None:
    pair(db, "telegram", "42", "Ada")
    notes = AgentMemory(db, person_memory_path(Person("telegram", "42").folder_name))
    notes.add("user", "Likes tea")
    page.goto("/memory")
    people = page.get_by_role("region", name="About other people")
    ada = people.get_by_role("region", name="Ada · telegram: about the person")
    ada.get_by_role("button", name="Edit: Likes tea").click()
    ada.get_by_role("textbox", name="Entry").fill("Likes coffee")
    ada.get_by_role("button", name="Save").click()
    expect(ada.get_by_role("button", name="Edit: Likes coffee")).to_be_visible()
    assert notes.entries("user") == ["Likes coffee"]
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(ada.get_by_role("button", name="Edit: Likes tea")).to_be_visible()
    assert notes.entries("user") == ["Likes tea"]
    check_look(page)
