"""The overview: what is counted, and what is said while it is not."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from hermes_achievements.scan.survey import SurveyReport
from hermes_dashboard.analytics import analysis

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from playwright.sync_api import Page, Route

    from hermes_state import SessionDB
    from support.browsers import ReturningVisitor
    from support.dashboards import RunningDashboard

DAY = 86_400


def add_conversation(db: SessionDB, name: str, at: float) -> None:
    db.create_session(name, "cli", started_at=at, is_owned=False)
    db.append_message(name, "user", "hello", timestamp=at)
    db.append_message(name, "assistant", "hello", timestamp=at)


def test_the_history_is_counted_and_the_numbers_appear_by_themselves(
    db: SessionDB,
    serve: Callable[..., RunningDashboard],
    stranger: ReturningVisitor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = time.time()
    for number in (0, 1, 3):  # the day before yesterday is forgiven
        add_conversation(db, f"day{number}", now - number * DAY)
    released = threading.Event()
    survey = analysis.survey

    def slow_survey(order: Any, report: Any) -> Any:
        report(SurveyReport(1_240, 3_000, {}, None))
        assert released.wait(60)
        return survey(order, report)

    monkeypatch.setattr(analysis, "survey", slow_survey)
    stranger.sign_in(serve().access)
    page = stranger.open("/")
    expect(page.get_by_role("status").get_by_text("Counting your history")).to_have_text(
        "Counting your history… 1,240 of 3,000"
    )
    main = page.get_by_role("main")
    expect(main.get_by_role("link", name=re.compile("^Streak"))).to_contain_text("…")
    expect(main.get_by_text(re.compile(r"^0( days)?$"))).to_have_count(0)
    expect(main.get_by_text("No achievements yet")).to_have_count(0)
    page.goto("/analytics")
    expect(main.get_by_text("Counting your history")).to_be_visible()
    for name in ("Messages", "Tool calls", "Active days"):
        label = main.get_by_text(name, exact=True).first
        expect(label.locator("xpath=following-sibling::span[1]")).to_have_text("…")
    page.goto("/")
    expect(main.get_by_role("link", name=re.compile("^Conversations"))).to_contain_text(
        "6 stored messages"
    )
    released.set()
    streak = main.get_by_role("link", name=re.compile("^Streak"))
    expect(streak).to_contain_text("3 days")
    expect(streak).to_contain_text("1 missed day forgiven")
    expect(page.get_by_text("Counting your history")).to_have_count(0)
    expect(main.get_by_role("link", name=re.compile("^Messages today"))).to_contain_text("2")


def test_achievements_are_not_denied_while_the_scan_ends(db: SessionDB, page: Page) -> None:
    add_conversation(db, "talk", time.time())
    owl = [{"id": "x", "name": "Night Owl", "tier": "gold", "at": time.time()}]
    held: list[Route] = []
    asked: list[Route] = []
    is_released = False

    def status(route: Route) -> None:
        """The scan ends right after the first list was fetched."""
        is_over = bool(asked)
        at = time.time() if is_over else None
        state = "idle" if is_over else "running"
        route.fulfill(json={"state": state, "snapshot_generated_at": at})

    def unlocks(route: Route) -> None:
        asked.append(route)
        if len(asked) == 1:
            route.fulfill(json=[])
        elif is_released:
            route.fulfill(json=owl)
        else:
            held.append(route)

    page.route("**/scan-status", status)
    page.route("**/recent-unlocks*", unlocks)
    page.goto("/")
    latest = page.get_by_role("region", name="Latest achievements")
    expect(latest).to_contain_text("Counting your history")
    while not held:
        db.append_message("talk", "user", "hello")  # each change makes the page fetch again
        page.wait_for_timeout(500)
    expect(latest).to_contain_text("Counting your history")
    is_released = True
    for route in held:
        route.fulfill(json=owl)
    expect(latest).to_contain_text("Night Owl · gold")
