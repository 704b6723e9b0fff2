"""Figures of the campaigns: collected, shown at the end, kept after a full run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from acceptance import campaign

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIGURES = pytest.StashKey[campaign.Figures]()


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Note what a campaign found, under its name."""
    kept = request.config.stash.setdefault(FIGURES, {})

    def note(name: str, **numbers: Any) -> None:
        kept[name] = {
            key: round(value, 4) if isinstance(value, float) else value
            for key, value in numbers.items()
        }

    return note


@pytest.fixture
def state_db(hermes_home: Path) -> Path:
    """Where the store of this test lies."""
    return hermes_home / "state.db"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    figures = config.stash.get(FIGURES, {})
    if not figures:
        return
    terminalreporter.section("figures of the fault campaigns")
    for name, numbers in figures.items():
        listed = ", ".join(f"{key} {value}" for key, value in numbers.items())
        terminalreporter.write_line(f"{name}: {listed}")
    if campaign.IS_FULL:
        campaign.save(figures)
        terminalreporter.write_line(f"kept in {campaign.RESULTS.relative_to(campaign.ROOT)}")
