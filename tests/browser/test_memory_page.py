"""Memory, skills and scheduled jobs in the browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from hermes_agent.memory.facts import AgentMemory
from hermes_conversation.scheduled_jobs import JobRequest, create_job, local_requester
from support.command_line import run_hermes

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from hermes_state import SessionDB
    from support.browsers import Visitor


def test_an_entry_is_edited_removed_and_put_back(db: SessionDB, visitor: Visitor) -> None:
    memory = AgentMemory(db)
    memory.add("user", "Likes tea.")
    memory.add("user", "Lives in Oslo.")
    page = visitor.open("/memory")
    panel = page.get_by_role("region", name="About you")
    panel.get_by_role("button", name="Remove: Likes tea.").click()
    expect(panel.get_by_text("Likes tea.")).to_have_count(0)
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(panel.get_by_text("Likes tea.")).to_be_visible()
    assert memory.entries("user") == ["Likes tea.", "Lives in Oslo."]
    panel.get_by_role("button", name="Edit: Lives in Oslo.").click()
    panel.get_by_role("textbox", name="Entry").fill("Lives in Bergen.")
    panel.get_by_role("button", name="Save").click()
    expect(panel.get_by_role("button", name="Edit: Lives in Bergen.")).to_be_visible()
    work = page.get_by_role("region", name="About the work")
    expect(work.get_by_text("Nothing yet.")).to_be_visible()
    work.get_by_role("button", name="Add an entry").click()
    work.get_by_role("textbox", name="New entry: About the work").fill("Use make.")
    work.get_by_role("button", name="Save").click()
    expect(work.get_by_role("button", name="Edit: Use make.")).to_be_visible()
    assert memory.entries("user") == ["Likes tea.", "Lives in Bergen."]
    assert memory.entries("memory") == ["Use make."]


def test_the_focus_follows_an_entry_that_is_written_with_the_keyboard(visitor: Visitor) -> None:
    visitor.problems.allow("status of 400")
    page = visitor.open("/memory")
    panel = page.get_by_role("region", name="About you")
    add = panel.get_by_role("button", name="Add an entry")
    add.focus()
    page.keyboard.press("Enter")
    field = panel.get_by_role("textbox", name="New entry: About you")
    expect(field).to_be_focused()
    field.fill("x" * 5000)
    panel.get_by_role("button", name="Save").click()
    expect(field).to_have_accessible_description(re.compile("is the limit"))
    expect(field).to_be_focused()
    expect(field).to_have_value("x" * 5000)
    field.fill("Likes tea.")
    expect(field).to_have_accessible_description("")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    edit = panel.get_by_role("button", name="Edit: Likes tea.")
    expect(edit).to_be_visible()
    expect(add).to_be_focused()
    edit.focus()
    page.keyboard.press("Enter")
    expect(panel.get_by_role("textbox", name="Entry")).to_be_focused()
    panel.get_by_role("button", name="Cancel").click()
    expect(edit).to_be_focused()


def test_a_change_that_the_agent_made_meanwhile_is_shown_instead(
    db: SessionDB, visitor: Visitor
) -> None:
    visitor.problems.allow("status of 409")
    memory = AgentMemory(db)
    memory.add("user", "Likes tea.")
    page = visitor.open("/memory")
    panel = page.get_by_role("region", name="About you")
    expect(panel.get_by_text("Likes tea.")).to_be_visible()
    memory.rewrite("user", ["Likes tea."], ["Likes coffee."])
    panel.get_by_role("button", name="Remove: Likes tea.").click()
    expect(page.get_by_role("alert").filter(has_text="changed meanwhile")).to_be_visible()
    expect(panel.get_by_text("Likes coffee.")).to_be_visible()
    assert memory.entries("user") == ["Likes coffee."]


def test_a_skill_is_read(page: Page, hermes_home: Path) -> None:
    page.goto("/memory")
    expect(page.get_by_text("No skills yet.")).to_be_visible()
    folder = hermes_home / "skills" / "tidy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\ndescription: Tidies.\n---\nFirst *look*.")
    page.reload()
    page.get_by_role("button", name="tidy").click()
    expect(page.get_by_role("emphasis")).to_have_text("look")


@pytest.mark.clock
def test_a_job_is_requested_paused_and_deleted(visitor: Visitor, db: SessionDB) -> None:
    visitor.problems.allow("status of 400")
    page = visitor.open("/schedules")
    expect(page.get_by_role("heading", name="No scheduled jobs")).to_be_visible()
    page.get_by_role("button", name="Add a job").click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="When").fill("now and then")
    form.get_by_role("textbox", name="What to do").fill("Read the news")
    form.get_by_role("button", name="Request the job").click()
    expect(form.get_by_role("textbox", name="When")).to_have_attribute("aria-invalid", "true")
    expect(form).to_contain_text("now and then")
    form.get_by_role("textbox", name="When").fill("daily 8:00")
    form.get_by_role("button", name="Request the job").click()
    changes = page.get_by_role("region", name="Changes to confirm")
    expect(changes).to_contain_text("daily 8:00: Read the news")
    code = (changes.get_by_text("dashboard confirm").text_content() or "").split()[-1]
    assert run_hermes("dashboard", "confirm", code, "--yes").code == 0
    job = page.get_by_role("region", name="Read the news")
    expect(job.get_by_text("active")).to_be_visible()
    expect(page.get_by_text("The gateway is not running: jobs wait")).to_be_visible()
    job.get_by_role("button", name="Pause").click()
    expect(job.get_by_text("paused", exact=True)).to_be_visible()
    job.get_by_role("button", name="Resume").click()
    job.get_by_role("button", name="Run now").click()
    expect(page.get_by_text("runs as soon as the gateway picks it up")).to_be_visible()
    job.get_by_role("button", name="Runs").click()
    expect(job.get_by_role("cell", name="requested · started by hand")).to_be_visible()
    job.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No scheduled jobs")).to_be_visible()
    assert db.schedules.all() == []


@pytest.mark.clock
def test_a_reminder_is_listed_among_the_jobs(page: Page, db: SessionDB) -> None:
    request = JobRequest("tomorrow 9:00", "Call Ada", kind="reminder")
    create_job(db, local_requester(), request)
    page.goto("/schedules")
    expect(page.get_by_role("region", name="Call Ada")).to_contain_text("reminder")


def test_a_job_that_is_too_long_is_refused_in_plain_words(visitor: Visitor) -> None:
    visitor.problems.allow("status of 422")
    page = visitor.open("/schedules")
    page.get_by_role("button", name="Add a job").click()
    dialog = page.get_by_role("dialog")
    for name in ("schedule", "prompt"):
        dialog.locator(f"[name={name}]").fill("x" * 300)
    dialog.get_by_role("button", name="Request").click()
    field = dialog.locator("[name=schedule]")
    expect(field).to_have_accessible_description(re.compile("At most 200 characters."))
    expect(field).to_be_focused()
