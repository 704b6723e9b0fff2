"""What holds on every page: no barrier, nothing cut off on a phone, no motion for who wants none.

The pictures of each page are kept in the folder that HERMES_SCREENSHOTS names, or in
`build/screenshots`: somebody looks at them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsers import DESK, PHONE, axe, overflow, settled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from support.browsers import Home, Visitor

PAGES = {
    "overview": "/",
    "chat": "/chat",
    "conversation": "/chat/{session}",
    "sessions": "/sessions",
    "search": "/sessions?q=lighthouse",
    "transcript": "/sessions/{session}",
    "analytics": "/analytics",
    "achievements": "/achievements",
    "gateway": "/gateway",
    "hooks": "/hooks",
    "plugins": "/plugins",
    "settings": "/settings",
    "nowhere": "/no/such/page",
}
LOOKS = {"light": ("light", DESK), "dark": ("dark", DESK), "phone": ("light", PHONE)}
# What a narrow window changes is how large things are and whether they can be reached.
ALL = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
RULES = {"light": ALL, "dark": ALL, "phone": ("wcag22aa", "cat.keyboard")}
MOVING = """() => document.getAnimations().filter((one) => one.playState === "running")
  .map((one) => `it moves: ${one.animationName} ${one.effect.target.className}`)"""
# A chart says that it is drawn by having drawn.
DRAWN = "() => [...document.querySelectorAll('canvas')].every((one) => one.width > 0)"


def addresses(demo: Home) -> dict[str, str]:
    """Where every page is; a conversation with tools stands for all of them."""
    result = demo.ask("/api/sessions?tool=terminal&limit=1")["items"][0]["id"]
    return {name: path.format(session=result) for name, path in PAGES.items()}


def go(page: Page, path: str) -> None:
    page.goto(path)
    expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    if re.search(r"/\d{8}_", path):  # a conversation, whose words come a moment later
        expect(page.get_by_role("main").get_by_role("article").first).to_be_visible()
    settled(page)
    page.wait_for_function(DRAWN)


@pytest.mark.parametrize("look_name", LOOKS)
def test_every_page_is_without_barriers_fits_and_keeps_still(
    demo: Home, look: Callable[..., Visitor], artefacts: Path, look_name: str
) -> None:
    scheme, size = LOOKS[look_name]
    page = look(color_scheme=scheme, viewport=size, reduced_motion="reduce").context.new_page()
    (artefacts / look_name).mkdir(parents=True, exist_ok=True)
    wrong: dict[str, list[str]] = {}
    for name, path in addresses(demo).items():
        go(page, path)
        page.screenshot(path=artefacts / look_name / f"{name}.png")
        results = [*axe(page, *RULES[look_name]), *overflow(page), *page.evaluate(MOVING)]
        if results:
            wrong[name] = results
    assert not wrong, json.dumps(wrong, indent=1)


def test_a_phone_has_a_menu_to_every_page(look: Callable[..., Visitor]) -> None:
    page = look(viewport=PHONE, has_touch=True, is_mobile=True).open("/")
    for name in ("Sessions", "Analytics", "Chat", "Settings", "Overview"):
        page.get_by_role("button", name="Open menu").tap()
        menu = page.get_by_role("dialog")
        menu.get_by_role("link", name=name).tap()
        expect(menu).to_have_count(0)
        expect(page).to_have_title(f"{'New chat' if name == 'Chat' else name} · Hermes")


def test_a_phone_talks_searches_and_reads(demo: Home, look: Callable[..., Visitor]) -> None:
    page = look(viewport=PHONE, has_touch=True, is_mobile=True).open("/sessions")
    page.get_by_role("searchbox").fill("lighthouse")
    page.get_by_role("region", name="Search results").locator("a[href*='message=']").first.tap()
    expect(page.locator("article[data-target=true]")).to_be_in_viewport()
    page.get_by_role("link", name="Continue in chat").tap()
    field = page.get_by_role("textbox", name="Message to the agent")
    expect(field).to_be_in_viewport()
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport()
