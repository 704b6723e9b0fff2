"""The page in a browser: script time, layout shifts and the first paint of its heavy pages."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx2
from playwright.sync_api import sync_playwright

from dashboard import CHROMIUM, served
from figures import Figure, median

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from surroundings import BenchmarkContext

ROUNDS: Final = 5
MAX_SCRIPT_SECONDS: Final = 1.0
MAX_SHIFT: Final = 0.05
SETTLE_MS: Final = 4000
QUICK_SETTLE_MS: Final = 100
PAGES: Final = {
    "overview": "/",
    "analytics": "/analytics?range=all",
    "achievements": "/achievements",
}
WATCH_SHIFTS: Final = """
  window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
"""


class PageCost(NamedTuple):
    """What a page costs the browser."""

    script_seconds: float
    shift: float


def measure(context: BenchmarkContext) -> list[Figure]:
    """Script time and layout shift of each page, each time with an empty cache."""
    if not Path(CHROMIUM or "").exists():
        return []
    with (
        context.copy("pages") as path,
        served(path.parent) as (link, address, token),
        sync_playwright() as driver,
    ):
        _wait_until_counted(address, token)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(link)
        page.get_by_role("navigation").first.wait_for()
        state = page.context.storage_state()
        page.close()
        figures: list[Figure] = []
        settle_ms = QUICK_SETTLE_MS if context.is_quick else SETTLE_MS
        for name, path_of_page in PAGES.items():
            costs = [
                _load(browser, state, f"{address}{path_of_page}", settle_ms)
                for _ in range(context.rounds(ROUNDS))
            ]
            script = median([cost.script_seconds for cost in costs])
            shift = max(cost.shift for cost in costs)
            limits = (MAX_SCRIPT_SECONDS, MAX_SHIFT) if name == "analytics" else (None, MAX_SHIFT)
            figures += [
                Figure(f"{name}: script time", script, "s", None, limits[0]),
                Figure(f"{name}: layout shift", shift, "", None, limits[1]),
            ]
        browser.close()
    return figures


def _wait_until_counted(address: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=address, headers=headers, timeout=60) as client:
        while not client.get("/api/analytics").json()["is_complete"]:
            time.sleep(0.2)
        client.post("/api/plugins/hermes-achievements/rescan").raise_for_status()


def _load(browser: Browser, state: Any, address: str, settle_ms: int) -> PageCost:
    context = browser.new_context(storage_state=state, viewport={"width": 1440, "height": 900})
    context.add_init_script(WATCH_SHIFTS)
    page = context.new_page()
    metrics = context.new_cdp_session(page)
    metrics.send("Performance.enable")
    page.goto(address)
    page.get_by_role("main").get_by_role("heading").first.wait_for()
    page.wait_for_timeout(settle_ms)
    result = {
        item["name"]: item["value"] for item in metrics.send("Performance.getMetrics")["metrics"]
    }
    cost = PageCost(result["ScriptDuration"], page.evaluate("window.shifts"))
    context.close()
    return cost
