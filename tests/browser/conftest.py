"""A browser for all tests of a worker, a visitor for each, and homes that are only read."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from hermes_state import SessionDB
from support.browsers import ARGUMENTS, ROOT, Visitor, loop_of, missing, running
from support.command_line import run_hermes
from support.daemons import stopping_daemon
from support.dashboards import dashboard, parts_of, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from support.browsers import Home
    from support.dashboards import Served

REASON = missing()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser or a page there is nothing to see; say which."""
    if REASON is None:
        return
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's browser, started once."""
    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield browser
    asyncio._set_running_loop(loop)
    browser.close()
    playwright.stop()


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    """What a test starts; it ends when every browser has left, and not before."""
    with stopping_daemon(), ExitStack() as stack:  # a page may have summoned the daemon
        yield stack


@pytest.fixture
def start(servers: ExitStack) -> Callable[..., Home]:
    """Starts `hermes dashboard` on a folder."""
    return lambda folder, *arguments: servers.enter_context(running(folder, *arguments))


@pytest.fixture
def visit(chromium: Browser, servers: ExitStack) -> Iterator[Callable[..., Visitor]]:
    """Somebody new at a dashboard; whatever their browser complained about fails the test."""
    visitors: list[Visitor] = []

    def come(origin: str, **wishes: Any) -> Visitor:
        visitors.append(Visitor(chromium, origin, **wishes))
        return visitors[-1]

    with loop_of(chromium):
        yield come
        for item in visitors:
            item.close()


# A dashboard of a test's own


@pytest.fixture
def db(hermes_home: Path, servers: ExitStack) -> SessionDB:
    return servers.enter_context(SessionDB(hermes_home / "state.db"))


@pytest.fixture
def served(db: SessionDB, servers: ExitStack) -> Served:
    return servers.enter_context(dashboard(parts_of(db)))


@pytest.fixture
def visitor(visit: Callable[..., Visitor], served: Served) -> Visitor:
    """Somebody who is let in."""
    result = visit(served.url)
    result.let_in(served.access)
    return result


@pytest.fixture
def page(visitor: Visitor) -> Page:
    """Their tab, still empty."""
    return visitor.context.new_page()


# A history to look at, which nobody changes


def is_read(home: Home) -> bool:
    """Whether charts and badges know all of the history."""
    badges = home.ask("/api/plugins/hermes-achievements/achievements")["scan_meta"]["mode"]
    return badges not in {"pending", "in_progress"} and home.ask("/api/analytics")["is_complete"]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The demo's year, behind a real `hermes dashboard`."""
    place = tmp_path_factory.mktemp("demo")
    home = place / "home"
    done = run_hermes("demo", "--make", HERMES_HOME=str(home), HOME=str(place))
    assert done.code == 0, done.err
    with running(place / "home-demo", HOME=str(place)) as result:
        wait_until(lambda: is_read(result))
        yield result


@pytest.fixture(scope="session")
def demo_cookies(chromium: Browser, demo: Home) -> Any:
    """What a browser keeps that was let into the demo."""
    with loop_of(chromium):
        context = chromium.new_context()
        page = context.new_page()
        page.goto(demo.link())
        page.get_by_role("navigation").first.wait_for()
        storage_state = context.storage_state()
        context.close()
    return storage_state


@pytest.fixture
def look(visit: Callable[..., Visitor], demo: Home, demo_cookies: Any) -> Callable[..., Visitor]:
    """A visitor of the demo."""
    return lambda **wishes: visit(demo.url, storage_state=demo_cookies, **wishes)


@pytest.fixture
def shown(look: Callable[..., Visitor]) -> Page:
    """A tab on the demo, still empty."""
    return look().context.new_page()


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """Where pictures and measurements are kept."""
    return Path(os.environ.get("HERMES_SCREENSHOTS") or ROOT / "build" / "screenshots")
