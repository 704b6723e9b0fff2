"""Charts: drawn, switched, taken along, and a way to the sessions behind them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsers import Picture

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.clock

CHARTS = (
    "Activity calendar",
    "Tokens by model",
    "Cost by model",
    "Messages and tool calls",
    "Tool calls and failures",
    "Activity by weekday and hour",
    "Sessions by source",
    "Session length",
    "Session duration",
)
COLOURS = """(place) => {
  const canvas = place.querySelector("canvas");
  if (!canvas || !canvas.width) return 0;
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const found = new Set();
  for (let at = 0; at < data.length; at += 64) found.add(data.slice(at, at + 4).join());
  return found.size;
}"""


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def test_every_chart_is_drawn_and_follows_the_colours(shown: Page) -> None:
    shown.goto("/analytics?range=365")
    for name in CHARTS:
        chart = card(shown, name).get_by_role("img", name=name)
        chart.scroll_into_view_if_needed()
        place = chart.element_handle()
        shown.wait_for_function(f"place => ({COLOURS})(place) > 8", arg=place)
    before = shown.evaluate("place => place.querySelector('canvas').toDataURL()", place)
    shown.get_by_role("button", name="Use dark theme").click()
    shown.wait_for_function(
        "([place, before]) => place.querySelector('canvas').toDataURL() !== before",
        arg=[place, before],
    )


def test_the_days_are_chosen_and_stay_in_the_address(shown: Page) -> None:
    shown.goto("/analytics")
    name = shown.get_by_role("main").get_by_text("Sessions", exact=True).first
    sessions = name.locator("xpath=following-sibling::*[1]")
    expect(sessions).to_be_visible()
    quarter = int(sessions.inner_text())
    shown.get_by_text("7 days").click()
    expect(shown).to_have_url(re.compile("range=7"))
    expect(sessions).not_to_have_text(str(quarter))
    week = int(sessions.inner_text())
    shown.get_by_text("1 year", exact=True).click()
    expect(sessions).not_to_have_text(str(week))
    assert week < quarter < int(sessions.inner_text())
    shown.reload()
    expect(shown.get_by_role("radio", name="1 year")).to_be_checked()


def test_a_chart_is_taken_along_as_a_picture_and_as_numbers(shown: Page) -> None:
    shown.goto("/analytics?range=365")
    chart = card(shown, "Tool calls and failures")
    expect(chart.locator("canvas")).to_be_visible()
    result: dict[str, bytes] = {}
    for kind in ("PNG", "CSV"):
        shown.get_by_role("button", name="Download: Tool calls and failures").click()
        with shown.expect_download() as waiting:
            shown.get_by_role("menuitem", name=kind).click()
        assert waiting.value.suggested_filename.endswith(kind.lower())
        result[kind] = Path(waiting.value.path()).read_bytes()
    picture = Picture.read(result["PNG"])
    assert picture.width > 600
    assert picture.rows > 20  # a blank sheet has one
    head, *rows = result["CSV"].decode().splitlines()
    assert head == "Tool,Calls,Failures,Sessions"
    assert any(row.startswith("terminal,") for row in rows)


def test_a_bar_leads_to_the_sessions_it_stands_for(shown: Page) -> None:
    shown.goto("/analytics?range=365")
    chart = card(shown, "Session length")
    chart.get_by_text("View as table").click()
    counts = [int(item) for item in chart.locator("tbody td:nth-child(2)").all_inner_texts()]
    largest = counts.index(max(counts))
    place = chart.get_by_role("img", name="Session length")
    place.scroll_into_view_if_needed()
    shown.wait_for_function(f"place => ({COLOURS})(place) > 8", arg=place.element_handle())
    box = place.bounding_box()
    assert box is not None
    x = 48 + (box["width"] - 60) * (largest + 0.5) / len(counts)
    place.click(position={"x": x, "y": box["height"] - 60})
    expect(shown).to_have_url(re.compile(r"/sessions\?.*min_messages"))
    expect(shown.get_by_text(re.compile(f"^{counts[largest]} sessions"))).to_be_visible()


def test_the_numbers_lead_there_too(shown: Page) -> None:
    shown.goto("/analytics?range=365")
    chart = card(shown, "Tool calls and failures")
    chart.get_by_text("View as table").click()
    row = chart.get_by_role("row", name=re.compile("^terminal"))
    sessions = int(row.get_by_role("cell").last.inner_text())
    row.get_by_role("link", name="terminal").click()
    expect(shown).to_have_url(re.compile(r"/sessions\?.*tool=terminal"))
    expect(shown.get_by_text(f"{sessions} sessions")).to_be_visible()
