"""What messages of the chat page contain: files, pictures, formulas, tables."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from support.browsers import PHONE, axe_violations
from support.chat_browser import ask, log
from support.images import PIXEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from support.browsers import Tabs

NATURAL_WIDTH = "image => image.decode().then(() => image.naturalWidth)"


def test_files_and_pictures_are_chips_and_no_path_is_shown(
    set_model_steps: Callable[[str], str], page: Page, tmp_path: Path
) -> None:
    set_model_steps("[]")
    (tmp_path / "notes.txt").write_text("remember the milk")
    for name in ("dot.png", "removed.png"):
        (tmp_path / name).write_bytes(PIXEL)
    page.goto("/chat")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Attach files").click()
    choosing.value.set_files([tmp_path / f for f in ("notes.txt", "dot.png", "removed.png")])
    expect(page.get_by_role("button", name="Remove dot.png")).to_be_visible()
    page.get_by_role("button", name="Remove removed.png").click()  # and only that one
    page.get_by_role("button", name="Send", exact=True).click()
    expect(log(page).get_by_text("You said:")).to_be_visible()
    prompt = log(page).locator("[data-waiting=false]")
    picture = log(page).get_by_role("img", name="Attached image")
    for _ in range(2):  # live, and reopened
        expect(prompt).to_contain_text("notes.txt")
        assert "uploads" not in prompt.inner_text()
        expect(picture).to_have_count(1)
        assert picture.evaluate(NATURAL_WIDTH) == 1
        page.reload()
        expect(prompt).to_be_visible()
    recent = page.get_by_role("navigation", name="Recent conversations")
    expect(recent).to_contain_text("Please look at the attached files.")
    assert "uploads" not in recent.inner_text()


def test_formulas_embedded_images_and_aligned_tables_are_drawn(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    data = base64.b64encode(PIXEL).decode()
    answer = (
        r"Euler: $e^{i\pi} = -1$, also \(a^2\); it costs $5 or $10." + "\n\n"
        f"![dot](data:image/png;base64,{data}) ![far](https://example.org/far.png)\n\n"
        "| item | price | |\n| --- | ---: | --- |\n| tea | 3 | x |\n"
    )
    set_model_steps(f"[{{say: {json.dumps(answer)}}}, {{say: Plain.}}]")
    page.goto("/chat")
    scripts: list[str] = []
    page.on("request", lambda request: scripts.append(request.url))
    ask(page, "Draw")
    expect(log(page).locator("math")).to_have_count(2)
    expect(log(page).get_by_text(re.compile(r"it costs \$5 or \$10"))).to_be_visible()
    assert log(page).get_by_role("img", name="dot").evaluate(NATURAL_WIDTH) == 1
    expect(log(page).get_by_text("[far: https://example.org/far.png]")).to_be_visible()
    expect(log(page).locator("th")).to_have_count(2)  # an empty heading is no heading
    cell = log(page).get_by_role("cell", name="3")
    assert cell.evaluate("cell => getComputedStyle(cell).textAlign") == "right"
    assert any("FormulaRenderer" in url for url in scripts)


DIAGRAMS = """\
```mermaid
flowchart LR
  A[Start] --> B{Choice}
  click A href "javascript:parent.evil = 1"
  B --> C["<img src=x onerror='parent.evil = 2'>"]
```

```mermaid
sequenceDiagram
  Alice->>Bob: Hello
```

```mermaid
flowchart LR
  A[Start --> B
```
"""


def test_diagrams_are_drawn_without_an_origin_and_a_broken_one_shows_its_source(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    set_model_steps(f"[{{say: Plain.}}, {{say: {json.dumps(DIAGRAMS)}}}]")
    page.goto("/chat")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    ask(page, "Nothing to draw")
    expect(log(page).get_by_text("Plain.")).to_be_visible()
    assert not any("diagram" in url.lower() for url in requests)
    ask(page, "Draw")
    pictures = log(page).get_by_role("img", name=re.compile("^Diagram"))
    expect(pictures).to_have_count(2)
    assert [one.evaluate(NATURAL_WIDTH) > 50 for one in pictures.all()] == [True, True]
    broken = log(page).get_by_role("status").filter(has_text="This diagram cannot be drawn: ")
    expect(broken).to_contain_text("Parse error on line")
    expect(log(page).locator("code.language-mermaid")).to_contain_text("A[Start --> B")
    frame = page.locator("iframe")
    expect(frame).to_have_count(1)
    expect(frame).to_have_attribute("sandbox", "allow-scripts")
    inner = page.frames[1]
    assert inner.evaluate("window.origin") == "null"
    assert page.evaluate("window.evil") is None
    light = pictures.first.get_attribute("src") or ""
    assert "javascript" not in light
    page.get_by_role("button", name="Use dark theme").click()
    expect(pictures.first).not_to_have_attribute("src", light)
    log(page).get_by_role("button", name="Show source").first.click()
    expect(log(page).get_by_text("A[Start] --> B{Choice}")).to_be_visible()
    assert axe_violations(page, "wcag2a", "wcag2aa") == []
    hosts = {url.split("/")[2] for url in requests if url.startswith("http")}
    assert hosts == {page.url.split("/")[2]}


def test_long_words_of_a_table_are_whole_on_a_phone(
    set_model_steps: Callable[[str], str], tabs: Tabs
) -> None:
    words = ["configuration_of_the_gateway", "Donaudampfschifffahrt", "https://example.org/a/path"]
    rows = [" | ".join(words), " | ".join("---" for _ in words), " | ".join(["x"] * len(words))]
    answer = "\n".join(f"| {row} |" for row in rows)
    set_model_steps(f"[{{say: {json.dumps(answer)}}}]")
    page = tabs.open("/chat")
    page.set_viewport_size(PHONE)
    ask(page, "Tabulate")
    headings = log(page).get_by_role("columnheader")
    expect(headings).to_have_text(words)
    lines = "cell => { const r = document.createRange(); r.selectNodeContents(cell);"
    lines += " return new Set([...r.getClientRects()].map(one => one.top)).size }"
    assert [heading.evaluate(lines) for heading in headings.all()] == [1, 1, 1]
    scroller = log(page).locator(".table-scroll")
    assert scroller.evaluate("one => one.scrollWidth > one.clientWidth")
    headings.last.scroll_into_view_if_needed()
    expect(headings.last).to_be_in_viewport(ratio=0.99)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_failed_and_denied_calls_have_no_tick(
    set_model_steps: Callable[[str], str], page: Page
) -> None:
    """Live and after a reload, as the transcript shows them."""
    command = "{name: terminal, arguments: {command: 'ls /nonexistent; exit 3'}}"
    todo = "{name: todo, arguments: {items: none}}"
    denied = "{name: terminal, arguments: {command: 'rm -rf build'}}"
    set_model_steps(
        f"[{{calls: [{command}]}}, {{calls: [{todo}]}}, {{calls: [{denied}]}}, {{say: Done.}}]"
    )
    page.goto("/chat")
    ask(page, "try")
    page.get_by_role("button", name="Deny", exact=True).click()
    expect(log(page).get_by_text("Done.")).to_be_visible()
    rows = log(page).locator("details")
    for _ in range(2):  # live, and reopened
        expect(rows).to_have_count(3)
        expect(rows.locator("[aria-label=failed]")).to_have_count(3)
        expect(rows.nth(0)).to_contain_text("exit code 3")
        expect(rows.nth(1)).to_contain_text("failed")
        expect(rows.nth(2)).to_contain_text("denied")
        page.reload()
        expect(log(page).get_by_text("Done.")).to_be_visible()
