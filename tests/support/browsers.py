"""A real browser on the dashboard: sign-in, reported problems and outgoing requests."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import struct
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx2 as httpx
from playwright.sync_api import expect

from hermes_cli.commands.dashboard import links
from hermes_core.instance_record import DASHBOARD
from hermes_dashboard.page import Page as BuiltPage
from support.command_line import DASHBOARD_MODULES, start_program
from support.plain_http import NO_CERTIFICATES
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

    from hermes_dashboard.auth.access import Access
    from support.command_line import Process

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
# The microphone of the browser is a tone, and every page may use it.
MICROPHONE = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
# A page lives for a second: code that is optimised for later is not used. Tabs share the process
# that has compiled the scripts of the page.
SHORT_PAGES = ["--js-flags=--no-opt --no-maglev", "--process-per-site"]
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", *MICROPHONE, *SHORT_PAGES]
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 800}
# Reports every blocked resource as a console error, also where the browser shows nothing.
REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI}`));
"""
# The time of the page is the time of the test run (see tests/shifted_clock).
SHIFT_CLOCK = """
const Unshifted = Date;
Date = class extends Unshifted {
  constructor(...values) { values.length ? super(...values) : super(Date.now()); }
  static now() { return Unshifted.now() + %f * 1000; }
};
"""
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"

expect.set_options(timeout=PATIENCE_SECONDS * 1000)


def browser_program() -> str | None:
    """Chromium; without its window, where that is installed, it needs a quarter less CPU time."""
    names = ("chromium-headless-shell", "chromium")
    return next((path for name in names if (path := shutil.which(name))), None)


def missing_requirement() -> str | None:
    """Why browser tests cannot run here; None if they can."""
    if browser_program() is None:
        return "no Chromium: a real browser is needed (Debian package chromium-headless-shell)"
    if not BuiltPage.locate().is_built:
        return "the page is not built: python3 tools/set_up_page.py builds it"
    return None


@contextmanager
def loop_of(browser: Browser) -> Iterator[None]:
    """Set the browser's event loop as the running loop only while the browser is used.

    Playwright leaves its loop marked as running; async tests in the same process could then
    not start their own loop.
    """
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(browser._impl_obj._loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)


# The chat was left before its connection was open.
LEFT_EARLY: Final = "WebSocket is closed before the connection is established"


