"""The module `hermes_constants` of hermes-agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core import paths

if TYPE_CHECKING:
    from pathlib import Path


def get_hermes_home() -> Path:
    """The folder of Hermes: `HERMES_HOME`, else `~/.hermes`."""
    return paths.hermes_home()
