"""Actions of messages on the chat page: copy, retry, edit, branch, versions, quote."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from support.browsers import DESKTOP, PHONE
from support.chat_browser import ask, log

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, WebSocketRoute

    from hermes_state import SessionDB
    from support.browsers import Tabs

IS_ON_TOP = """(button) => {
  const box = button.getBoundingClientRect();
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  return button.contains(document.elementFromPoint(x, y));
}"""


def test_an_answer_is_copied_quoted_and_retried_with_the_keyboard(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    set_model_steps("[{say: 'First **answer**.'}, {say: Second answer.}]")
    page.add_init_script(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; };"
    )
    page.goto("/chat")
    ask(page, "Tell me")
    expect(log(page).get_by_text("First answer.")).to_be_visible()
    log(page).get_by_role("button", name="Copy answer").press("Enter")
    page.wait_for_function("window.copied === 'First **answer**.'")
    log(page).get_by_role("button", name="Quote").press("Enter")
    field = page.get_by_role("textbox", name="Message to the agent")
    expect(field).to_have_value("> First **answer**.\n\n")
    expect(field).to_be_focused()
    log(page).get_by_role("button", name="Retry").press("Enter")
    expect(log(page).get_by_text("Second answer.")).to_be_visible()
    expect(log(page).get_by_text("First answer.")).to_have_count(0)
    expect(log(page).get_by_text("Tell me")).to_have_count(1)


def test_an_edited_prompt_is_a_branch_with_arrows_between_the_versions(
    set_model_steps: Callable[[str], str], page: Page, db: SessionDB
) -> None:
    set_model_steps("[]")  # the model echoes
    page.goto("/chat")
    for text in ("alpha", "beta", "gamma"):
        ask(page, text)
        expect(log(page).get_by_text(f"You said: {text}")).to_be_visible()
    first = page.url
    log(page).get_by_role("button", name="Edit and resend").nth(1).press("Enter")
    edited = log(page).get_by_role("textbox", name="Edit the message")
    expect(edited).to_be_focused()
    edited.fill("delta")
    edited.press("Enter")
    expect(log(page).get_by_text("You said: delta")).to_be_visible()
    expect(log(page).get_by_text("You said: alpha")).to_be_visible()
    expect(log(page).get_by_text("gamma")).to_have_count(0)
    assert page.url != first
    versions = log(page).get_by_role("group", name="Versions of this message")
    expect(versions).to_have_text("2 of 2")
    versions.get_by_role("link", name="Previous version").press("Enter")
    expect(log(page).get_by_text("You said: gamma")).to_be_visible()
    expect(log(page).get_by_text("You said: beta")).to_be_visible()
    expect(versions).to_have_text("1 of 2")
    assert page.url == first
    page.go_back()
    expect(log(page).get_by_text("You said: delta")).to_be_visible()
    page.go_back()  # the original, from which the edit started
    expect(log(page).get_by_text("You said: gamma")).to_be_visible()
    assert page.url == first
    page.reload()  # the edit of the first prompt, too, and of a reopened conversation
    log(page).get_by_role("button", name="Edit and resend").first.click()
    log(page).get_by_role("textbox", name="Edit the message").fill("omega")
    page.keyboard.press("Enter")
    expect(log(page).get_by_text("You said: omega")).to_be_visible()
    expect(log(page).get_by_text("alpha")).to_have_count(0)
    expect(versions).to_have_text("2 of 2")
    kept = [row["content"] for row in db.get_messages(first.rpartition("/")[2])]
    assert kept[0::2] == ["alpha", "beta", "gamma"]


def test_a_branch_continues_after_an_answer(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    set_model_steps("[]")
    page.goto("/chat")
    for text in ("alpha", "beta"):
        ask(page, text)
        expect(log(page).get_by_text(f"You said: {text}")).to_be_visible()
    log(page).get_by_role("button", name="Branch from here").first.click()
    expect(log(page).get_by_text("beta")).to_have_count(0)
    ask(page, "gamma")
    expect(log(page).get_by_text("You said: gamma")).to_be_visible()
    expect(log(page).get_by_role("group", name="Versions of this message")).to_have_text("2 of 2")
    page.go_back()
    expect(log(page).get_by_text("You said: beta")).to_be_visible()


def test_an_edited_prompt_that_cannot_be_sent_goes_to_the_composer(
    tabs: Tabs, set_model_steps: Callable[[str], str]
) -> None:
    set_model_steps("[]")

    def refuse_branches(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def forward(frame: str | bytes) -> None:
            request = json.loads(frame)
            if request["method"] == "session.branch":
                error = {"code": -32000, "message": "The disk is full."}
                socket.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            else:
                server.send(frame)

        socket.on_message(forward)

    page = tabs.new()
    page.route_web_socket(re.compile("/api/ws"), refuse_branches)
    page.goto("/chat")
    ask(page, "alpha")
    expect(log(page).get_by_text("You said: alpha")).to_be_visible()
    log(page).get_by_role("button", name="Edit and resend").click()
    log(page).get_by_role("textbox", name="Edit the message").fill("a long edit")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The disk is full.")
    expect(page.get_by_role("textbox", name="Message to the agent")).to_have_value("a long edit")


def test_a_copy_that_the_browser_refuses_is_reported(
    set_model_steps: Callable[[str], str], tabs: Tabs
) -> None:
    set_model_steps("[]")
    page = tabs.new()
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined });")
    page.goto("/chat")  # as without TLS, on another machine
    ask(page, "alpha")
    log(page).get_by_role("button", name="Copy answer").click()
    expect(page.get_by_role("alert")).to_contain_text("The text could not be copied")


def test_the_field_of_an_edit_takes_the_focus_once(
    set_model_steps: Callable[[str], str], tabs: Tabs
) -> None:
    set_model_steps("[]")
    page, other = tabs.open("/chat"), tabs.new()
    ask(page, "alpha")
    expect(log(page).get_by_text("You said: alpha")).to_be_visible()
    other.goto(page.url)
    log(page).get_by_role("button", name="Edit and resend").click()
    edited = log(page).get_by_role("textbox", name="Edit the message")
    edited.fill("half an edit")
    field = page.get_by_role("textbox", name="Message to the agent")
    field.focus()
    ask(other, "beta")
    expect(log(page).get_by_text("You said: beta")).to_be_visible()
    expect(field).to_be_focused()
    expect(edited).to_have_value("half an edit")


def test_a_notice_does_not_cover_the_buttons_of_the_composer(
    set_model_steps: Callable[[str], str], tabs: Tabs
) -> None:
    set_model_steps("[]")
    page = tabs.open("/chat")
    ask(page, "alpha")
    expect(log(page).get_by_text("You said: alpha")).to_be_visible()
    for size in (PHONE, DESKTOP):
        page.set_viewport_size(size)
        ask(page, "/nonsense")
        expect(page.get_by_role("alert")).to_contain_text("Unknown command: /nonsense.")
        assert page.get_by_role("button", name="Send", exact=True).evaluate(IS_ON_TOP)
        expect(page.get_by_role("alert")).to_have_count(0)  # it closes itself
