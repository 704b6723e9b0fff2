"""A browser for all tests of a worker, a visitor for each, and homes that are only read."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from hermes_core.config.file import ConfigFile
from hermes_dashboard.server import open_socket
from hermes_state import SessionDB
from support.browsers import (
    ARGUMENTS,
    ROOT,
    ReturningVisitor,
    Tabs,
    Visitor,
    browser_program,
    dashboard_process,
    loop_of,
    missing_requirement,
)
from support.command_line import run_hermes
from support.daemons import stopping_daemon
from support.dashboards import dashboard, dashboard_context, wait_until
from support.model_servers import configured_models, model_argument, model_servers
from support.scheduling import DEMO_GROUP, group_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from support.browsers import DashboardProcess
    from support.dashboards import RunningDashboard
    from support.scripted_server import ScriptServer

REASON = missing_requirement()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip browser tests where no browser is installed; refuse a demo in a second worker."""
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue
        if REASON is not None:
            item.add_marker(pytest.mark.skip(reason=REASON))
        if "demo" in getattr(item, "fixturenames", ()) and group_of(item.nodeid) != DEMO_GROUP:
            raise pytest.UsageError(f"{item.nodeid} uses the demo: add it to “{DEMO_GROUP}”")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's browser, started once."""
    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=browser_program(), args=ARGUMENTS)
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield browser
    asyncio._set_running_loop(loop)
    browser.close()
    playwright.stop()


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    """The servers of a test; they stop after every browser context is closed."""
    with stopping_daemon(), ExitStack() as stack:  # a page may have started the daemon
        yield stack


@pytest.fixture
def start(servers: ExitStack) -> Callable[..., DashboardProcess]:
    """Starts `hermes dashboard` on a folder."""
    return lambda folder, *arguments: servers.enter_context(dashboard_process(folder, *arguments))


@pytest.fixture
def visit(chromium: Browser, servers: ExitStack) -> Iterator[Callable[..., Visitor]]:
    """A function that opens a browser context; unexpected browser problems fail the test."""
    visitors: list[Visitor] = []

    def open_visitor(origin: str, **options: Any) -> Visitor:
        visitors.append(Visitor(chromium, origin, **options))
        return visitors[-1]

    with loop_of(chromium):
        yield open_visitor
        for visitor in visitors:
            visitor.close()


# A dashboard of a test's own


@pytest.fixture(scope="session")
def listener() -> Iterator[socket.socket]:
    """The address of the dashboards of all tests, one after the other."""
    with open_socket("127.0.0.1", 0) as result:
        yield result


@pytest.fixture
def db(hermes_home: Path, servers: ExitStack) -> SessionDB:
    return servers.enter_context(SessionDB(hermes_home / "state.db"))


@pytest.fixture
def serve(
    db: SessionDB, servers: ExitStack, listener: socket.socket
) -> Callable[..., RunningDashboard]:
    """Starts the dashboard of the test; arguments are fields of its context."""
    return lambda **fields: servers.enter_context(
        dashboard(dashboard_context(db, **fields), at=listener)
    )


@pytest.fixture
def served(serve: Callable[..., RunningDashboard]) -> RunningDashboard:
    return serve()


@pytest.fixture(scope="session")
def returning_visitor(chromium: Browser, listener: socket.socket) -> Iterator[ReturningVisitor]:
    with loop_of(chromium):
        visitor = ReturningVisitor(chromium, f"http://127.0.0.1:{listener.getsockname()[1]}")
    yield visitor
    with loop_of(chromium):
        visitor.close()


@pytest.fixture
def stranger(
    chromium: Browser, servers: ExitStack, returning_visitor: ReturningVisitor
) -> Iterator[ReturningVisitor]:
    """A visitor of the dashboard of the test who has not signed in."""
    del servers  # they stop after the visitor has left
    with loop_of(chromium):
        yield returning_visitor
        returning_visitor.leave()


@pytest.fixture
def visitor(stranger: ReturningVisitor, served: RunningDashboard) -> Visitor:
    """A visitor who has signed in to the dashboard of the test."""
    stranger.sign_in(served.access)
    return stranger


