"""A scripted model for the daemon, and a project folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.daemons import stopping_daemon
from support.model_servers import configured_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.scripted_server import ScriptServer


@pytest.fixture
def script() -> Iterator[Callable[[str], ScriptServer]]:
    """Configures a model with these steps; the daemon is stopped at the end."""
    with configured_models() as configure, stopping_daemon():
        yield configure


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