class BrowserProblems:
    """Console errors and requests to other servers, as reported by a browser."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.problems: list[str] = []
        self._allowed: list[re.Pattern[str]] = []

    def allow(self, pattern: str) -> None:
        """Ignore problems that match a pattern."""
        self._allowed.append(re.compile(pattern))

    def forget(self) -> None:
        """Forget the problems so far, and which are allowed."""
        self.problems.clear()
        self._allowed.clear()

    def watch(self, context: BrowserContext) -> None:
        """Record the problems of a context from its first page on."""
        context.add_init_script(REPORT_VIOLATIONS)
        if offset := os.environ.get("HERMES_TEST_CLOCK_OFFSET_SECONDS"):
            context.add_init_script(SHIFT_CLOCK % float(offset))
        context.on("console", self._on_console)
        context.on("weberror", lambda event: self.problems.append(f"threw: {event.error}"))
        context.on("request", self._on_request)

    def unexpected(self) -> list[str]:
        """The problems that no test allows."""
        return [text for text in self.problems if not any(p.search(text) for p in self._allowed)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and LEFT_EARLY not in message.text:
            self.problems.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _on_request(self, request: Request) -> None:
        own_prefixes = (f"{self.origin}/", self.origin.replace("http", "ws", 1), "data:", "blob:")
        if not request.url.startswith(own_prefixes):
            self.problems.append(f"asked another server: {request.url}")


class Visitor:
    """A browser context with its own cookies."""

    def __init__(self, browser: Browser, origin: str, **options: Any) -> None:
        self.problems = BrowserProblems(origin)
        options.setdefault("viewport", DESKTOP)
        self.context = browser.new_context(
            base_url=origin, locale="en-GB", accept_downloads=True, **options
        )
        self.context.set_default_timeout(PATIENCE_SECONDS * 1000)
        self.problems.watch(self.context)

    def sign_in(self, access: Access) -> None:
        """Add a session cookie, as a sign-in link does."""
        cookie = {"name": access.origins.cookie, "value": access.cookies.create("")}
        self.context.add_cookies([{**cookie, "url": self.problems.origin}])

    def open(self, path: str = "/") -> Page:
        """Open a path in a new tab."""
        page = self.context.new_page()
        page.goto(path)
        return page

    def forget(self, page: Page) -> None:
        """Delete what a tab stored except cookies; fail on unexpected problems."""
        if page.url.startswith(self.problems.origin):
            page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self._check()

    def close(self) -> None:
        """Close the context; fail on unexpected problems."""
        self.context.close()
        self._check()

    def _check(self) -> None:
        problems = self.problems.unexpected()
        self.problems.problems.clear()
        assert not problems, "\n".join(["the browser reported:", *problems])


class ReturningVisitor(Visitor):
    """A visitor for many tests with one tab: the browser keeps the compiled scripts of the page.

    Each test signs in again, to a dashboard of its own with the address of the one before.
    """

    def __init__(self, browser: Browser, origin: str) -> None:
        super().__init__(browser, origin)
        self.tab = self.context.new_page()

    def open(self, path: str = "/") -> Page:
        """Open a path in the tab."""
        self.tab.goto(path)
        return self.tab

    def leave(self) -> None:
        """Leave the page and delete everything stored; fail on unexpected problems."""
        # A picture without scripts; an empty tab would get a process without the scripts.
        self.tab.goto("/favicon.svg")
        self.tab.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.context.clear_cookies()
        try:
            self._check()
        finally:
            self.problems.forget()


class Tabs:
    """Further tabs of a returning visitor, in the process that has compiled the scripts.

    Scripts, listeners, routes and the size of a tab end with it.
    """

    def __init__(self, visitor: ReturningVisitor) -> None:
        self._visitor = visitor
        self._opened: list[Page] = []

    def new(self) -> Page:
        """An empty tab."""
        self._opened.append(self._visitor.context.new_page())
        return self._opened[-1]

    def open(self, path: str) -> Page:
        """Open a path in a new tab."""
        page = self.new()
        page.goto(path)
        return page

    def close(self) -> None:
        """Close the tabs."""
        for page in self._opened:
            page.close()


class DashboardProcess(NamedTuple):
    """A Hermes folder with a dashboard process."""

    folder: Path
    url: str
    process: Process

    def link(self) -> str:
        """A new sign-in link."""
        return links.request_link(links.find_running(self.folder))

    def get_json(self, path: str) -> Any:
        """The JSON of a path."""
        token = links.find_running(self.folder).token
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(
            f"{self.url}{path}",
            headers=headers,
            trust_env=False,
            timeout=PATIENCE_SECONDS,
            verify=NO_CERTIFICATES,
        ).json()


@contextmanager
def dashboard_process(
    folder: Path, *arguments: str, **environment: str
) -> Iterator[DashboardProcess]:
    """`hermes dashboard` on *folder*."""
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as err, Path(os.devnull).open("wb") as null:
        process = start_program(
            "hermes_cli",
            *("dashboard", "--no-open", "--port", "0", *arguments),
            streams=(null.fileno(), err.fileno()),
            preloaded=DASHBOARD_MODULES,
            **{"HERMES_HOME": str(folder), **environment},
        )
    try:
        wait_until(lambda: DASHBOARD.find(folder) or process.poll() is not None)
        record = DASHBOARD.find(folder)
        assert record is not None, log.read_text()
        yield DashboardProcess(folder, record.url, process)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


def follow(page: Page, path: str) -> None:
    """Go to a path as a link does: the scripts of the page are not loaded again."""
    page.evaluate("(path) => history.pushState(null, '', path)", path)


def follow_to_another_page(page: Page, path: str) -> None:
    """Follow a path to a page with another component, and wait until this page has left."""
    page.evaluate("document.querySelector('main :is(h1, h2, h3)').dataset.left = ''")
    follow(page, path)
    expect(page.locator("[data-left]")).to_have_count(0)


def axe_violations(page: Page, *tags: str) -> list[str]:
    """The accessibility violations that axe finds after all transitions, one per line.

    Two badges of each state and tier are examined: axe needs seconds for the hundreds of a page.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8") + "; null")
    result = page.evaluate(
        """async (tags) => {
          for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
          for (const each of document.getAnimations()) {
            if (each.effect.getComputedTiming().endTime !== Infinity) each.finish();
          }
          const examined = {};
          for (const { dataset } of document.querySelectorAll("li.ach-card")) {
            const kind = `${dataset.state} ${dataset.tier}`;
            examined[kind] = (examined[kind] ?? 0) + 1;
            if (examined[kind] > 2) dataset.repeated = "";
          }
          const options = { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] };
          const result = await axe.run({ exclude: [["[data-repeated]"]] }, options);
          return result.violations.flatMap((rule) => rule.nodes.slice(0, 3).map((node) =>
            `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary.replaceAll("\\n", " ")}`));
        }""",
        list(tags),
    )
    return [str(item) for item in result]