@pytest.fixture
def tabs(visitor: ReturningVisitor) -> Iterator[Tabs]:
    """New tabs of the visitor, for a test that adds scripts, listeners or another size to one."""
    result = Tabs(visitor)
    yield result
    result.close()


@pytest.fixture
def new_visitor(visit: Callable[..., Visitor], served: RunningDashboard) -> Visitor:
    """A signed-in browser context for a test that changes permissions or the connection."""
    result = visit(served.url)
    result.sign_in(served.access)
    return result


@pytest.fixture
def page(visitor: ReturningVisitor) -> Page:
    """The tab of the visitor."""
    return visitor.tab


@pytest.fixture
def set_model_steps(servers: ExitStack, hermes_home: Path) -> Callable[[str], str]:
    """A function that configures a scripted model."""
    start_server = servers.enter_context(model_servers())

    def configure(steps: str) -> str:
        server = start_server(steps)
        config = ConfigFile.of_home()
        for name, value in (
            ("api", "openai"),
            ("base_url", server.base_url),
            ("model", "scripted"),
        ):
            config.set(f"llm.{name}", value)
        return model_argument(server)

    return configure


@pytest.fixture
def answering(servers: ExitStack, hermes_home: Path) -> Callable[..., ScriptServer]:
    """A function that configures a scripted model of any kind."""
    return servers.enter_context(configured_models())


# A read-only demo history


def is_read(home: DashboardProcess) -> bool:
    """Whether charts and badges include the full history."""
    badges = home.get_json("/api/plugins/hermes-achievements/achievements")["scan_meta"]["mode"]
    return (
        badges not in {"pending", "in_progress"} and home.get_json("/api/analytics")["is_complete"]
    )


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """The demo history behind a real `hermes dashboard`."""
    folder = tmp_path_factory.mktemp("demo")
    home = folder / "home"
    finished = run_hermes("demo", "--make", HERMES_HOME=str(home), HOME=str(folder))
    assert finished.code == 0, finished.err
    with dashboard_process(folder / "home-demo", HOME=str(folder)) as result:
        wait_until(lambda: is_read(result))
        yield result


@pytest.fixture(scope="session")
def demo_cookies(chromium: Browser, demo: DashboardProcess) -> Any:
    """The cookies of a browser that is signed in to the demo."""
    with loop_of(chromium):
        context = chromium.new_context()
        page = context.new_page()
        page.goto(demo.link())
        page.get_by_role("navigation").first.wait_for()
        storage_state = context.storage_state()
        context.close()
    return storage_state


@pytest.fixture
def demo_visitor(
    visit: Callable[..., Visitor], demo: DashboardProcess, demo_cookies: Any
) -> Callable[..., Visitor]:
    """A visitor of the demo."""
    return lambda **options: visit(demo.url, storage_state=demo_cookies, **options)


@pytest.fixture(scope="session")
def demo_reader(chromium: Browser, demo: DashboardProcess, demo_cookies: Any) -> Iterator[Visitor]:
    """One visitor of the demo for many tests: the browser compiles the page's scripts once."""
    with loop_of(chromium):
        visitor = Visitor(chromium, demo.url, storage_state=demo_cookies)
    yield visitor
    with loop_of(chromium):
        visitor.close()


@pytest.fixture(scope="session")
def demo_tab(chromium: Browser, demo_reader: Visitor) -> Page:
    """One tab of the demo: the browser keeps the compiled scripts of the page before."""
    with loop_of(chromium):
        return demo_reader.context.new_page()


@pytest.fixture
def demo_page(chromium: Browser, demo_reader: Visitor, demo_tab: Page) -> Iterator[Page]:
    """A tab of the demo, without anything that an earlier test stored."""
    with loop_of(chromium):
        yield demo_tab
        demo_reader.forget(demo_tab)


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """The folder for screenshots and measurements."""
    return Path(os.environ.get("HERMES_SCREENSHOTS") or ROOT / "build" / "screenshots")
