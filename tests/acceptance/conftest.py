"""Figures of the campaigns: collected, shown at the end, kept after a full run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from acceptance import campaign
from hermes_core.config.file import ConfigFile
from support.scripted import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FIGURES = "figures of a campaign"


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Note what a campaign found, under its name."""

    def note(name: str, **numbers: Any) -> None:
        rounded = {
            key: round(value, 4) if isinstance(value, float) else value
            for key, value in numbers.items()
        }
        # A property of the test travels with its report, from whichever process it ran in.
        request.node.user_properties.append((FIGURES, (name, rounded)))

    return note


@pytest.fixture
def state_db(hermes_home: Path) -> Path:
    """Where the store of this test lies."""
    return hermes_home / "state.db"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    figures: campaign.Figures = dict(
        value for report in reports for name, value in report.user_properties if name == FIGURES
    )
    if not figures:
        return
    terminalreporter.section("figures of the fault campaigns")
    for name, numbers in figures.items():
        listed = ", ".join(f"{key} {value}" for key, value in numbers.items())
        terminalreporter.write_line(f"{name}: {listed}")
    if campaign.IS_FULL:
        campaign.save(figures)
        terminalreporter.write_line(f"kept in {campaign.RESULTS.relative_to(campaign.ROOT)}")


@pytest.fixture
def model(hermes_home: Path) -> Iterator[Any]:
    with serving() as start:
        server = start("[]")
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", server.base_url)
        config.set("llm.model", "scripted")
        config.set("gateway.attempts", "1000")  # a kill here is no fault of the message
        yield
