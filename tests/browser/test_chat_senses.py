"""The chat page beyond typing: speech, and news while another tab is open."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from hermes_core.config.file import ConfigFile
from support.chat_browser import ask, log

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.browsers import Tabs, Visitor

FIELD = "Message to the agent"
# The page believes to be in the background as long as `isAway` is set; notifications are recorded.
BACKGROUND = """
window.isAway = false;
window.shown = [];
Object.defineProperty(document, "hidden", { get: () => window.isAway });
window.leave = (isAway) => {
  window.isAway = isAway;
  document.dispatchEvent(new Event("visibilitychange"));
};
window.Notification = class extends window.Notification {
  static permission = "granted"; // the browser without a window says denied, whatever was granted
  constructor(title, options) { super(title, options); window.shown.push([title, options.body]); }
};
"""


def test_speech_becomes_text_in_the_field(
    set_model_steps: Callable[[str], str], tabs: Tabs
) -> None:
    set_model_steps("[]")
    page = tabs.new()
    page.goto("/chat")
    field = page.get_by_role("textbox", name=FIELD)
    expect(field).to_be_visible()
    microphone = page.get_by_role("button", name="Dictate")
    expect(microphone).to_have_count(0)  # no transcriber is configured
    ConfigFile.of_home().set("gateway.transcribe_command", "sh -c 'test -s $0 && echo milk'")
    page.reload()
    field.fill("Buy")
    microphone.click()
    page.get_by_role("button", name="Stop recording").click()
    expect(field).to_have_value("Buy milk")
    expect(field).to_be_focused()
    expect(microphone).to_be_enabled()


def test_an_answer_in_a_background_tab_is_a_notification_after_a_click_and_a_mark_in_the_title(
    set_model_steps: Callable[[str], str], new_visitor: Visitor
) -> None:
    set_model_steps("[{say: First.}, {say: Second.}, {say: Third.}]")
    new_visitor.context.grant_permissions(["notifications"])
    page = new_visitor.context.new_page()
    page.add_init_script(BACKGROUND)
    page.goto("/chat")
    ask(page, "one")
    expect(log(page).get_by_text("First.")).to_be_visible()
    page.evaluate("leave(true)")
    ask(page, "two")
    expect(page).to_have_title(re.compile("^● "))
    assert page.evaluate("shown") == []  # nobody has asked for notifications
    page.evaluate("leave(false)")
    expect(page).not_to_have_title(re.compile("^● "))
    page.get_by_role("button", name="Notify when an answer is ready").click()
    button = page.get_by_role("button", name="Notify when an answer is ready", pressed=True)
    expect(button).to_be_visible()
    page.evaluate("leave(true)")
    ask(page, "three")
    page.wait_for_function("() => window.shown.length === 1")
    assert page.evaluate("shown") == [["Answer ready", "Third."]]


def test_a_missing_or_refused_microphone_is_explained(
    set_model_steps: Callable[[str], str], tabs: Tabs
) -> None:
    set_model_steps("[]")
    ConfigFile.of_home().set("gateway.transcribe_command", "echo milk")
    page = tabs.open("/chat")
    reasons = {
        "NotFoundError": "No microphone was found.",
        "NotAllowedError": "The browser does not allow the microphone for this page.",
    }
    for name, text in reasons.items():
        refuse = f"async () => {{ throw new DOMException('refused', '{name}'); }}"
        page.evaluate(f"() => {{ navigator.mediaDevices.getUserMedia = {refuse}; }}")
        page.get_by_role("button", name="Dictate").click()
        expect(page.get_by_role("alert").filter(has_text=text)).to_be_visible()
        expect(page.get_by_role("button", name="Dictate")).to_be_enabled()
