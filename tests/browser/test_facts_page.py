"""Facts with their sources, and edits of files, on the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from support.remembered import SESSION, call, remember

if TYPE_CHECKING:
    from hermes_state import SessionDB
    from support.browsers import Visitor


def test_a_fact_shows_why_it_is_believed_and_is_rejected_and_put_back(
    db: SessionDB, visitor: Visitor
) -> None:
    message = remember(db)
    page = visitor.open("/memory")
    panel = page.get_by_role("region", name="Facts", exact=True)
    panel.get_by_role("button", name="Why? Likes tea.").click()
    source = panel.get_by_role("link", name="“I like tea”")
    expect(source).to_be_visible()
    panel.get_by_role("button", name="Actions: Likes tea.").click()
    page.get_by_role("menuitem", name="Reject").click()
    expect(panel.get_by_text("Nothing yet.")).to_be_visible()
    panel.get_by_text("Rejected 1").click()
    expect(panel.get_by_text("Likes tea.")).to_be_visible()
    panel.get_by_role("button", name="Undo the last change").click()
    panel.get_by_text("Believed 1").click()
    panel.get_by_role("button", name="Why? Likes tea.").click()
    source.click()
    expect(page).to_have_url(re.compile(rf"/sessions/{SESSION}\?message={message}$"))


def test_edits_lead_to_conversations_and_back(db: SessionDB, visitor: Visitor) -> None:
    db.create_session(SESSION, "claude-code", cwd="/srv/project")
    db.append_message(SESSION, "user", "Add a cache")
    written = {"file_path": "/srv/project/cache.py", "content": "a = 1\nb = 2\n"}
    db.append_message(SESSION, "assistant", "", tool_calls=[call("Write", written, "c1")])
    db.append_message(SESSION, "tool", "File created", tool_call_id="c1")
    page = visitor.open("/edits")
    edit = page.get_by_role("article")
    expect(edit).to_contain_text("cache.py")
    expect(edit).to_contain_text("+2")
    edit.get_by_role("link", name="Add a cache").click()
    files = page.get_by_role("region", name="Changed files")
    expect(files).to_contain_text("1 edit · +2")
    files.get_by_role("link", name="cache.py").click()
    expect(page.get_by_role("heading", level=1, name="Edits of a file")).to_be_visible()
    expect(page.get_by_role("article")).to_contain_text("claude-code")
