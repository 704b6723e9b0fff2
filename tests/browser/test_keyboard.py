"""Everything with the keyboard alone: every page, its main controls, its dialogs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsers import axe_violations, follow_to_another_page

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from hermes_state import SessionDB
    from support.browsers import Tabs

# Notes what each control is when it gets the focus.
NOTE_FOCUS = """() => {
  window.focusedControls = [];
  document.addEventListener("focusin", ({ target: one }) => {
    const label = one.getAttribute("aria-label") || one.labels?.[0]?.innerText;
    const name = label || one.innerText || one.value;
    const frame = one.closest(".mantine-Input-wrapper, label, .mantine-SegmentedControl-control");
    const isVisible = one.getBoundingClientRect().width > 0 || Boolean(frame);
    window.focusedControls.push([(name || "").trim().split("\\n")[0], isVisible]);
  });
}"""
# Puts the focus before the first control, where it is on a page that was just loaded.
START = """() => {
  document.body.tabIndex = -1;
  document.body.focus();
  document.body.removeAttribute("tabindex");
}"""
# Each page, and the controls that Tab must reach.
REACHED = {
    "/": ["All sessions", "Use light theme|Use dark theme"],
    "/chat": ["Message to the agent", "Attach files", "Model", "New chat"],
    "/sessions": [
        "Import",
        "Search all messages",
        "Source",
        "Filters",
        "Choose columns",
        "Cost",
        "Select .+",
    ],
    "/analytics": ["90 days", "Download: Activity calendar", "View as table"],
    "/achievements": ["Rescan", "Search badges", "Share .+"],
    "/memory": ["Add an entry"],
    "/schedules": ["Add a job"],
    "/gateway": ["Start", "Minimum level"],
    "/permissions": ["Change the mode in the settings"],
    "/data": ["Back up now"],
    "/logs": ["Log file|Sessions"],
    "/hooks": ["Replay"],
    "/plugins": ["Enable .+"],
    "/settings": ["Search settings"],
}


def tab_through(page: Page, wanted: list[str], most: int = 140, at_once: int = 10) -> list[str]:
    """Press Tab until all wanted controls were focused; return the others.

    What was focused is asked for after *at_once* keys; with 1 the last wanted control keeps it.
    """
    missing = list(wanted)
    page.evaluate(NOTE_FOCUS)
    for _ in range(0, most, at_once):
        for _ in range(at_once):
            page.keyboard.press("Tab")
        for name, is_visible in page.evaluate("window.focusedControls.splice(0)"):
            assert is_visible, f"the focus is on something that cannot be seen: {name!r}"
            missing = [item for item in missing if not re.fullmatch(item, name)]
        if not missing:
            break
    return missing


def test_tab_reaches_the_controls_of_every_page(demo_page: Page) -> None:
    first, *_ = REACHED
    demo_page.goto(first)
    for path, wanted in REACHED.items():
        if path != first:
            follow_to_another_page(demo_page, path)
        expect(demo_page.get_by_role("main").get_by_role("heading").first).to_be_visible()
        expect(demo_page.get_by_label("Loading")).to_have_count(0)
        if path == "/achievements":
            expect(demo_page.locator("ul.ach-grid > li").first).to_be_visible()
        demo_page.evaluate(START)
        assert tab_through(demo_page, wanted) == [], path


def test_the_first_stop_skips_to_the_content(demo_page: Page) -> None:
    demo_page.goto("/sessions")
    expect(demo_page.get_by_role("heading", name="Sessions")).to_be_visible()
    demo_page.keyboard.press("Tab")
    skip = demo_page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    demo_page.keyboard.press("Enter")
    demo_page.keyboard.press("Tab")
    assert demo_page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_the_content_shows_that_it_has_the_focus(demo_page: Page) -> None:
    demo_page.goto("/hooks")
    main = demo_page.get_by_role("main")
    expect(main.get_by_role("heading", name="Hooks").first).to_be_visible()
    demo_page.keyboard.press("Tab")
    demo_page.keyboard.press("Enter")  # the link to the content
    expect(main).to_be_focused()
    expect(main).to_have_css("outline-style", "solid")
    width, offset = main.evaluate(
        "(one) => [getComputedStyle(one).outlineWidth, getComputedStyle(one).outlineOffset]"
    )
    assert int(width.removesuffix("px")) >= 2
    assert int(offset.removesuffix("px")) < 0  # within the window, where it can be seen


def test_every_page_is_reached_with_the_keyboard(demo_page: Page) -> None:
    demo_page.goto("/")
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
        demo_page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).focus()
        demo_page.keyboard.press("Enter")
        focused = demo_page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")
        expect(focused).to_have_text(name)
        expect(demo_page.get_by_role("main").get_by_role("heading").first).to_be_visible()


@pytest.fixture
def trashed_sessions(db: SessionDB) -> SessionDB:
    db.create_session("old", "cli", is_owned=False)
    db.append_message("old", "user", "Old words")
    db.set_session_title("old", "Old")
    db.delete_session("old")
    return db


def test_a_dialog_traps_the_focus_and_restores_it(trashed_sessions: SessionDB, page: Page) -> None:
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


def test_a_session_can_be_found_opened_and_closed_with_the_keyboard(demo_page: Page) -> None:
    demo_page.goto("/sessions")
    demo_page.get_by_role("searchbox").focus()
    demo_page.keyboard.type("lighthouse")
    hits = demo_page.get_by_role("region", name="Search results")
    expect(hits.locator("mark").first).to_be_visible()
    assert tab_through(demo_page, ["lighthouse.*|.*lighthouse.*"], 40, at_once=1) == []
    demo_page.keyboard.press("Enter")
    expect(demo_page).to_have_url(re.compile("/sessions/"))
    more = demo_page.get_by_role("button", name="Export")
    more.focus()
    demo_page.keyboard.press("Enter")
    expect(demo_page.get_by_role("menuitem", name="Markdown")).to_be_visible()
    expect(demo_page.locator("[data-autofocus]:focus")).to_have_count(1)  # the menu has the focus
    demo_page.keyboard.press("ArrowDown")
    expect(demo_page.get_by_role("menuitem", name="Markdown")).to_be_focused()
    demo_page.keyboard.press("Escape")
    expect(demo_page.get_by_role("menu")).to_have_count(0)
    expect(more).to_be_focused()
    demo_page.go_back()
    expect(demo_page).to_have_url(re.compile("q=lighthouse"))


# The command palette and single keys


def test_the_palette_finds_pages_actions_and_conversations(demo_page: Page) -> None:
    demo_page.goto("/settings")
    expect(demo_page.get_by_role("heading", name="Settings").first).to_be_visible()
    demo_page.get_by_role("searchbox").first.focus()
    demo_page.keyboard.press("Control+k")  # also from a field
    palette = demo_page.get_by_role("dialog", name="Command palette")
    expect(palette.get_by_role("textbox")).to_be_focused()
    expect(palette.get_by_role("button", name="Release lighthouse 2.23")).to_be_visible()  # recent
    assert axe_violations(demo_page, "wcag2a", "wcag2aa", "best-practice") == []
    demo_page.keyboard.type("light")
    expect(palette.get_by_role("button", name=re.compile("lighthouse")).first).to_be_visible()
    expect(palette.get_by_role("button", name="Search all messages for “light”")).to_be_visible()
    demo_page.keyboard.press("Control+a")
    demo_page.keyboard.type("analyt")
    expect(palette.get_by_role("button", name="Analytics")).to_be_visible()
    demo_page.keyboard.press("Enter")
    expect(demo_page).to_have_url(re.compile("/analytics"))
    expect(palette).to_have_count(0)
    demo_page.keyboard.press("Control+k")
    expect(palette.get_by_role("textbox")).to_be_focused()
    demo_page.keyboard.type("flaky")
    palette.get_by_role("button", name=re.compile(": flaky")).first.click()
    expect(demo_page).to_have_url(re.compile("/sessions/2"))


def test_what_is_typed_before_the_palette_has_loaded_is_not_lost(tabs: Tabs) -> None:
    page = tabs.open("/sessions")
    expect(page.get_by_role("heading", name="Sessions").first).to_be_visible()
    held: list[Route] = []
    page.route("**/CommandPalette*.js", lambda route: held.append(route))  # noqa: PLW0108
    with page.expect_request("**/CommandPalette*.js"):
        page.keyboard.press("Control+k")
    page.keyboard.type("analy")
    held[0].continue_()
    field = page.get_by_role("dialog", name="Command palette").get_by_role("textbox")
    expect(field).to_be_focused()
    page.keyboard.type("tics")
    expect(field).to_have_value("analytics")
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    page.keyboard.press("/")  # a shortcut again
    expect(page.get_by_role("searchbox", name="Search all messages")).to_be_focused()


def test_g_and_a_letter_lead_to_every_page(demo_page: Page) -> None:
    demo_page.goto("/")
    expect(demo_page.get_by_role("heading").first).to_be_visible()
    pages = demo_page.get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("link", name="Achievements")).to_be_visible()
    for key, name in {
        "c": "Chat", "s": "Sessions", "a": "Analytics", "b": "Achievements", "g": "Gateway",
        "h": "Hooks", "p": "Plugins", "e": "Settings", "o": "Overview",
    }.items():  # fmt: skip
        demo_page.keyboard.press("g")
        demo_page.keyboard.press(key)
        expect(pages.locator("[aria-current=page]")).to_have_text(name)
        if name == "Chat":  # it focuses its field when it has loaded
            expect(demo_page.get_by_role("textbox", name="Message to the agent")).to_be_focused()
            demo_page.evaluate("document.activeElement.blur()")


def test_j_k_and_enter_move_in_lists_and_x_selects(demo_page: Page) -> None:
    demo_page.goto("/sessions")
    links = demo_page.get_by_role("table", name="Sessions").locator("tbody").get_by_role("link")
    expect(links.nth(3)).to_be_visible()
    for number in range(3):
        demo_page.keyboard.press("j")
        expect(links.nth(number)).to_be_focused()
    demo_page.keyboard.press("k")
    expect(links.nth(1)).to_be_focused()
    demo_page.keyboard.press("x")
    expect(demo_page.get_by_role("region", name="1 selected")).to_be_visible()
    name = links.nth(1).inner_text()
    links.nth(1).focus()
    demo_page.keyboard.press("Enter")
    expect(demo_page.get_by_role("heading", name=name)).to_be_visible()
    demo_page.goto("/sessions?q=lighthouse")
    hits = demo_page.get_by_role("region", name="Search results")
    expect(hits.locator("mark").first).to_be_visible()
    demo_page.keyboard.press("j")
    expect(hits.locator("[data-list-item]").first).to_be_focused()


def test_slash_focuses_the_search_and_keys_are_off_while_typing(demo_page: Page) -> None:
    demo_page.goto("/hooks")
    expect(demo_page.get_by_role("heading", name="Hooks").first).to_be_visible()
    demo_page.keyboard.press("/")
    field = demo_page.get_by_role("searchbox", name="Search all messages")
    expect(field).to_be_focused()
    demo_page.keyboard.type("?gs/jk")
    expect(field).to_have_value("?gs/jk")
    expect(demo_page.get_by_role("dialog")).to_have_count(0)


def test_a_question_mark_shows_the_keys_which_can_be_turned_off(demo_page: Page) -> None:
    demo_page.goto("/hooks")
    expect(demo_page.get_by_role("heading", name="Hooks").first).to_be_visible()
    demo_page.keyboard.press("?")
    dialog = demo_page.get_by_role("dialog", name="Keyboard shortcuts")
    for text in ("Open the command palette", "Next entry", "Sessions", "Achievements"):
        expect(dialog.get_by_text(text, exact=True)).to_be_visible()
    assert axe_violations(demo_page, "wcag2a", "wcag2aa", "best-practice") == []
    dialog.get_by_role("switch", name="Single-key shortcuts").uncheck()
    demo_page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    demo_page.keyboard.press("?")
    demo_page.keyboard.press("Control+k")
    expect(demo_page.get_by_role("dialog", name="Command palette")).to_be_visible()
    expect(dialog).to_have_count(0)
