"""A real browser on the dashboard: who is let in, what it complains about, what it asks for."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import struct
import subprocess
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2 as httpx
from playwright.sync_api import expect

from hermes_cli.commands.dashboard import links
from hermes_core.instance_record import DASHBOARD
from hermes_dashboard.page import Page as BuiltPage
from support.command_line import command
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

    from hermes_dashboard.auth.access import Access

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 800}
# The page's own tell-tale: whatever the policy stops is a complaint, even where nothing shows it.
TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI}`));
"""
# The time of the page is the time of the test run (see tests/shifted_clock).
SHIFT_CLOCK = """
const Unshifted = Date;
Date = class extends Unshifted {
  constructor(...given) { given.length ? super(...given) : super(Date.now()); }
  static now() { return Unshifted.now() + %f * 1000; }
};
"""
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"

expect.set_options(timeout=PATIENCE_SECONDS * 1000)


def missing() -> str | None:
    """Why no test of the page can run here, if so."""
    if shutil.which("chromium") is None:
        return "no chromium: a real browser is needed (Debian package chromium)"
    if not BuiltPage.locate().is_built:
        return "the page is not built: python3 tools/set_up_page.py builds it"
    return None


@contextmanager
def loop_of(browser: Browser) -> Iterator[None]:
    """Let the browser's event loop be the thread's only while somebody uses the browser.

    Playwright leaves its loop marked as running; tests with loops of their own, which may be
    next in the same process, would be refused theirs.
    """
    asyncio._set_running_loop(browser._impl_obj._loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


class Complaints:
    """What a browser had to say against what it was shown, and whom it asked."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.found: list[str] = []
        self._allowed: list[re.Pattern[str]] = []

    def allow(self, pattern: str) -> None:
        """A complaint that a test is about."""
        self._allowed.append(re.compile(pattern))

    def watch(self, context: BrowserContext) -> None:
        """Hear everything of a context, from its first page on."""
        context.add_init_script(TELL_VIOLATIONS)
        if offset := os.environ.get("HERMES_TEST_CLOCK_OFFSET_SECONDS"):
            context.add_init_script(SHIFT_CLOCK % float(offset))
        context.on("console", self._hear)
        context.on("weberror", lambda item: self.found.append(f"threw: {item.error}"))
        context.on("request", self._see)

    def unexpected(self) -> list[str]:
        """What no test allowed."""
        return [item for item in self.found if not any(p.search(item) for p in self._allowed)]

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.found.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _see(self, request: Request) -> None:
        own = (f"{self.origin}/", self.origin.replace("http", "ws", 1), "data:", "blob:")
        if not request.url.startswith(own):
            self.found.append(f"asked another server: {request.url}")


class Visitor:
    """Somebody with a browser; each has cookies of their own."""

    def __init__(self, browser: Browser, origin: str, **wishes: Any) -> None:
        self.complaints = Complaints(origin)
        wishes.setdefault("viewport", DESK)
        self.context = browser.new_context(
            base_url=origin, locale="en-GB", accept_downloads=True, **wishes
        )
        self.context.set_default_timeout(PATIENCE_SECONDS * 1000)
        self.complaints.watch(self.context)

    def let_in(self, access: Access) -> None:
        """With a cookie, as after a link."""
        cookie = {"name": access.origins.cookie, "value": access.cookies.create("")}
        self.context.add_cookies([{**cookie, "url": self.complaints.origin}])

    def open(self, path: str = "/") -> Page:
        """A new tab."""
        page = self.context.new_page()
        page.goto(path)
        return page

    def close(self) -> None:
        """Leave; complain about whatever there was to complain about."""
        self.context.close()
        result = self.complaints.unexpected()
        assert not result, "\n".join(["the browser complains:", *result])


class Home(NamedTuple):
    """A Hermes folder with a dashboard as a process of its own."""

    folder: Path
    url: str
    process: subprocess.Popen[str]

    def link(self) -> str:
        """A fresh way in."""
        return links.request_link(links.find_running(self.folder))

    def ask(self, path: str) -> Any:
        """The JSON of a path."""
        token = links.find_running(self.folder).token
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(
            f"{self.url}{path}", headers=headers, trust_env=False, timeout=PATIENCE_SECONDS
        ).json()


@contextmanager
def running(folder: Path, *arguments: str, **environment: str) -> Iterator[Home]:
    """`hermes dashboard` on *folder*."""
    words = command("dashboard", "--no-open", "--port", "0", *arguments)
    log = folder.with_name(f"{folder.name}.log")
    with log.open("w") as err:
        process = subprocess.Popen(
            words,
            stdout=subprocess.DEVNULL,
            stderr=err,
            text=True,
            env={**os.environ, "HERMES_HOME": str(folder), **environment},
        )
    try:
        wait_until(lambda: DASHBOARD.find(folder) or process.poll() is not None)
        result = DASHBOARD.find(folder)
        assert result is not None, log.read_text()
        yield Home(folder, result.url, process)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


def axe(page: Page, *tags: str) -> list[str]:
    """What axe finds wrong with what is on the page: one line for each place."""
    page.evaluate(AXE.read_text("utf-8") + "; null")
    result = page.evaluate(
        """async (tags) => {
          const options = { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] };
          const result = await axe.run(document, options);
          return result.violations.flatMap((one) => one.nodes.slice(0, 3).map((node) =>
            `${one.id}: ${node.target.join(" ")}: ${node.failureSummary.replaceAll("\\n", " ")}`));
        }""",
        list(tags),
    )
    return [str(item) for item in result]


class Picture(NamedTuple):
    """A PNG, decoded by hand."""

    width: int
    height: int
    rows: int

    @classmethod
    def read(cls, data: bytes) -> Picture:
        """Its size, and how many different rows it has: a blank sheet has one or two."""
        assert data.startswith(PNG_MAGIC)
        width, height = struct.unpack(">II", data[16:24])
        place, packed = len(PNG_MAGIC), b""
        while place < len(data):
            (length,) = struct.unpack(">I", data[place : place + 4])
            if data[place + 4 : place + 8] == b"IDAT":
                packed += data[place + 8 : place + 8 + length]
            place += length + 12
        raw = zlib.decompress(packed)
        row = len(raw) // height
        rows = {raw[start + 1 : start + row] for start in range(0, len(raw), row)}
        return cls(width, height, len(rows))


def overflow(page: Page) -> list[str]:
    """What sticks out of the window to the right, though nobody can scroll there."""
    result = page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          const scrolls = (element) => {
            for (let one = element.parentElement; one; one = one.parentElement) {
              const x = getComputedStyle(one).overflowX;
              if (x === "auto" || x === "scroll" || x === "hidden" || x === "clip") return true;
            }
            return false;
          };
          const wide = [...document.querySelectorAll("body *")].filter((one) => {
            const box = one.getBoundingClientRect();
            return box.width > 0 && box.right > width + 1 && !scrolls(one);
          });
          const inside = document.scrollingElement.scrollWidth > width + 1;
          const main = document.querySelector("main");
          const clipped = main && main.scrollWidth > main.clientWidth + 1 ? ["main"] : [];
          return [...wide.map((one) => `${one.tagName}.${one.className}`).slice(0, 5),
                  ...(inside ? ["the page itself"] : []), ...clipped];
        }"""
    )
    return [str(item) for item in result]


def settled(page: Page) -> None:
    """Wait until nothing is being fetched and no loader is shown."""
    expect(page.get_by_label("Loading")).to_have_count(0)
    expect(page.locator("p[class*='_plain_']")).to_have_count(0)  # Markdown before it is drawn
    page.wait_for_function("() => document.fonts.status === 'loaded'")


def recorded(folder: Path, name: str, facts: Any) -> None:
    """Keep a measurement for whoever looks at the run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(facts, indent=2))
