"""Sign-in with a single-use link or a password, and the first page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from hermes_dashboard.auth.passwords import PasswordFile
from support.browsers import follow, wait_until_settled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from support.browsers import DashboardProcess, ReturningVisitor, Visitor
    from support.command_line import Hermes
    from support.dashboards import RunningDashboard

UNKNOWN = r"status of 401"
REFUSED = r"status of (401|429)"
ANYWHERE = "0.0.0.0"  # noqa: S104 - reachable from other machines
PASSWORD = "correct horse battery"
EMPTY = {
    "/": ("Welcome", "hermes demo"),
    "/chat": ("Choose a model", "enter its API key"),
    "/sessions": ("No sessions yet", "in a terminal"),
    "/sessions?state=archived": ("No archived sessions", "stay searchable"),
    "/sessions?state=trash": ("The trash is empty", "can be restored"),
    "/sessions?q=nothing": ("No results", "Use fewer words"),
    "/sessions?source=matrix": ("No matching sessions", "Remove a filter"),
    "/analytics": ("No activity in this period", "Choose a longer time range"),
    "/gateway": ("The gateway is not running", "No platform is configured"),
    "/hooks": ("No events yet", "An event is logged"),
}


def test_a_link_opens_an_empty_home_and_is_removed_from_the_url(
    stranger: ReturningVisitor, served: RunningDashboard
) -> None:
    page = stranger.open(served.access.link())
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
    assert page.url == f"{served.url}/"
    assert "token" not in page.evaluate("JSON.stringify(history.state_text) + location.href")
    assert page.evaluate("document.cookie") == ""  # scripts cannot read it
    page.get_by_role("link", name="Start a conversation").click()
    expect(page).to_have_url(f"{served.url}/chat")


def test_an_empty_page_has_a_hint(page: Page) -> None:
    page.goto("/")
    for path, text in EMPTY.items():
        follow(page, path)
        main = page.get_by_role("main")
        for token in text:
            expect(main.get_by_text(token).first).to_be_visible()
        wait_until_settled(page)
        expect(page.get_by_role("alert").filter(has_text="Something went wrong")).to_have_count(0)


def test_a_link_works_once(
    visit: Callable[..., Visitor], stranger: ReturningVisitor, served: RunningDashboard
) -> None:
    link = served.access.link()
    first = stranger
    expect(first.open(link).get_by_role("heading", name="Welcome")).to_be_visible()
    second = visit(served.url)
    second.problems.allow(UNKNOWN)
    page = second.open(link)
    expect(page.get_by_text("This link has already been used")).to_be_visible()
    expect(page.get_by_text("hermes dashboard --link")).to_be_visible()
    expect(page.get_by_role("navigation")).to_have_count(0)
    # The signed-in browser may use its old link as a bookmark.
    first.problems.allow(UNKNOWN)
    expect(first.open(link).get_by_role("heading", name="Welcome")).to_be_visible()


def test_an_anonymous_visitor_sees_how_to_sign_in(
    stranger: ReturningVisitor, served: RunningDashboard
) -> None:
    del served
    stranger.problems.allow(UNKNOWN)
    page = stranger.open("/sessions")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_text("hermes dashboard --link")).to_be_visible()
    expect(page.get_by_role("navigation")).to_have_count(0)


def test_the_link_of_the_command_opens_every_page(
    start: Callable[..., DashboardProcess],
    visit: Callable[..., Visitor],
    hermes_home: Path,
    hermes: Hermes,
) -> None:
    home = start(hermes_home)
    visitor = visit(home.url)
    visitor.problems.allow(UNKNOWN)
    page = visitor.open("/settings")
    expect(page.get_by_text("hermes dashboard --link")).to_be_visible()
    page.goto(hermes("dashboard", "--link").out.strip())
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
    page.goto("/settings")
    expect(page.get_by_text(str(hermes_home / "config.yaml"))).to_be_visible()


def test_other_machines_need_the_password_and_may_not_guess(
    start: Callable[..., DashboardProcess], visit: Callable[..., Visitor], hermes_home: Path
) -> None:
    PasswordFile(hermes_home).set(PASSWORD)
    home = start(hermes_home, "--host", ANYWHERE)
    visitor = visit(home.url)
    visitor.problems.allow(REFUSED)
    page = visitor.open("/hooks")
    field = page.get_by_role("textbox", name="Password")
    field.fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Incorrect password.")).to_be_visible()
    field.fill(PASSWORD)
    field.press("Enter")
    expect(page.get_by_role("heading", name="Hooks").first).to_be_visible()
    guesser = visit(home.url)
    guesser.problems.allow(REFUSED)
    page = guesser.open("/")
    for number in range(6):
        page.get_by_role("textbox", name="Password").fill(f"guess {number}")
        with page.expect_response("**/api/auth/login"):
            page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Too many failed attempts")).to_be_visible()


def test_a_sign_in_in_another_tab_is_noticed(
    stranger: ReturningVisitor, served: RunningDashboard
) -> None:
    stranger.problems.allow(UNKNOWN)
    waiting = stranger.open("/")
    expect(waiting.get_by_role("heading", name="Sign in")).to_be_visible()
    with stranger.context.new_page() as other:
        other.goto(served.access.link())
        expect(other.get_by_role("heading", name="Welcome")).to_be_visible()
    expect(waiting.get_by_role("heading", name="Welcome")).to_be_visible()


def test_a_page_that_is_not_loaded_yet_waits_for_the_server(
    new_visitor: Visitor, served: RunningDashboard
) -> None:
    del served
    new_visitor.problems.allow("ERR_INTERNET_DISCONNECTED|Failed to fetch|ERR_NETWORK")
    page = new_visitor.open("/")
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
    new_visitor.context.set_offline(True)
    page.get_by_role("link", name="Hooks").click()
    expect(page.get_by_text("The dashboard server is not responding")).to_be_visible()
    new_visitor.context.set_offline(False)
    expect(page.get_by_role("heading", name="Hooks").first).to_be_visible()


def test_the_page_can_be_installed_as_an_app(visitor: Visitor) -> None:
    page = visitor.open("/")
    problems = visitor.context.new_cdp_session(page).send("Page.getAppManifest")
    assert problems["errors"] == []
    manifest = json.loads(problems["data"])
    assert manifest["display"] == "standalone"
    for icon in manifest["icons"]:
        response = page.request.get(icon["src"])
        assert response.headers["content-type"] == icon["type"], icon
