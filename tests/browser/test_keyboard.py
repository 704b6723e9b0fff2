"""Everything with the keyboard alone: every page, its main controls, its dialogs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from hermes_state import SessionDB

FOCUSED = """() => {
  const one = document.activeElement;
  const label = one.getAttribute("aria-label") || one.labels?.[0]?.innerText;
  const name = label || one.innerText || one.value;
  const frame = one.closest(".mantine-Input-wrapper, label, .mantine-SegmentedControl-control");
  const box = one.getBoundingClientRect();
  return [one.tagName, (name || "").trim().split("\\n")[0],
          one !== document.body && (box.width > 0 || Boolean(frame))];
}"""
# The page, and controls that Tab must come to on it.
REACHED = {
    "/": ["All sessions", "Use light theme|Use dark theme"],
    "/chat": ["Message to the agent", "Attach files", "Model", "New chat"],
    "/sessions": [
        "Import",
        "Search all messages",
        "Source",
        "Pinned only",
        "Select .+",
    ],
    "/analytics": ["90 days", "Download: Activity calendar", "View as table"],
    "/achievements": ["Rescan", "Search badges", "Share .+"],
    "/gateway": ["Sessions"],
    "/hooks": ["Replay"],
    "/plugins": ["Enable .+"],
    "/settings": ["Search settings"],
}


def walk(page: Page, wanted: list[str], most: int = 140) -> list[str]:
    """Press Tab until everything wanted was reached; what was not."""
    missing = list(wanted)
    for _ in range(most):
        page.keyboard.press("Tab")
        tag, name, is_visible = page.evaluate(FOCUSED)
        if tag == "BODY":
            continue  # past the last control; the next Tab begins anew
        assert is_visible, f"the focus is on something that cannot be seen: {name!r}"
        missing = [item for item in missing if not re.fullmatch(item, name)]
        if not missing:
            break
    return missing


def test_tab_comes_to_the_controls_of_every_page(shown: Page) -> None:
    for path, wanted in REACHED.items():
        shown.goto(path)
        expect(shown.get_by_role("main").get_by_role("heading").first).to_be_visible()
        expect(shown.get_by_label("Loading")).to_have_count(0)
        if path == "/achievements":
            expect(shown.locator("ul.ach-grid > li").first).to_be_visible()
        assert walk(shown, wanted) == [], path


def test_the_first_stop_skips_to_the_content(shown: Page) -> None:
    shown.goto("/sessions")
    expect(shown.get_by_role("heading", name="Sessions")).to_be_visible()
    shown.keyboard.press("Tab")
    skip = shown.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    shown.keyboard.press("Enter")
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_every_page_is_reached_with_the_keyboard(shown: Page) -> None:
    shown.goto("/")
    for name in (
        "Chat",
        "Sessions",
        "Analytics",
        "Achievements",
        "Gateway",
        "Hooks",
        "Plugins",
        "Settings",
    ):
        shown.get_by_role("navigation", name="Pages").get_by_role("link", name=name).focus()
        shown.keyboard.press("Enter")
        here = shown.get_by_role("navigation", name="Pages").locator("[aria-current=page]")
        expect(here).to_have_text(name)
        expect(shown.get_by_role("main").get_by_role("heading").first).to_be_visible()


@pytest.fixture
def thrown_away(db: SessionDB) -> SessionDB:
    db.create_session("old", "cli", is_owned=False)
    db.append_message("old", "user", "Old words")
    db.set_session_title("old", "Old")
    db.delete_session("old")
    return db


def test_a_dialog_keeps_the_focus_and_gives_it_back(thrown_away: SessionDB, page: Page) -> None:
    page.goto("/sessions?state=trash")
    page.get_by_role("checkbox", name="Select Old").focus()
    page.keyboard.press("Space")
    purge = page.get_by_role("button", name="Delete permanently")
    purge.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    for _ in range(6):
        page.keyboard.press("Tab")
        assert dialog.evaluate("dialog => dialog.contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(purge).to_be_focused()


def test_a_session_is_found_opened_and_left_with_the_keyboard(shown: Page) -> None:
    shown.goto("/sessions")
    shown.get_by_role("searchbox").focus()
    shown.keyboard.type("lighthouse")
    hits = shown.get_by_role("region", name="Search results")
    expect(hits.locator("mark").first).to_be_visible()
    assert walk(shown, ["lighthouse.*|.*lighthouse.*"], 40) == []
    shown.keyboard.press("Enter")
    expect(shown).to_have_url(re.compile("/sessions/"))
    more = shown.get_by_role("button", name="Export")
    more.focus()
    shown.keyboard.press("Enter")
    expect(shown.get_by_role("menuitem", name="Markdown")).to_be_visible()
    shown.keyboard.press("ArrowDown")
    expect(shown.get_by_role("menuitem", name="Markdown")).to_be_focused()
    shown.keyboard.press("Escape")
    expect(shown.get_by_role("menu")).to_have_count(0)
    expect(more).to_be_focused()
    shown.go_back()
    expect(shown).to_have_url(re.compile("q=lighthouse"))
