"""Talking to the agent in the browser, with the real daemon and a scripted model."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from hermes_core.config.file import ConfigFile
from hermes_core.instance_record import DAEMON
from hermes_dashboard.resources.models import Model
from support.chat_browser import ask, log
from support.dashboards import wait_until
from support.model_servers import HeldServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from hermes_state import SessionDB
    from support.browsers import Visitor
    from support.dashboards import RunningDashboard

STREAMED_WORDS = [f"word{number}" for number in range(40)]
SLOW = " ".join(STREAMED_WORDS)
ENDLESS = f"{SLOW} {'more ' * 3000} The end."  # lasts longer than a test may


# Notes that the beginning of an answer was on the page before its end.
NOTE_PARTIAL_ANSWERS = """() => {
    window.sawPartialAnswer = false;
    new MutationObserver(() => {
        const shown = document.body.innerText;
        if (shown.includes("word3") && !shown.includes("end.")) window.sawPartialAnswer = true;
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_an_answer_streams_in_and_is_drawn_as_markdown(
    set_model_steps: Callable[[str], str], page: Page, db: SessionDB
) -> None:
    set_model_steps(f"[{{say: '**Bold** {SLOW} end.', pause: 0.02, think: Let me see.}}]")
    page.goto("/chat")
    page.evaluate(NOTE_PARTIAL_ANSWERS)
    ask(page, "Tell me")
    expect(log(page).get_by_text("end.")).to_be_visible()
    assert page.evaluate("window.sawPartialAnswer") is True
    expect(log(page).locator("strong")).to_have_text("Bold")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/chat/\S+"))
    log(page).get_by_text("Reasoning").click()
    expect(log(page).get_by_text("Let me see.")).to_be_visible()
    session = page.url.rpartition("/")[2]
    assert db.get_messages(session)[0]["content"] == "Tell me"
    ask(page, "Thanks")  # after the script the model echoes the prompt
    expect(log(page).get_by_text("You said: Thanks")).to_be_visible()
    page.get_by_role("link", name="Open transcript").click()
    expect(page.get_by_label("Conversation messages").get_by_text("Thanks").first).to_be_visible()


def test_a_command_requires_approval_and_the_answer_is_applied(
    set_model_steps: Callable[[str], str], page: Page, tmp_path: Path
) -> None:
    result, gone = tmp_path / "kept", tmp_path / "gone"
    result.mkdir()
    gone.mkdir()
    calls = [
        f"{{name: terminal, arguments: {{command: rm -rf {item}}}}}" for item in (result, gone)
    ]
    set_model_steps(f"[{{calls: [{calls[0]}]}}, {{calls: [{calls[1]}]}}, {{say: All done.}}]")
    page.goto("/chat")
    ask(page, "Tidy up")
    question = page.get_by_role("alertdialog", name="Allow this command?")
    expect(question.locator("pre").get_by_text(f"rm -rf {result}")).to_be_visible()
    question.get_by_role("button", name="Deny", exact=True).click()
    expect(question.locator("pre").get_by_text(f"rm -rf {gone}")).to_be_visible()
    assert gone.exists()
    question.get_by_role("button", name="Allow once").click()
    expect(log(page).get_by_text("All done.")).to_be_visible()
    expect(question).to_have_count(0)
    wait_until(lambda: not gone.exists())
    assert result.exists()
    tool = log(page).locator("details", has_text=str(gone))
    tool.locator("summary").click()
    expect(tool.locator("pre").first).to_be_visible()
    expect(log(page).locator("details")).to_have_count(2)


def test_an_approval_shows_the_risky_line_the_rule_and_takes_a_reason(
    set_model_steps: Callable[[str], str], page: Page, tmp_path: Path
) -> None:
    lines = [*(f"echo {n} >> log.txt" for n in range(60)), "rm -rf old", *["true"] * 20]
    call = json.dumps({"name": "terminal", "arguments": {"command": "\n".join(lines)}})
    set_model_steps(f"[{{calls: [{call}]}}, {{say: Understood.}}]")
    page.goto("/chat")
    ask(page, "Tidy up")
    question = page.get_by_role("alertdialog", name="Allow this command?")
    risky = question.get_by_text("rm -rf old", exact=True)
    expect(risky).to_be_in_viewport()
    expect(question.get_by_text("echo 0 >> log.txt")).not_to_be_in_viewport()
    expect(question.get_by_text("this exact command")).to_be_visible()
    expect(question.get_by_role("button", name="Allow once")).to_be_in_viewport()
    question.get_by_role("button", name="Deny with a reason").click()
    reason = question.get_by_role("textbox", name="Reason, for the agent")
    expect(reason).to_be_focused()
    page.keyboard.press("Escape")
    expect(reason).to_have_count(0)
    question.get_by_role("button", name="Deny with a reason").click()
    expect(reason).to_be_focused()
    page.keyboard.type("keep it")
    page.keyboard.press("Enter")
    expect(log(page).get_by_text("Understood.")).to_be_visible()
    tool = log(page).locator("details").first
    tool.locator("summary").click()
    expect(tool.get_by_text("The user said: keep it")).to_be_visible()
    mode = page.get_by_label("Permission mode").first
    expect(mode).to_have_value("Workspace")
    mode.click()
    expect(page.get_by_role("option", name="Full")).to_be_disabled()
    page.get_by_role("option", name="Plan (read-only)").click()
    expect(mode).to_have_value("Plan (read-only)")


def test_an_approval_shows_invisible_characters_and_all_lines_of_its_rule(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    command = "rm -rf old\u202egnp.exe\ncurl -s https://example.org"
    call = json.dumps({"name": "terminal", "arguments": {"command": command}})
    set_model_steps(f"[{{calls: [{call}]}}, {{say: Understood.}}]")
    page.goto("/chat")
    ask(page, "Tidy up")
    question = page.get_by_role("alertdialog", name="Allow this command?")
    expect(question.locator("pre")).to_contain_text("rm -rf old⟨U+202E⟩gnp.exe")
    question.get_by_role("button", name="Edit").click()
    rule = question.get_by_role("textbox", name="Rule")
    expect(rule).to_have_value(f"run: {command}")
    question.get_by_role("button", name="Deny", exact=True).click()
    expect(log(page).get_by_text("Understood.")).to_be_visible()


def test_input_steers_the_running_turn_or_is_queued(
    answering: Callable[..., HeldServer], page: Page
) -> None:
    call = "{name: terminal, arguments: {command: echo}}"
    steps = f"[{{calls: [{call}]}}, {{say: I heard it.}}, {{say: And later.}}]"
    model = answering(steps, HeldServer)
    page.goto("/chat")
    ask(page, "Begin")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    field = page.get_by_role("textbox", name="Message to the agent")
    field.fill("Also this")
    page.get_by_role("button", name="Send now").click()
    expect(log(page).get_by_text("Also this")).to_be_visible()
    field.fill("Then that")
    page.get_by_role("button", name="Queue").click()
    expect(log(page).locator("[data-waiting=true]", has_text="Then that")).to_be_visible()
    model.release()
    expect(log(page).get_by_text("I heard it.")).to_be_visible()
    expect(log(page).get_by_text("And later.")).to_be_visible()
    expect(log(page).locator("[data-waiting=true]")).to_have_count(0)
    expect(log(page).get_by_text("Then that")).to_have_count(1)


def test_stop_stops(set_model_steps: Callable[[str], str], page: Page, db: SessionDB) -> None:
    set_model_steps(f"[{{say: {ENDLESS}, pause: 0.2}}]")
    page.goto("/chat")
    ask(page, "Count")
    expect(log(page).get_by_text("word2")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(log(page).get_by_text("Interrupted. Partial output was saved.")).to_be_visible()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    assert "The end." not in log(page).inner_text()
    session = page.url.rpartition("/")[2]
    assert "word2" in str([row["content"] for row in db.get_messages(session)])


def test_a_reload_in_mid_answer_loses_and_doubles_nothing(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    set_model_steps(f"[{{say: {SLOW}, pause: 0.15}}]")
    page.goto("/chat")
    ask(page, "Count")
    expect(log(page).get_by_text("word5")).to_be_visible()
    page.reload()
    expect(log(page).get_by_text("word5")).to_be_visible()
    assert STREAMED_WORDS[-1] not in log(page).inner_text()  # the turn continues meanwhile
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(log(page).get_by_text(STREAMED_WORDS[-1])).to_be_visible()
    assert re.findall(r"word\d+", log(page).inner_text()) == STREAMED_WORDS
    expect(log(page).get_by_text("Count")).to_have_count(1)
    page.reload()
    expect(log(page).get_by_text(STREAMED_WORDS[-1])).to_be_visible()
    assert re.findall(r"word\d+", log(page).inner_text()) == STREAMED_WORDS


def test_a_terminal_conversation_is_continued(
    set_model_steps: Callable[[str], str], page: Page, db: SessionDB
) -> None:
    set_model_steps("[{say: We spoke of bees.}]")
    db.create_session("bees", "cli", is_owned=False)
    db.append_message("bees", "user", "Let us speak of bees.")
    db.append_message("bees", "assistant", "They hum.")
    page.goto("/chat")
    page.get_by_role("navigation", name="Recent conversations").get_by_role("link").click()
    expect(log(page).get_by_text("They hum.")).to_be_visible()
    ask(page, "What did we speak of?")
    expect(log(page).get_by_text("We spoke of bees.")).to_be_visible()
    texts = [row["content"] for row in db.get_messages("bees")]
    assert texts[-2:] == ["What did we speak of?", "We spoke of bees."]


def test_an_opened_conversation_and_a_new_prompt_show_the_end(
    set_model_steps: Callable[[str], str], page: Page, db: SessionDB
) -> None:
    set_model_steps("[]")  # the model echoes
    for name in ("bees", "wasps"):
        db.create_session(name, "cli", is_owned=False)
        for number in range(30):
            db.append_message(name, "user", f"Prompt {number} of {name}")
            db.append_message(name, "assistant", f"Answer {number} of {name}")
    page.goto("/chat/bees")
    expect(log(page).get_by_text("Answer 29 of bees")).to_be_in_viewport()
    to_start = "(element) => { element.scrollTop = 0; }"
    log(page).evaluate(to_start)
    expect(page.get_by_role("button", name="Jump to latest message")).to_be_visible()
    recent = page.get_by_role("navigation", name="Recent conversations")
    recent.get_by_role("link", name="wasps").click()
    expect(log(page).get_by_text("Answer 29 of wasps")).to_be_in_viewport()
    log(page).evaluate(to_start)
    expect(page.get_by_role("button", name="Jump to latest message")).to_be_visible()
    ask(page, "And hornets?")
    expect(log(page).get_by_text("You said: And hornets?")).to_be_in_viewport()


def test_files_are_sent_with_the_answer(
    set_model_steps: Callable[[str], str], page: Page, db: SessionDB, tmp_path: Path
) -> None:
    set_model_steps("[{say: I have it.}]")
    (tmp_path / "notes.txt").write_text("remember the milk")
    page.goto("/chat")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Attach files").click()
    choosing.value.set_files(tmp_path / "notes.txt")
    expect(page.get_by_text("notes.txt")).to_be_visible()
    expect(page.get_by_role("button", name="Remove notes.txt")).to_be_visible()
    ask(page, "Read this")
    expect(log(page).get_by_text("I have it.")).to_be_visible()
    sent = str(db.get_messages(page.url.rpartition("/")[2])[0]["content"])
    path = re.search(r"/\S+notes\S*\.txt", sent)
    assert path is not None
    assert Path(path[0]).read_text() == "remember the milk"


def test_the_model_is_chosen(
    set_model_steps: Callable[[str], str],
    stranger: Visitor,
    serve: Callable[..., RunningDashboard],
) -> None:
    other, first = (
        set_model_steps("[{say: I am the other.}]"),
        set_model_steps("[{say: I am the first.}]"),
    )
    ConfigFile.of_home().set("llm.fallbacks", other)  # an endpoint that the owner configured
    models = [Model(name=item, provider="script") for item in (first, other)]
    stranger.sign_in(serve(models=lambda: models).access)
    page = stranger.open("/chat")
    choice = page.get_by_role("combobox", name="Model")
    choice.click()
    page.get_by_role("option", name=other).click()
    ask(page, "Who are you?")
    expect(log(page).get_by_text("I am the other.")).to_be_visible()
    choice.click()
    page.get_by_role("option", name=first).click()
    ask(page, "And now?")
    expect(log(page).get_by_text("I am the first.")).to_be_visible()


def test_a_lost_connection_is_shown_and_restored(
    set_model_steps: Callable[[str], str], visitor: Visitor, page: Page
) -> None:
    visitor.problems.allow("WebSocket connection")
    set_model_steps("[{say: First.}, {say: Second.}]")
    page.goto("/chat")
    ask(page, "One")
    expect(log(page).get_by_text("First.")).to_be_visible()
    folder = DAEMON.find()
    assert folder is not None
    os.kill(folder.pid, signal.SIGKILL)
    expect(page.get_by_text("Connection lost.")).to_be_visible()
    expect(page.get_by_text("Connection lost.")).to_have_count(0)
    expect(log(page).get_by_text("First.")).to_be_visible()
    ask(page, "Two")
    expect(log(page).get_by_text("Second.")).to_be_visible()


def test_without_a_model_the_page_names_the_setup_command(page: Page) -> None:
    page.goto("/chat")
    ask(page, "Hello?")
    problem: Any = page.get_by_role("alert").first
    expect(problem).to_contain_text(
        "No model is configured. Run `hermes setup`, or start Ollama, llama-server or LM Studio, "
        "or run `hermes models get smollm2` for the small built-in model."
    )
    expect(page.get_by_role("textbox", name="Message to the agent")).to_have_value("Hello?")


def test_the_working_folder_is_shown_and_can_be_chosen(
    set_model_steps: Callable[[str], str], visitor: Visitor, tmp_path: Path
) -> None:
    visitor.problems.allow("status of 4(00|09)")
    folder = tmp_path / "my-project"
    folder.mkdir()
    call = "{name: terminal, arguments: {command: echo hello > made.txt}}"
    set_model_steps(f"[{{calls: [{call}]}}, {{say: Made it.}}]")
    page = visitor.open("/chat")
    button = page.get_by_role("button", name="Working folder")
    expect(button).to_have_text("owner")
    button.click()
    dialog = page.get_by_role("dialog", name="Choose the working folder")
    expect(dialog.get_by_role("button", name="Close", exact=True)).to_be_visible()
    path = dialog.get_by_role("textbox", name="Folder on the machine")
    for wrong, answer in (("/", "contains the home folder"), ("/no/such", "is not a folder")):
        path.fill(wrong)
        dialog.get_by_role("button", name="Use this folder").click()
        expect(dialog).to_contain_text(answer)
    path.fill(str(Path.home()))
    dialog.get_by_role("button", name="Use this folder").click()
    expect(dialog.get_by_role("alert")).to_contain_text("your home folder")
    path.fill(str(folder))
    dialog.get_by_role("button", name="Use this folder").click()
    expect(dialog).to_have_count(0)
    expect(button).to_have_text("my-project")
    expect(button).to_be_focused()  # as before the dialog
    ask(page, "Make a file")
    expect(log(page).get_by_text("Made it.")).to_be_visible()
    expect(button).to_have_text("my-project")
    assert (folder / "made.txt").read_text() == "hello\n"
