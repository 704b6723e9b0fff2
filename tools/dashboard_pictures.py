"""Take the pictures of the dashboard in docs/images, of the demo, in a real browser.

.venv/bin/python tools/dashboard_pictures.py

It makes a demo in a folder of its own, serves it, and removes it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
HERMES = [sys.executable, "-P", "-m", "hermes_cli"]
SIZE = {"width": 1360, "height": 850}
PAGES = {"overview": "/", "sessions": "/sessions", "analytics": "/analytics?range=365"}
SETTLED_MS = 2500


def main() -> int:
    """Take all of them."""
    with served_demo() as link:
        take_all(link)
    return 0


@contextmanager
def served_demo() -> Iterator[str]:
    """A demo behind a dashboard; its sign-in link. It is deleted afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "HERMES_HOME": str(Path(folder) / "hermes")}
        subprocess.run([*HERMES, "demo", "--make"], check=True, env=own)
        demo = {**own, "HERMES_HOME": f"{own['HERMES_HOME']}-demo"}
        with subprocess.Popen(
            [*HERMES, "dashboard", "--no-open", "--json", "--port", "0"],
            stdout=subprocess.PIPE,
            env=demo,
        ) as server:
            assert server.stdout is not None  # noqa: S101 - a pipe was asked for
            link = json.loads(server.stdout.readline())["link"]
            try:
                yield link
            finally:
                server.terminate()
        subprocess.run([*HERMES, "serve", "--stop"], check=False, env=demo)


def take_all(link: str) -> None:
    """One browser, every page."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_context(color_scheme="dark", viewport=SIZE).new_page()
        page.goto(link)
        base = link.partition("#")[0].rstrip("/")
        page.get_by_role("heading", name="Overview").wait_for()
        page.get_by_text("Counting your history").wait_for(state="detached", timeout=120_000)
        for name, path in PAGES.items():
            page.goto(base + path)
            take(page, name)
        page.goto(f"{base}/achievements")
        page.get_by_role("heading", level=1).wait_for()
        page.get_by_text("Scanned").wait_for(state="detached")
        take(page, "achievements")
        page.goto(f"{base}/sessions?q=deadline")
        page.get_by_role("region", name="Search results").locator("[data-list-item]").first.click()
        take(page, "transcript")
        page.goto(f"{base}/chat")
        page.get_by_label("Message to the agent").fill("Hello, who are you?")
        page.keyboard.press("Enter")
        page.get_by_text("milestones in your history").wait_for(timeout=120_000)
        take(page, "chat")
        browser.close()


def take(page: Page, name: str) -> None:
    """A picture, when everything has settled."""
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=IMAGES / f"dashboard-{name}.png")


if __name__ == "__main__":
    sys.exit(main())
