"""The menus of the chat page: slash commands and models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from support.chat_browser import ask, log
from support.model_servers import configured_models

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from playwright.sync_api import Page


def test_a_slash_opens_a_menu_of_commands_for_keyboard_and_mouse(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    set_model_steps("[{say: Hello.}]")
    page.goto("/chat")
    field = page.get_by_role("textbox", name="Message to the agent")
    menu = page.get_by_role("listbox", name="Slash commands")
    field.press_sequentially("/")
    expect(menu.get_by_role("option").nth(5)).to_be_attached()
    field.press_sequentially("ti")
    expect(menu.get_by_role("option", selected=True)).to_contain_text("/title")
    field.press("Tab")
    expect(field).to_have_value(re.compile("^/title $"))
    expect(menu).to_have_count(0)
    field.fill("/u")
    first = menu.get_by_role("option").first.inner_text()
    field.press("ArrowDown")
    expect(menu.get_by_role("option", selected=True)).not_to_have_text(first)
    field.press("Escape")
    expect(menu).to_have_count(0)
    expect(field).to_have_value("/u")
    field.fill("/hel")
    menu.get_by_role("option", name="/help").click()
    field.press("Enter")  # without the command that it could explain
    output = log(page).locator("pre")
    expect(output).to_contain_text("/model")
    assert "mono" in output.evaluate("element => getComputedStyle(element).fontFamily").lower()
    ask(page, "Hi")
    expect(log(page).get_by_text("Hello.")).to_be_visible()


def test_the_model_menu_has_the_models_of_all_servers_with_search(
    servers: ExitStack, page: Page
) -> None:
    server = servers.enter_context(configured_models())("[{say: Hello.}]")
    server.models = [{"id": name} for name in ("scripted", "another-model")]
    asked: list[str] = []
    page.on(
        "websocket",
        lambda socket: socket.on(
            "framesent", lambda frame: asked.append(str(frame)) if "model.list" in str(frame) else 0
        ),
    )
    page.goto("/chat")
    choice = page.get_by_role("combobox", name="Model")
    choice.click()
    choice.fill("other")
    page.get_by_role("option", name="another-model").click()
    ask(page, "Hi")
    expect(log(page).get_by_text("Hello.")).to_be_visible()
    expect(choice).to_have_value("another-model")
    choice.click()
    expect(page.get_by_role("option", name="another-model")).to_be_visible()
    assert len(asked) == 1
