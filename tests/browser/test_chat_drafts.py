"""Drafts of the chat page: text and files that are not sent yet, by conversation."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.chat_browser import ask, log
from support.images import PIXEL
from support.model_servers import HeldServer, StepwiseServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page, WebSocketRoute

    from hermes_state import SessionDB
    from support.browsers import Tabs, Visitor


@pytest.fixture
def two_conversations(set_model_steps: Callable[[str], str], db: SessionDB) -> None:
    """Conversations about bees and wasps, with a model that echoes."""
    set_model_steps("[]")
    for name in ("bees", "wasps"):
        db.create_session(name, "cli", is_owned=False)
        db.append_message(name, "user", f"About {name}")


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message to the agent")


def open_recent(page: Page, name: str) -> None:
    recent = page.get_by_role("navigation", name="Recent conversations")
    recent.get_by_role("link", name=name).click()
    expect(log(page).get_by_text(f"About {name}")).to_be_visible()


def attach(page: Page, *paths: Path) -> None:
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Attach files").click()
    choosing.value.set_files(paths)
    for path in paths:
        expect(page.get_by_role("button", name=f"Remove {path.name}")).to_be_visible()


@pytest.mark.usefixtures("two_conversations")
def test_a_draft_belongs_to_its_conversation_and_outlasts_a_reload(page: Page) -> None:
    page.goto("/chat/bees")
    expect(log(page).get_by_text("About bees")).to_be_visible()
    field(page).fill("half a thought")
    open_recent(page, "wasps")
    expect(field(page)).to_have_value("")
    page.go_back()
    expect(field(page)).to_have_value("half a thought")
    page.reload()
    expect(field(page)).to_have_value("half a thought")
    page.get_by_role("link", name="New chat").click()
    expect(field(page)).to_have_value("")
    ask(page, "Read this")
    expect(log(page).get_by_text("You said: Read this")).to_be_visible()
    page.get_by_role("link", name="New chat").click()
    expect(page).to_have_url(re.compile(r"/chat$"))
    expect(field(page)).to_have_value("")


@pytest.mark.usefixtures("two_conversations")
def test_attached_files_stay_with_the_draft_of_their_conversation(
    page: Page, db: SessionDB, tmp_path: Path
) -> None:
    picture, notes = tmp_path / "dot.png", tmp_path / "notes.txt"
    picture.write_bytes(PIXEL)
    notes.write_text("remember the milk")
    page.goto("/chat/bees")
    expect(log(page).get_by_text("About bees")).to_be_visible()
    attach(page, picture, notes)
    chips = page.get_by_role("button", name=re.compile("^Remove "))
    open_recent(page, "wasps")
    expect(chips).to_have_count(0)
    ask(page, "No picture here")
    # The model gets both prompts as one message: nothing was answered between them.
    expect(log(page).get_by_role("article").get_by_text("No picture here")).to_be_visible()
    open_recent(page, "bees")
    expect(chips).to_have_count(2)
    page.reload()
    expect(chips).to_have_count(2)
    ask(page, "What is it?")
    expect(log(page).get_by_text("You said: [")).to_be_visible()
    expect(chips).to_have_count(0)
    page.reload()
    expect(log(page).get_by_role("img", name="Attached image")).to_have_count(1)
    assert "image_url" not in str([row["content"] for row in db.get_messages("wasps")])


@pytest.mark.usefixtures("two_conversations")
def test_a_picture_stays_attached_while_a_command_is_run(page: Page, tmp_path: Path) -> None:
    picture = tmp_path / "dot.png"
    picture.write_bytes(PIXEL)
    page.goto("/chat/bees")
    attach(page, picture)
    ask(page, "/status")
    expect(log(page).get_by_text("bees").last).to_be_visible()
    expect(page.get_by_role("button", name="Remove dot.png")).to_be_visible()
    ask(page, "What is it?")
    expect(log(page).get_by_role("img", name="Attached image")).to_have_count(1)


@pytest.mark.usefixtures("two_conversations")
def test_an_image_that_cannot_be_used_is_refused_when_it_is_attached(
    visitor: Visitor, page: Page, tmp_path: Path
) -> None:
    visitor.problems.allow("status of 400")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    page.goto("/chat/bees")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Attach files").click()
    choosing.value.set_files(broken)
    notice = page.get_by_role("alert").filter(has_text="Could not attach broken.png")
    expect(notice).to_contain_text("not a readable image")
    expect(page.get_by_role("button", name="Remove broken.png")).to_have_count(0)


@pytest.mark.usefixtures("two_conversations")
def test_a_send_that_fails_after_a_switch_returns_to_the_draft_of_its_conversation(
    tabs: Tabs, db: SessionDB
) -> None:
    sockets: list[WebSocketRoute] = []
    held: list[str] = []

    def hold_messages(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def forward(frame: str | bytes) -> None:
            if json.loads(frame)["method"] == "session.steer":
                held.append(str(frame))
            else:
                server.send(frame)

        sockets.append(socket)
        socket.on_message(forward)

    page = tabs.new()
    page.route_web_socket(re.compile("/api/ws"), hold_messages)
    page.goto("/chat/bees")
    expect(log(page).get_by_text("About bees")).to_be_visible()
    ask(page, "Do they sting?")
    expect(field(page)).to_have_value("")
    open_recent(page, "wasps")
    field(page).fill("A wasp thought")
    assert len(held) == 1
    sockets[-1].close()
    notice = page.get_by_role("alert").filter(has_text="The message to “About bees” was not sent")
    expect(notice).to_contain_text("Connection lost.")
    expect(field(page)).to_have_value("A wasp thought")
    open_recent(page, "bees")
    expect(field(page)).to_have_value("Do they sting?")
    assert "sting" not in str(db.get_messages("wasps"))


def test_a_picture_that_is_sent_during_a_turn_goes_with_its_own_message(
    answering: Callable[..., HeldServer], page: Page, db: SessionDB, tmp_path: Path
) -> None:
    picture = tmp_path / "dot.png"
    picture.write_bytes(PIXEL)
    call = "{name: terminal, arguments: {command: echo}}"
    model = answering(f"[{{calls: [{call}]}}, {{say: One.}}, {{say: Two.}}]", HeldServer)
    page.goto("/chat")
    ask(page, "Begin")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    attach(page, picture)
    field(page).fill("What is it?")
    page.get_by_role("button", name="Send now").click()
    expect(log(page).locator("[data-waiting=true]")).to_be_visible()
    model.release()
    expect(log(page).get_by_text("Two.")).to_be_visible()
    rows = db.get_messages(page.url.rpartition("/")[2])
    prompts = [str(row["content"]) for row in rows if row["role"] == "user"]
    assert len(prompts) == 2
    assert "What is it?" in prompts[1]
    assert "image_url" in prompts[1]
    expect(log(page).get_by_role("img", name="Attached image")).to_have_count(1)


def queue(page: Page, text: str) -> None:
    field(page).fill(text)
    page.get_by_role("button", name="Queue").click()
    expect(log(page).locator("[data-waiting=true]").filter(has_text=text)).to_be_visible()


def prompts_of(db: SessionDB, page: Page) -> list[str]:
    rows = db.get_messages(page.url.rpartition("/")[2])
    return [str(row["content"]) for row in rows if row["role"] == "user"]


def test_after_stop_the_picture_of_a_queued_message_returns_with_it(
    answering: Callable[..., HeldServer], page: Page, db: SessionDB, tmp_path: Path
) -> None:
    picture = tmp_path / "dot.png"
    picture.write_bytes(PIXEL)
    answering("[{say: One.}, {say: Two.}, {say: Three.}]", HeldServer)
    page.goto("/chat")
    ask(page, "Begin")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    attach(page, picture)
    queue(page, "What is it?")
    page.get_by_role("button", name="Stop").click()
    expect(field(page)).to_have_value("What is it?")
    chip = page.get_by_role("button", name="Remove dot.png")
    expect(chip).to_be_visible()
    chip.click()
    ask(page, "Without it")
    expect(log(page).get_by_text("Two.")).to_be_visible()
    assert "image_url" not in str(prompts_of(db, page))


def test_pictures_go_with_the_queued_message_they_were_attached_to(
    answering: Callable[..., StepwiseServer], page: Page, db: SessionDB, tmp_path: Path
) -> None:
    picture = tmp_path / "dot.png"
    picture.write_bytes(PIXEL)
    model = answering("[{say: One.}, {say: Two.}, {say: Three.}]", StepwiseServer)
    page.goto("/chat")
    ask(page, "Begin")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    queue(page, "alpha")
    attach(page, picture)
    queue(page, "beta")
    image = log(page).get_by_role("img", name="Attached image")
    model.release()
    expect(log(page).get_by_text("One.")).to_be_visible()
    model.release()
    expect(log(page).get_by_text("Two.")).to_be_visible()
    model.release()
    expect(log(page).get_by_text("Three.")).to_be_visible()
    expect(image).to_have_count(1)
    assert ["image_url" in prompt for prompt in prompts_of(db, page)] == [False, False, True]
    page.reload()
    expect(image).to_have_count(1)


@pytest.mark.usefixtures("two_conversations")
def test_a_new_conversation_without_messages_can_be_opened_again(page: Page) -> None:
    sent: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda text: sent.append(str(text))))
    page.goto("/chat/bees")
    expect(log(page).get_by_text("About bees")).to_be_visible()
    ask(page, "/new")
    expect(page).not_to_have_url(re.compile("bees"))
    expect(log(page).get_by_text("About bees")).to_have_count(0)
    field(page).fill("a beginning")
    address = page.url
    page.go_back()
    expect(log(page).get_by_text("About bees")).to_be_visible()
    page.go_forward()
    expect(page).to_have_url(address)
    expect(field(page)).to_have_value("a beginning")
    expect(page.get_by_role("combobox", name="Permission mode")).to_be_visible()  # it is open
    page.reload()
    expect(field(page)).to_have_value("a beginning")
    expect(page.get_by_role("combobox", name="Permission mode")).to_be_visible()
    page.get_by_role("button", name="Send").click()
    expect(log(page).get_by_text("You said: a beginning")).to_be_visible()
    expect(page).to_have_url(address)
    expect(page.get_by_text("No session")).to_have_count(0)
    assert any("session.create" in frame for frame in sent)
    assert not any("accept_home" in frame for frame in sent)  # only the user confirms it
