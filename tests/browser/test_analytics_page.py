"""Charts: drawing, switching, export, and links to their sessions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsers import PngImage

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


def test_every_chart_is_drawn_and_follows_the_colours(demo_page: Page) -> None:
    demo_page.goto("/analytics?range=365")
    for name in CHARTS:
        chart = card(demo_page, name).get_by_role("img", name=name)
        chart.scroll_into_view_if_needed()
        position = chart.element_handle()
        demo_page.wait_for_function(f"place => ({COLOURS})(place) > 8", arg=position)
    before = demo_page.evaluate("place => place.querySelector('canvas').toDataURL()", position)
    demo_page.get_by_role("button", name="Use dark theme").click()
    demo_page.wait_for_function(
        "([place, before]) => place.querySelector('canvas').toDataURL() !== before",
        arg=[position, before],
    )


def test_the_days_are_chosen_and_stay_in_the_address(demo_page: Page) -> None:
    demo_page.goto("/analytics")
    name = demo_page.get_by_role("main").get_by_text("Sessions", exact=True).first
    sessions = name.locator("xpath=following-sibling::*[1]")
    expect(sessions).to_be_visible()
    quarter = int(sessions.inner_text())
    demo_page.get_by_text("7 days").click()
    expect(demo_page).to_have_url(re.compile("range=7"))
    expect(sessions).not_to_have_text(str(quarter))
    week = int(sessions.inner_text())
    demo_page.get_by_text("1 year", exact=True).click()
    expect(sessions).not_to_have_text(str(week))
    assert week < quarter < int(sessions.inner_text())
    demo_page.reload()
    expect(demo_page.get_by_role("radio", name="1 year")).to_be_checked()


def test_a_chart_is_exported_as_an_image_and_as_data(demo_page: Page) -> None:
    demo_page.goto("/analytics?range=365")
    chart = card(demo_page, "Tool calls and failures")
    expect(chart.locator("canvas")).to_be_visible()
    result: dict[str, bytes] = {}
    for kind in ("PNG", "CSV"):
        demo_page.get_by_role("button", name="Download: Tool calls and failures").click()
        with demo_page.expect_download() as waiting:
            demo_page.get_by_role("menuitem", name=kind).click()
        assert waiting.value.suggested_filename.endswith(kind.lower())
        result[kind] = Path(waiting.value.path()).read_bytes()
    picture = PngImage.read(result["PNG"])
    assert picture.width > 600
    assert picture.rows > 20  # a blank sheet has one
    head, *rows = result["CSV"].decode().splitlines()
    assert head == "Tool,Calls,Failures,Sessions"
    assert any(row.startswith("terminal,") for row in rows)


def test_a_bar_links_to_its_sessions(demo_page: Page) -> None:
    demo_page.goto("/analytics?range=365")
    chart = card(demo_page, "Session length")
    chart.get_by_text("View as table").click()
    counts = [int(item) for item in chart.locator("tbody td:nth-child(2)").all_inner_texts()]
    largest = counts.index(max(counts))
    position = chart.get_by_role("img", name="Session length")
    position.scroll_into_view_if_needed()
    demo_page.wait_for_function(f"place => ({COLOURS})(place) > 8", arg=position.element_handle())
    box = position.bounding_box()
    assert box is not None
    x = 48 + (box["width"] - 60) * (largest + 0.5) / len(counts)
    position.click(position={"x": x, "y": box["height"] - 60})
    expect(demo_page).to_have_url(re.compile(r"/sessions\?.*min_messages"))
    expect(demo_page.get_by_text(re.compile(f"^{counts[largest]} sessions"))).to_be_visible()


def test_the_numbers_lead_there_too(demo_page: Page) -> None:
    demo_page.goto("/analytics?range=365")
    chart = card(demo_page, "Tool calls and failures")
    chart.get_by_text("View as table").click()
    row = chart.get_by_role("row", name=re.compile("^terminal"))
    sessions = int(row.get_by_role("cell").last.inner_text())
    row.get_by_role("link", name="terminal").click()
    expect(demo_page).to_have_url(re.compile(r"/sessions\?.*tool=terminal"))
    expect(demo_page.get_by_text(f"{sessions} sessions")).to_be_visible()
