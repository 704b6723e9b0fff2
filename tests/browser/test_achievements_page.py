"""The bundled plugin's page: a history that becomes badges, before one's eyes."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from hermes_achievements import service
from hermes_achievements.scan.survey import survey_in_subprocess
from hermes_dashboard.analytics import analysis
from hermes_state import SessionDB
from support.browsers import PHONE, ROOT, PngImage, axe_violations, overflowing_elements
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

    from hermes_achievements.scan.survey import HistorySurvey, SurveyReport, SurveyRequest
    from support.browsers import DashboardProcess, Tabs, Visitor
    from support.command_line import Hermes

# A finger that moves to the left over an element.
SWIPE_LEFT = """(element) => {
  const at = (x) => new Touch({ identifier: 1, target: element, clientX: x, clientY: 300 });
  const init = (x) => ({ bubbles: true, touches: [at(x)], changedTouches: [at(x)] });
  element.dispatchEvent(new TouchEvent("touchstart", init(300)));
  element.dispatchEvent(new TouchEvent("touchend", { ...init(100), touches: [] }));
}"""
COUNTED = re.compile(r"Scanned ([\d,]+) of ([\d,]+) sessions · (\d+) %")
# Every distinct text of the banner, and the number of badges below it.
RECORD_BANNER = """
  window.bannerTexts = [];
  new MutationObserver(() => {
    const text = document.querySelector(".ach-banner-count")?.textContent ?? "";
    const cards = document.querySelectorAll(".ach-grid > li[data-state=unlocked]").length;
    if (text !== window.bannerTexts.at(-1)?.[0]) window.bannerTexts.push([text, cards]);
  }).observe(document, { subtree: true, childList: true, characterData: true });
"""
# Every distinct session count that the page shows.
RECORD_SESSION_COUNT = """
  window.sessionCounts = [];
  new MutationObserver(() => {
    const count = document.body?.innerText.match(/in ([\\d,]+) sessions/)?.[1];
    if (count && count !== window.sessionCounts.at(-1)) window.sessionCounts.push(count);
  }).observe(document, { subtree: true, childList: true, characterData: true });
"""
# The page asks for the progress of a scan every second.
FAST_POLLING = """
  const wait = window.setTimeout;
  window.setTimeout = (work, pause, ...rest) => wait(work, pause / 10, ...rest);
"""


def cards(page: Page) -> Locator:
    return page.locator("ul.ach-grid > li")


class PausedScan:
    """A scan that waits after each report of its progress."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reported: SimpleQueue[int] = SimpleQueue()
        self._resumed = threading.Semaphore(0)
        monkeypatch.setattr(service, "survey_in_subprocess", self._survey)
        # The charts would start the same scan, and the page would follow that one.
        monkeypatch.setattr(analysis, "_is_free", lambda _ledger: False)

    def _survey(
        self, request: SurveyRequest, on_report: Callable[[SurveyReport], None], *others: Any
    ) -> HistorySurvey:
        def report_and_wait(report: SurveyReport) -> None:
            on_report(report)
            self.reported.put(report.sessions)
            self._resumed.acquire(timeout=PATIENCE_SECONDS)

        return survey_in_subprocess(request, report_and_wait, *others)

    def resume(self, reports: int = 1) -> None:
        """Continue until as many more reports as given."""
        self._resumed.release(reports)


@pytest.fixture
def paused_scan(monkeypatch: pytest.MonkeyPatch) -> PausedScan:
    return PausedScan(monkeypatch)


@pytest.fixture
def long_history(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enough sessions for several reports, not scanned yet; few enough for one process."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    from history import Size, make  # noqa: PLC0415 - the benchmarks are programs, no package

    make(hermes_home / "state.db", Size(1_000, 3_500), 1)
    return hermes_home


def test_a_first_scan_climbs_and_badges_appear_meanwhile(
    long_history: Path, paused_scan: PausedScan, tabs: Tabs
) -> None:
    page = tabs.new()
    page.add_init_script(FAST_POLLING)
    page.add_init_script(RECORD_BANNER)
    page.goto("/achievements")
    for _ in range(3):
        sessions = paused_scan.reported.get(timeout=PATIENCE_SECONDS)
        expect(page.get_by_text(f"Scanned {sessions:,} of ")).to_be_visible()
        expect(page.locator(".ach-grid > li[data-state=unlocked]").first).to_be_visible()
        paused_scan.resume()
    paused_scan.resume(1_000)
    expect(page.get_by_text(re.compile(r"\d+ of \d+ unlocked in"))).to_be_visible()
    expect(page.get_by_text("Building your achievement profile")).to_have_count(0)
    expect(cards(page).first).to_be_visible()
    announcements = [
        (COUNTED.search(text), count) for text, count in page.evaluate("window.bannerTexts")
    ]
    scanned = [int(match[1].replace(",", "")) for match, _ in announcements if match]
    assert scanned == sorted(scanned)
    assert len(set(scanned)) >= 3, "the banner did not climb"
    assert any(count for match, count in announcements if match), "no badge while it ran"
    # The next visit has everything at once, and no banner.
    page.evaluate("window.bannerTexts.length = 0")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Hooks").click()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Achievements").click()
    expect(cards(page).first).to_be_visible()
    assert not any(COUNTED.search(text) for text, _ in page.evaluate("window.bannerTexts"))


