"""Take a picture of every page of the dashboard, in both themes and three widths.

.venv/bin/python tools/page_screenshots.py [FOLDER]

The pages show the demo history. FOLDER (default: build/screenshots) gets the pictures and, for
each theme and width, a sheet with all of them, which a person looks at.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dashboard_pictures import BROWSER, ROOT, served_demo
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTHS: Final = {1280: 860, 768: 1024, 390: 844}
THEMES: Final = ("light", "dark")
PAGES: Final = {
    "overview": "/",
    "chat": "/chat",
    "sessions": "/sessions",
    "search": "/sessions?q=deadline",
    "analytics": "/analytics?range=365",
    "achievements": "/achievements",
    "memory": "/memory",
    "schedules": "/schedules",
    "gateway": "/gateway",
    "models": "/models",
    "mcp": "/mcp",
    "hooks": "/hooks",
    "permissions": "/permissions",
    "data": "/data",
    "logs": "/logs",
    "plugins": "/plugins",
    "settings": "/settings",
}
SETTLED_MS: Final = 1200
SHEET_WIDTH: Final = 1800


def main(folder: Path) -> int:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with served_demo() as link, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(link)
        page.get_by_role("navigation").first.wait_for()
        state = page.context.storage_state()
        base = link.partition("#")[0].rstrip("/")
        for width, height in WIDTHS.items():
            for theme in THEMES:
                context = browser.new_context(
                    storage_state=state,
                    color_scheme=theme,
                    viewport={"width": width, "height": height},
                )
                names = take_pages(context.new_page(), base, folder / f"{theme}-{width}")
                context.close()
                make_sheet(browser, folder / f"{theme}-{width}", names, width)
        browser.close()
    return 0


def take_pages(page: Page, base: str, folder: Path) -> list[str]:
    """One picture of each page; their names."""
    folder.mkdir(exist_ok=True)
    for name, path in PAGES.items():
        page.goto(base + path)
        page.get_by_role("heading").first.wait_for()
        page.wait_for_timeout(SETTLED_MS)
        page.screenshot(path=folder / f"{name}.png")
    return list(PAGES)


def make_sheet(browser: Browser, folder: Path, names: list[str], width: int) -> None:
    """A picture of all pictures."""
    columns = max(2, round(SHEET_WIDTH / max(width * 0.45, 300)))
    pictures = "".join(
        f"<figure><img src='{folder.name}/{name}.png'><figcaption>{name}</figcaption></figure>"
        for name in names
    )
    style = (
        f"body{{display:grid;grid-template-columns:repeat({columns},1fr);gap:8px;margin:8px}}"
        "figure{margin:0;font:16px sans-serif}img{width:100%;border:1px solid #888}"
    )
    html = folder.with_suffix(".html")
    html.write_text(f"<style>{style}</style>{pictures}", "utf-8")
    page = browser.new_page(viewport={"width": SHEET_WIDTH, "height": 1000})
    page.goto(html.as_uri())
    page.screenshot(path=folder.with_suffix(".png"), full_page=True)
    page.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "screenshots"))
