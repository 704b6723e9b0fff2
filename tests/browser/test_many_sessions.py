"""Six thousand sessions in one list."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsers import ROOT, write_measurement

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.browsers import DashboardProcess, Visitor

SESSIONS = 6_000
# Scrolls by a screen and a half at every frame, and notes how long each took.
SCROLL = """async (steps) => {
  const list = document.querySelector('table[aria-label="Sessions"]').parentElement;
  const frames = [];
  let most = 0, last = performance.now();
  for (let step = 0; step < steps; step++) {
    list.scrollTop += 900;
    const now = await new Promise((done) => requestAnimationFrame(done));
    frames.push(now - last);
    last = now;
    most = Math.max(most, list.querySelectorAll("tbody tr").length);
  }
  return { frames, most, top: list.scrollTop };
}"""


@pytest.fixture
def many_sessions(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[..., DashboardProcess]
) -> DashboardProcess:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    from history import Size, make  # noqa: PLC0415 - the benchmarks are programs, no package

    make(hermes_home / "state.db", Size(SESSIONS, SESSIONS + 1_000), 1)
    return start(hermes_home)


def test_a_list_of_six_thousand_scrolls_and_stays_small(
    many_sessions: DashboardProcess, visit: Callable[..., Visitor], artefacts: Path
) -> None:
    page = visit(many_sessions.url).open(many_sessions.link().replace("/#", "/sessions#"))
    table = page.get_by_role("table", name="Sessions")
    rows = table.locator("tbody").get_by_role("row")
    expect(rows.first).to_be_visible()
    total = int(table.get_attribute("aria-rowcount") or 0) - 1
    assert total > SESSIONS * 0.8  # branches and compactions are grouped with their conversations
    frames: list[float] = []
    for _ in range(30):
        result = page.evaluate(SCROLL, 20)
        frames += result["frames"]
        assert result["most"] < 60, "all rows are in the page"
        if result["top"] > 1_500 * 44:
            break
    assert result["top"] > 1_500 * 44, "it does not go on"
    folder = int(rows.first.get_attribute("aria-rowindex") or 0)
    assert folder > 1_400
    slow = sorted(frames)
    write_measurement(
        artefacts,
        "scrolling.json",
        {
            "sessions": total,
            "frames": len(slow),
            "median_ms": slow[len(slow) // 2],
            "p95_ms": slow[int(len(slow) * 0.95)],
            "worst_ms": slow[-1],
        },
    )