def test_the_overview_shows_achievements_after_the_first_scan(db: SessionDB, page: Page) -> None:
    for number in range(20):
        db.create_session(f"s{number}", "cli", is_owned=False)
        db.append_message(f"s{number}", "user", "Traceback (most recent call last): why?")
        db.append_message(f"s{number}", "assistant", "Because.")
    page.goto("/")
    panel = page.get_by_role("region", name="Latest achievements")
    expect(panel.get_by_role("listitem").first).to_be_visible()


def test_new_achievements_are_shown_after_the_old_ones_with_a_notice(
    db: SessionDB, page: Page
) -> None:
    db.create_session("one", "cli", is_owned=False)
    db.append_message("one", "user", "Hello")
    page.goto("/achievements")
    lead = page.get_by_text(re.compile(r"unlocked in|Badges for what"))
    expect(lead).to_be_visible()
    page.get_by_role("button", name="Rescan", exact=True).click()
    expect(page.get_by_text(re.compile("Up to date"))).to_be_visible()
    before = page.get_by_role("main").inner_text()
    for number in range(60):
        name = f"more-{number}"
        db.create_session(name, "cli", is_owned=False)
        db.append_message(name, "user", "Traceback (most recent call last): why?")
        call = {"id": name, "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
        db.append_message(name, "assistant", "I look.", tool_calls=[call])
        db.append_message(name, "tool", "error: it failed", tool_call_id=name, tool_name="terminal")
        db.append_message(name, "assistant", "There.")
    page.get_by_role("button", name="Rescan", exact=True).click()
    expect(page.get_by_text(re.compile("Achievements? unlocked|New tier")).first).to_be_visible()
    expect(page.get_by_role("main")).not_to_have_text(before)
    expect(page.get_by_text(re.compile("in 61 sessions"))).to_be_visible()


def test_the_last_state_is_shown_at_once_and_refreshed_afterwards(
    hermes_home: Path,
    start: Callable[..., DashboardProcess],
    visit: Callable[..., Visitor],
    hermes: Hermes,
) -> None:
    fill(hermes_home, "old", 40)
    assert hermes("achievements", "--json").code == 0
    snapshot = hermes_home / "plugins" / "hermes-achievements" / "scan_snapshot.json"
    measurements = json.loads(snapshot.read_text("utf-8"))
    measurements["generated_at"] -= 86_400
    snapshot.write_text(json.dumps(measurements), "utf-8")
    fill(hermes_home, "new", 25)
    home = start(hermes_home)
    visitor = visit(home.url)
    visitor.context.add_init_script(RECORD_SESSION_COUNT)
    page = visitor.open(home.link().replace("/#", "/achievements#"))
    expect(page.get_by_text(re.compile("in 65 sessions"))).to_be_visible()
    assert page.evaluate("window.sessionCounts") == ["40", "65"]


def fill(home: Path, name: str, count: int) -> None:
    with SessionDB(home / "state.db") as db:
        for number in range(count):
            db.create_session(f"{name}-{number}", "cli", is_owned=False)
            db.append_message(f"{name}-{number}", "user", "Hello")


def test_badges_are_narrowed_down_and_searched(demo_page: Page) -> None:
    demo_page.goto("/achievements")
    expect(cards(demo_page).first).to_be_visible()
    everything = cards(demo_page).count()
    demo_page.get_by_role("button", name=re.compile("^Unlocked")).click()
    expect(cards(demo_page)).not_to_have_count(everything)
    unlocked = cards(demo_page).count()
    assert 0 < unlocked < everything
    demo_page.get_by_role("searchbox", name="Search badges").or_(
        demo_page.get_by_role("textbox", name="Search badges")
    ).fill("Seven for Seven")
    expect(cards(demo_page).filter(has_text="Seven for Seven").first).to_be_visible()
    expect(cards(demo_page)).not_to_have_count(unlocked)
    demo_page.get_by_label("Search badges").fill("nothing is called this")
    expect(demo_page.get_by_text("No matching badges")).to_be_visible()
    demo_page.get_by_role("button", name="Show all badges").click()
    expect(cards(demo_page)).to_have_count(everything)


def test_the_evidence_opens_the_message_that_earned_it(demo_page: Page) -> None:
    demo_page.goto("/achievements")
    demo_page.get_by_role("main").locator("a[href*='message=']").first.click()
    expect(demo_page).to_have_url(re.compile(r"/sessions/[^?]+\?message=\d+"))
    expect(demo_page.locator("article[data-target=true]")).to_be_in_viewport()


def test_a_card_to_share_is_a_picture_with_something_on_it(demo_page: Page) -> None:
    demo_page.goto("/achievements")
    demo_page.get_by_role("button", name=re.compile("^Share ")).first.click()
    dialog = demo_page.get_by_role("dialog")
    with demo_page.expect_download() as waiting:
        dialog.get_by_role("button", name="Download PNG").click()
    picture = PngImage.read(Path(waiting.value.path()).read_bytes())
    assert (picture.width, picture.height) == (1200, 630)
    assert picture.rows > 200  # text and a medal, not a blank image
    demo_page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_year_is_looked_back_on_and_saved(demo_page: Page) -> None:
    demo_page.goto("/achievements")
    parts = demo_page.get_by_role("navigation", name="Views")
    parts.get_by_role("link", name="Recap").click()
    recap = demo_page.get_by_role("region", name="Recap")
    expect(recap.get_by_role("region", name="Key figures")).to_be_visible()
    expect(recap.get_by_role("heading", name="Longest streak")).to_be_visible()
    with demo_page.expect_download() as waiting:
        recap.get_by_role("button", name="Save as image").click()
    picture = PngImage.read(Path(waiting.value.path()).read_bytes())
    assert picture.width >= 1000
    assert picture.rows > 200
    parts.get_by_role("link", name="Timeline").click()
    expect(demo_page.get_by_text("unlocks and tier-ups")).to_be_visible()


def test_a_story_is_played_by_keys_and_buttons_and_its_slides_are_saved(demo_page: Page) -> None:
    demo_page.goto("/achievements?view=recap")
    recap = demo_page.get_by_role("region", name="Recap")
    recap.get_by_role("button", name="Month", exact=True).click()
    expect(recap.get_by_role("button", name="Month", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    recap.get_by_role("button", name="Play as a story").click()
    story = demo_page.get_by_role("dialog", name=re.compile("^The story of "))
    expect(story.get_by_text(re.compile(r"^Slide 1 of \d+$"))).to_have_count(1)
    expect(story.get_by_role("button", name="Close")).to_be_focused()
    demo_page.keyboard.press("ArrowRight")
    expect(story.get_by_text(re.compile("^Slide 2 of "))).to_have_count(1)
    story.get_by_role("button", name="Next slide").click()
    expect(story.get_by_text(re.compile("^Slide 3 of "))).to_have_count(1)
    demo_page.keyboard.press("Home")
    expect(story.get_by_role("button", name="Previous slide")).to_be_disabled()
    assert axe_violations(demo_page, "wcag2a", "wcag2aa") == []
    with demo_page.expect_download() as waiting:
        story.get_by_role("button", name="Save this slide").click()
    assert waiting.value.suggested_filename.endswith("-opening.png")
    picture = PngImage.read(Path(waiting.value.path()).read_bytes())
    assert (picture.width, picture.height) == (1080, 1350)
    demo_page.keyboard.press("Escape")
    expect(story).to_have_count(0)


def test_a_story_follows_swipes_and_does_not_move_where_that_is_unwanted(
    demo_visitor: Callable[..., Visitor],
) -> None:
    visitor = demo_visitor(viewport=PHONE, has_touch=True, reduced_motion="reduce")
    page = visitor.open("/achievements?view=recap")
    page.get_by_role("button", name="Play as a story").tap()
    story = page.get_by_role("dialog", name=re.compile("^The story of "))
    expect(story.get_by_text(re.compile("^Slide 1 of "))).to_have_count(1)
    names = page.evaluate("() => document.getAnimations().map((one) => one.animationName)")
    assert "ach-reveal" not in names
    story.locator(".ach-story").evaluate(SWIPE_LEFT)
    expect(story.get_by_text(re.compile("^Slide 2 of "))).to_have_count(1)
    assert overflowing_elements(page) == []


def test_the_latest_badge_fits_a_phone(demo_visitor: Callable[..., Visitor]) -> None:
    page = demo_visitor(viewport=PHONE).open("/achievements")
    box = page.get_by_role("region", name="Latest").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
