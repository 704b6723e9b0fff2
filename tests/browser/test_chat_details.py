"""What the chat page shows beside the messages: usage, todo list, checkpoints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from support.chat_browser import ask, log

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page


def test_each_answer_shows_its_tokens_cost_and_time(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    call = "{name: todo, arguments: {items: ['[ ] look']}}"
    set_model_steps(f"[{{calls: [{call}], cost: 0.004}}, {{say: Done., cost: 0.0085}}]")
    page.goto("/chat")
    ask(page, "Look")
    line = log(page).get_by_role("button", name=re.compile(r"Usage of this answer: .*\$0\.013, "))
    expect(line).to_have_text(re.compile(r"in, .* out.*\$0\.013.* s$"))
    for _ in range(2):  # live, and reopened
        line.press("Enter")
        details = page.get_by_role("dialog")
        expect(details.get_by_role("row", name=re.compile("^Requests"))).to_have_text("Requests2")
        expect(details.get_by_role("row", name="Model scripted")).to_be_visible()
        page.reload()
        expect(line).to_be_visible()
    page.get_by_role("link", name="Open transcript").click()
    blocks = page.get_by_label("Conversation messages")
    expect(blocks.get_by_role("button", name=re.compile(r"Usage of .*\$0\.013"))).to_be_visible()
