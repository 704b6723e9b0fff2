"""Fixtures of imports: an open history, and samples of other agents that can be changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_import.importer import AgentImport
from hermes_import.registry import SourceRegistry
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_import.importer import SourceReport

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "agents"


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


@pytest.fixture
def import_from(db: SessionDB) -> Callable[[str, Path], SourceReport]:
    """Import the history of an agent in a folder."""

    def run(agent: str, path: Path) -> SourceReport:
        found = SourceRegistry().found_at(agent, path)
        return AgentImport(db, found.source).run(found.units())

    return run


@pytest.fixture
def sample_copy(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of the sample of an agent, which can be changed."""

    def copy(agent: str) -> Path:
        if not (SAMPLES / agent).exists():
            pytest.skip("the samples are not here")
        home = tmp_path / "sample" / agent
        shutil.copytree(SAMPLES / agent, home)
        for path in (home, *home.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return home

    return copy