class PngImage(NamedTuple):
    """The size of a PNG and its number of distinct rows."""

    width: int
    height: int
    rows: int

    @classmethod
    def read(cls, data: bytes) -> PngImage:
        """Decode a PNG; a blank image has one or two distinct rows."""
        assert data.startswith(PNG_MAGIC)
        width, height = struct.unpack(">II", data[16:24])
        offset, packed = len(PNG_MAGIC), b""
        while offset < len(data):
            (length,) = struct.unpack(">I", data[offset : offset + 4])
            if data[offset + 4 : offset + 8] == b"IDAT":
                packed += data[offset + 8 : offset + 8 + length]
            offset += length + 12
        raw = zlib.decompress(packed)
        row = len(raw) // height
        rows = {raw[start + 1 : start + row] for start in range(0, len(raw), row)}
        return cls(width, height, len(rows))


def overflowing_elements(page: Page) -> list[str]:
    """Elements that extend beyond the window on the right without being scrollable."""
    result = page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          const scrolls = (element) => {
            for (let node = element.parentElement; node; node = node.parentElement) {
              const x = getComputedStyle(node).overflowX;
              if (x === "auto" || x === "scroll" || x === "hidden" || x === "clip") return true;
            }
            return false;
          };
          const wide = [...document.querySelectorAll("body *")].filter((element) => {
            const box = element.getBoundingClientRect();
            return box.width > 0 && box.right > width + 1 && !scrolls(element);
          });
          const inside = document.scrollingElement.scrollWidth > width + 1;
          const main = document.querySelector("main");
          const clipped = main && main.scrollWidth > main.clientWidth + 1 ? ["main"] : [];
          return [...wide.map((element) => `${element.tagName}.${element.className}`).slice(0, 5),
                  ...(inside ? ["the page itself"] : []), ...clipped];
        }"""
    )
    return [str(item) for item in result]


def wait_until_settled(page: Page) -> None:
    """Wait until nothing is being fetched and no loader is shown."""
    expect(page.get_by_label("Loading")).to_have_count(0)
    expect(page.locator("p[class*='_plain_']")).to_have_count(0)  # Markdown before it is drawn
    page.wait_for_function("() => document.fonts.status === 'loaded'")


def write_measurement(folder: Path, name: str, values: Any) -> None:
    """Write a measurement to a file of the test run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(values, indent=2))
