"""What the chat page shows beside the messages: usage, todo list, checkpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from hermes_core.config.file import ConfigFile
from support.browsers import axe_violations
from support.chat_browser import ask, log
from support.dashboards import wait_until

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


def test_the_steps_of_the_agent_are_shown_and_survive_a_reload(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    first = "{name: todo, arguments: {items: ['[>] read the code', '[ ] write a test']}}"
    second = "{name: todo, arguments: {items: ['[x] read the code', '[>] write a test']}}"
    steps = (f"{{calls: [{first}]}}", "{say: Reading.}", f"{{calls: [{second}]}}", "{say: Go.}")
    set_model_steps(f"[{', '.join(steps)}]")
    page.goto("/chat")
    ask(page, "Work")
    panel = page.get_by_label("Steps of the task")
    expect(panel).to_contain_text("0 of 2 steps done · read the code")
    ask(page, "More")
    expect(panel).to_contain_text("1 of 2 steps done · write a test")
    page.reload()
    panel.locator("summary").press("Enter")
    expect(panel.get_by_role("listitem")).to_have_text(["read the code", "write a test"])
    expect(panel.get_by_role("img", name="done")).to_have_count(1)
    page.get_by_role("link", name="New chat").click()
    expect(panel).to_have_count(0)


def test_a_checkpoint_is_restored_after_its_diff_was_shown(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    folder = Path.home() / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("old\n")
    (folder / "other.txt").write_text("same\n")
    calls = ", ".join(
        f"{{name: read_file, arguments: {{path: {name}}}}}, "
        f"{{name: write_file, arguments: {{path: {name}, content: {text!r}}}}}"
        for name, text in (("notes.txt", "new"), ("other.txt", "changed"))
    )
    set_model_steps(f"[{{calls: [{calls}]}}, {{say: Written.}}]")
    page.goto("/chat")
    chooser = page.get_by_role("button", name=re.compile("Working folder"))
    chooser.click()
    page.get_by_role("textbox", name="Folder on the machine").fill(str(folder))
    page.get_by_role("button", name="Use this folder").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(chooser).to_be_focused()  # as before the dialog
    ask(page, "Write")
    button = page.get_by_role("button", name="Changed files (1)")
    expect(button).to_be_visible()  # the turn is over
    (folder / "other.txt").write_text("mine\n")
    button.click()
    dialog = page.get_by_role("dialog", name="Changed files")
    dialog.get_by_role("button", name=re.compile("Write.*2 files", re.DOTALL)).click()
    expect(dialog.locator("[data-sign='+']").first).to_have_text("+ new")
    dialog.get_by_role("button", name="Restore…").click()
    expect(dialog.get_by_role("checkbox", name=re.compile("notes"))).to_be_checked()
    expect(dialog.get_by_role("checkbox", name=re.compile("other"))).not_to_be_checked()
    expect(dialog.locator("[data-sign='+']").first).to_have_text("+ old")
    assert axe_violations(page, "wcag2a", "wcag2aa") == []
    dialog.get_by_role("button", name="Restore 1 file").click()
    expect(dialog.get_by_role("status")).to_contain_text("1 file restored.")
    assert (folder / "notes.txt").read_text() == "old\n"
    dialog.get_by_role("button", name="Undo").click()
    wait_until(lambda: (folder / "notes.txt").read_text() == "new")
    assert (folder / "other.txt").read_text() == "mine\n"
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Changed files (3)")).to_be_visible()


def test_feedback_of_a_hook_is_no_message_of_the_user(
    set_model_steps: Callable[[str], str], page: Page, tmp_path: Path
) -> None:
    set_model_steps("[{say: First.}, {say: Second.}]")
    mark = tmp_path / "mark"
    command = f"test -e {mark} || {{ touch {mark}; echo 'write done' >&2; exit 2; }}"
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    with ConfigFile.of_home().path.open("a") as file:
        file.write(f"\nhooks: {json.dumps(hooks)}\n")
    page.goto("/chat")
    ask(page, "Begin")
    for _ in range(2):  # live, and reopened
        expect(log(page).get_by_text("Second.")).to_be_visible()
        expect(log(page).get_by_text("write done")).to_be_visible()
        expect(log(page).locator("[data-waiting]")).to_have_text(["Begin"])
        expect(log(page).get_by_role("button", name="Edit and resend")).to_have_count(1)
        page.reload()
    page.get_by_role("link", name="Open transcript").click()
    blocks = page.get_by_label("Conversation messages").get_by_role("article")
    expect(blocks.filter(has_text="write done").locator("header strong")).to_have_text("Hook")
    expect(blocks.filter(has_text="Begin").locator("header strong")).to_have_text("You")
