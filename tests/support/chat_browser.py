"""The chat page as a person uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def ask(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message to the agent").fill(text)
    page.keyboard.press("Enter")


def log(page: Page) -> Locator:
    return page.get_by_role("log", name="Conversation")
