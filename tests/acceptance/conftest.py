"""Figures of the campaigns: collected, printed at the end, saved after a full run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from acceptance import campaign
from hermes_core.config.file import ConfigFile
from support.model_servers import model_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FIGURES = "figures of a campaign"


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Record the figures of a campaign under its name."""

    def record(name: str, **numbers: Any) -> None:
        rounded = {
            key: round(value, 4) if isinstance(value, float) else value
            for key, value in numbers.items()
        }
        # A property of the test travels with its report, from whichever process it ran in.
        request.node.user_properties.append((FIGURES, (name, rounded)))

    return record


@pytest.fixture
def state_db(hermes_home: Path) -> Path:
    """The path of this test's store."""
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
        terminalreporter.write_line(f"saved in {campaign.RESULTS.relative_to(campaign.ROOT)}")


@pytest.fixture
def model(hermes_home: Path) -> Iterator[Any]:
    with model_servers() as start:
        server = start("[]")
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", server.base_url)
        config.set("llm.model", "scripted")
        config.set(
            "gateway.attempts", "1000"
        )  # the kills must not exhaust the attempts of a message
        yield
