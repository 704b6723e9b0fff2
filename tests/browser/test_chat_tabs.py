"""Messages that wait for a running turn, in two tabs of one conversation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsers import axe_violations
from support.chat_browser import ask, log
from support.daemons import daemon_connections, wait_until
from support.model_servers import HeldServer, StepwiseServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

    from support.browsers import Tabs


def queue(page: Page, text: str) -> None:
    field(page).fill(text)
    page.get_by_role("button", name="Queue").click()


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message to the agent")


def queued(page: Page) -> Locator:
    return log(page).locator("[data-waiting=true]")


@pytest.fixture
def open_tabs(tabs: Tabs) -> Callable[[], tuple[Page, Page]]:
    """Ask something in one tab, and open the same conversation in another."""

    def open_both() -> tuple[Page, Page]:
        first = tabs.open("/chat")
        ask(first, "Begin")
        expect(first.get_by_role("button", name="Stop")).to_be_visible()
        expect(first).to_have_url(re.compile(r"/chat/\S+"))
        second = tabs.open(first.url)
        expect(second.get_by_role("button", name="Stop")).to_be_visible()
        return first, second

    return open_both


def test_queued_messages_are_shown_in_every_tab_until_their_turn_starts(
    answering: Callable[..., StepwiseServer], open_tabs: Callable[[], tuple[Page, Page]]
) -> None:
    model = answering("[{say: One.}, {say: Two.}, {say: Three.}]", StepwiseServer)
    tabs = first, _ = open_tabs()
    queue(first, "alpha")
    queue(first, "beta")
    for tab in tabs:
        expect(queued(tab)).to_have_text([re.compile("alpha"), re.compile("beta")])
    model.release()
    for tab in tabs:
        expect(log(tab).get_by_text("One.")).to_be_visible()
        expect(queued(tab)).to_have_text([re.compile("beta")])
        expect(log(tab).get_by_text("alpha")).to_have_count(1)
    model.release()
    model.release()
    for tab in tabs:
        expect(log(tab).get_by_text("Three.")).to_be_visible()
        expect(queued(tab)).to_have_count(0)
        expect(log(tab).get_by_text("beta")).to_have_count(1)


def test_after_stop_a_queued_message_returns_to_the_tab_that_sent_it(
    answering: Callable[..., HeldServer], open_tabs: Callable[[], tuple[Page, Page]]
) -> None:
    answering("[{say: One.}]", HeldServer)
    first, second = open_tabs()
    queue(first, "alpha")
    expect(queued(second)).to_have_text(re.compile("alpha"))
    queue(second, "beta")
    expect(queued(first)).to_have_count(2)
    second.get_by_role("button", name="Stop").click()
    for tab, text in ((first, "alpha"), (second, "beta")):
        expect(log(tab).get_by_text("Interrupted.")).to_be_visible()
        expect(queued(tab)).to_have_count(0)
        expect(field(tab)).to_have_value(text)


def test_a_queued_message_of_a_closed_tab_returns_to_the_other_one(
    answering: Callable[..., HeldServer], open_tabs: Callable[[], tuple[Page, Page]]
) -> None:
    answering("[{say: One.}]", HeldServer)
    first, second = open_tabs()
    queue(first, "alpha")
    expect(queued(second)).to_have_text(re.compile("alpha"))
    both = daemon_connections()
    first.close()
    wait_until(lambda: daemon_connections() < both)
    second.get_by_role("button", name="Stop").click()
    expect(field(second)).to_have_value("alpha")


def test_all_messages_that_the_agent_has_read_leave_the_queue_in_every_tab(
    answering: Callable[..., StepwiseServer], open_tabs: Callable[[], tuple[Page, Page]]
) -> None:
    call = "{name: terminal, arguments: {command: echo}}"
    model = answering(f"[{{calls: [{call}]}}, {{say: I heard it.}}]", StepwiseServer)
    tabs = first, _ = open_tabs()
    for text in ("alpha", "beta"):
        field(first).fill(text)
        first.get_by_role("button", name="Send now").click()
        expect(queued(first).filter(has_text=text)).to_be_visible()
    model.release()  # the agent reads both after the tool call, as one message
    for tab in tabs:
        expect(queued(tab)).to_have_count(0)
        expect(log(tab).locator("[data-waiting=false]")).to_have_text(
            ["Begin", re.compile("alpha\\s+beta")]
        )
    model.release()
    for tab in tabs:
        expect(log(tab).get_by_text("I heard it.")).to_be_visible()


def test_escape_that_ends_an_input_method_does_not_stop_the_turn(
    answering: Callable[..., HeldServer], page: Page
) -> None:
    model = answering("[{say: One.}]", HeldServer)
    page.goto("/chat")
    ask(page, "Begin")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    key = {"key": "Escape", "isComposing": True, "bubbles": True, "cancelable": True}
    field(page).dispatch_event("keydown", key)
    queue(page, "alpha")  # handled after a request to stop
    expect(queued(page)).to_have_text(re.compile("alpha"))
    model.release()
    expect(log(page).get_by_text("You said: alpha")).to_be_visible()
    expect(log(page).get_by_text("Interrupted.")).to_have_count(0)


def test_queued_messages_are_readable_in_the_dark(
    answering: Callable[..., HeldServer], tabs: Tabs
) -> None:
    answering("[{say: One.}]", HeldServer)
    page = tabs.open("/chat")
    page.get_by_role("button", name="Use dark theme").click()
    ask(page, "Begin")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    queue(page, "alpha")
    expect(queued(page)).to_be_visible()
    assert axe_violations(page, "wcag2a", "wcag2aa") == []
