"""Checks for every page: accessibility, no overflow on a phone, reduced motion.

The pictures of each page are kept in the folder that HERMES_SCREENSHOTS names, or in
`build/screenshots`: somebody looks at them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsers import (
    DESKTOP,
    PHONE,
    axe_violations,
    follow_to_another_page,
    overflowing_elements,
    wait_until_settled,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from support.browsers import DashboardProcess, Visitor

# A page is not followed by another one with the same component.
PAGES = {
    "overview": "/",
    "chat": "/chat",
    "sessions": "/sessions",
    "conversation": "/chat/{session}",
    "search": "/sessions?q=which+lighthouse+test+was+flaky+and+fixed",
    "transcript": "/sessions/{session}",
    "ask": "/ask?q=lighthouse",
    "achievements": "/achievements",
    "analytics": "/analytics",
    "memory": "/memory",
    "schedules": "/schedules",
    "gateway": "/gateway",
    "models": "/models",
    "mcp": "/mcp",
    "hooks": "/hooks",
    "permissions": "/permissions",
    "data": "/data",
    "logs": "/logs",
    "plugins": "/plugins",
    "settings": "/settings",
    "nowhere": "/no/such/page",
}
LOOKS = {"light": ("light", DESKTOP), "dark": ("dark", DESKTOP), "phone": ("light", PHONE)}
# Dark colours affect only contrast (WCAG 1.4.1 and 1.4.3), a narrow window only sizes and
# reachability.
ALL = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
RULES = {"light": ALL, "dark": ("wcag141", "wcag143"), "phone": ("wcag22aa", "cat.keyboard")}
MOVING = """() => document.getAnimations().filter((one) => one.playState === "running")
  .map((one) => `it moves: ${one.animationName} ${one.effect.target.className}`)"""
# A chart is ready once it has drawn.
DRAWN = "() => [...document.querySelectorAll('canvas')].every((one) => one.width > 0)"


def paths(demo: DashboardProcess) -> dict[str, str]:
    """The path of every page, with one conversation with tools as a sample."""
    result = demo.get_json("/api/sessions?tool=terminal&limit=1")["items"][0]["id"]
    return {name: path.format(session=result) for name, path in PAGES.items()}


def wait_until_drawn(page: Page, path: str) -> None:
    expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    if re.search(r"/\d{8}_", path):  # a conversation, whose text is loaded later
        expect(page.get_by_role("main").get_by_role("article").first).to_be_visible()
    wait_until_settled(page)
    page.wait_for_function(DRAWN)


def open_pages(page: Page, pages: dict[str, str]) -> Iterator[str]:
    """Show one page after the other: the first by its address, the others as by a link."""
    for name, path in pages.items():
        if path == next(iter(pages.values())):
            page.goto(path)
        else:
            follow_to_another_page(page, path)
        wait_until_drawn(page, path)
        yield name


@pytest.fixture
def look(demo_page: Page, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a look that the tab of the demo has during the test."""
    scheme, size = LOOKS[request.param]
    demo_page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    demo_page.set_viewport_size(size)
    yield request.param
    demo_page.emulate_media(color_scheme="null", reduced_motion="null")
    demo_page.set_viewport_size(DESKTOP)


@pytest.mark.parametrize("look", LOOKS, indirect=True)
def test_every_page_is_accessible_fits_and_is_stable(
    demo: DashboardProcess, demo_page: Page, artefacts: Path, look: str
) -> None:
    (artefacts / look).mkdir(parents=True, exist_ok=True)
    wrong: dict[str, list[str]] = {}
    for name in open_pages(demo_page, paths(demo)):
        demo_page.screenshot(path=artefacts / look / f"{name}.png")
        results = [
            *axe_violations(demo_page, *RULES[look]),
            *overflowing_elements(demo_page),
            *demo_page.evaluate(MOVING),
        ]
        if results:
            wrong[name] = results
    assert not wrong, json.dumps(wrong, indent=1)


def test_a_phone_has_a_menu_to_every_page(demo_visitor: Callable[..., Visitor]) -> None:
    page = demo_visitor(viewport=PHONE, has_touch=True, is_mobile=True).open("/")
    for name in ("Sessions", "Analytics", "Chat", "Settings", "Overview"):
        page.get_by_role("button", name="Open menu").tap()
        menu = page.get_by_role("dialog")
        menu.get_by_role("link", name=name).tap()
        expect(menu).to_have_count(0)
        expect(page).to_have_title(f"{'New chat' if name == 'Chat' else name} · Hermes")


def test_a_phone_can_chat_search_and_read(
    demo: DashboardProcess, demo_visitor: Callable[..., Visitor]
) -> None:
    page = demo_visitor(viewport=PHONE, has_touch=True, is_mobile=True).open("/sessions")
    page.get_by_role("searchbox").fill("lighthouse")
    page.get_by_role("region", name="Search results").locator("a[href*='message=']").first.tap()
    expect(page.locator("article[data-target=true]")).to_be_in_viewport()
    page.get_by_role("link", name="Continue in chat").tap()
    field = page.get_by_role("textbox", name="Message to the agent")
    expect(field).to_be_in_viewport()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_in_viewport()
