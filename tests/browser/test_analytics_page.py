"""Charts: drawing, switching, export, and links to their sessions."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsers import PngImage, axe_violations

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

    from hermes_state import SessionDB
    from support.browsers import DashboardProcess, Visitor

pytestmark = pytest.mark.clock

CHARTS = (
    "Activity calendar",
    "Tokens by model",
    "Cost by model",
    "Messages and tool calls",
    "Tool calls and failures",
    "Activity by weekday and hour",
    "Conversations by source",
    "Conversation length",
    "Conversation duration",
    "Cost by project",
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
    name = demo_page.get_by_role("main").get_by_text("Conversations", exact=True).first
    sessions = name.locator("xpath=following-sibling::*[1]")
    expect(sessions).to_have_text(re.compile(r"^[\d,]+$"))
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
    card(demo_page, "Tool calls and failures")
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
    assert head == "Tool,Calls,Failures,Conversations"
    assert any(row.startswith("terminal,") for row in rows)


def test_a_bar_links_to_its_sessions(demo_page: Page) -> None:
    demo_page.goto("/analytics?range=365")
    chart = card(demo_page, "Conversation length")
    chart.get_by_text("View as table").click()
    expect(chart.locator("tbody tr").first).to_be_visible()
    counts = [int(item) for item in chart.locator("tbody td:nth-child(2)").all_inner_texts()]
    largest = counts.index(max(counts))
    position = chart.get_by_role("img", name="Conversation length")
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


def test_charts_are_drawn_only_when_they_come_into_view(demo_page: Page) -> None:
    demo_page.goto("/analytics?range=365")
    expect(card(demo_page, "Activity calendar").locator("canvas").first).to_be_visible()
    last = card(demo_page, "Cost by project")
    expect(last).to_have_count(1)
    expect(last.locator("canvas")).to_have_count(0)
    last.scroll_into_view_if_needed()
    expect(last.locator("canvas").first).to_be_visible()


def test_dates_filters_and_the_comparison_are_in_the_address(demo_page: Page) -> None:
    demo_page.goto("/analytics?range=30")
    total = demo_page.get_by_role("main").get_by_text("Conversations", exact=True).first
    sessions = total.locator("xpath=following-sibling::*[1]")
    expect(sessions).to_have_text(re.compile(r"^[\d,]+$"))
    everything = int(sessions.inner_text())
    demo_page.get_by_role("combobox", name="Source").click()
    demo_page.get_by_role("option", name="telegram").click()
    expect(demo_page).to_have_url(re.compile("source=telegram"))
    expect(sessions).not_to_have_text(str(everything))
    assert int(sessions.inner_text()) < everything
    demo_page.get_by_role("switch", name="Compare with the previous period").click()
    expect(demo_page).to_have_url(re.compile("compare=yes"))
    demo_page.get_by_text("Dates", exact=True).click()
    first = demo_page.get_by_label("First day")
    expect(first).to_have_value(re.compile(r"\d{4}-\d\d-\d\d"))
    first.fill("2020-01-01")
    expect(demo_page).to_have_url(re.compile("since=2020-01-01"))
    demo_page.go_back()  # a choice is a step in the history of the tab
    expect(first).not_to_have_value("2020-01-01")


def test_days_in_the_wrong_order_are_refused_at_the_field(demo_page: Page) -> None:
    demo_page.goto("/analytics?range=custom&since=2026-03-10&until=2026-03-01")
    last = demo_page.get_by_label("Last day")
    expect(last).to_have_accessible_description("The last day is before the first.")
    expect(demo_page.get_by_role("button", name="Try again")).to_have_count(0)
    last.fill("2026-03-12")
    expect(last).to_have_accessible_description("")
    expect(demo_page.get_by_text("10 Mar 2026 to 12 Mar 2026")).to_be_visible()


def test_what_counts_is_explained(demo_page: Page) -> None:
    demo_page.goto("/analytics")
    demo_page.get_by_role("button", name="What counts").click()
    dialog = demo_page.get_by_role("dialog", name="What counts")
    expect(dialog.get_by_role("row", name=re.compile("^Active days"))).to_contain_text("person")
    assert axe_violations(demo_page, "wcag2a", "wcag2aa") == []


def test_a_browser_of_another_zone_sees_the_days_of_the_server(
    demo_visitor: Callable[..., Visitor], demo: DashboardProcess
) -> None:
    days = {}
    for zone in ("America/Los_Angeles", "Pacific/Kiritimati"):
        page = demo_visitor(timezone_id=zone).open("/analytics?range=90")
        lead = page.get_by_text(re.compile(r"^\d+ \w+ \d{4} to "))
        days[zone] = lead.inner_text()
    assert len(set(days.values())) == 1
    assert len(demo.get_json("/api/analytics?days=90")["days"]) == 90


def test_an_extreme_day_does_not_flatten_the_others(db: SessionDB, visitor: Visitor) -> None:
    now = time.time()
    for number in range(20):
        add_day(db, f"day{number}", now - number * 86_400, cost=1000.0 if number == 5 else 1.0)
    page = visitor.open("/analytics?range=30")
    chart = card(page, "Cost by model")
    chart.get_by_role("button", name="1 value is above the scale: show all").click()
    chart.get_by_role("button", name="Fit the scale to most values").click()
    expect(chart.get_by_role("button", name="1 value is above")).to_be_visible()


def test_an_exceeded_budget_is_told(db: SessionDB, hermes_home: Path, visitor: Visitor) -> None:
    add_day(db, "one", time.time(), cost=12.0)
    (hermes_home / "config.yaml").write_text("display:\n  dollars_per_month: 10\n")
    for path in ("/", "/analytics"):
        notice = visitor.open(path).get_by_role("alert")
        expect(notice).to_contain_text("is exceeded: $12.00 of $10.00")


def add_day(db: SessionDB, name: str, at: float, cost: float) -> None:
    db.create_session(name, "cli", model="gpt-5", started_at=at, is_owned=False)
    db.append_message(name, "user", "hello", timestamp=at)
    db.append_message(name, "assistant", "hello", timestamp=at)
    db.update_token_counts(name, input_tokens=1000, estimated_cost_usd=cost)
