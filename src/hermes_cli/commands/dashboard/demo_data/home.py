"""The folder of the sample data: beside HERMES_HOME, with a marker file."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from typing import TYPE_CHECKING, Final

from hermes_core import paths
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

MARKER: Final = "THIS-IS-A-DEMO.txt"
MARKER_TEXT: Final = """\
This folder contains sample data of `hermes demo`. Remove it with `hermes demo --remove`.
"""


def folder() -> Path:
    """The folder of the sample data; it may not exist."""
    own = paths.hermes_home()
    return own if is_demo(own) else own.with_name(f"{own.name}-demo")


def is_demo(home: Path) -> bool:
    """Whether a folder contains sample data."""
    return (home / MARKER).is_file()


def make() -> Path:
    """Create the folder if missing; raise UsageError if it contains other files."""
    place = folder()
    if place.exists() and any(place.iterdir()) and not is_demo(place):
        raise UsageError(f"{place} exists and contains no sample data. Move it elsewhere first.")
    paths.private_folder(place)
    (place / MARKER).write_text(MARKER_TEXT, encoding="utf-8")
    return place


def put_model(place: Path) -> None:
    """Configure the scripted model of the demo."""
    script = (
        resources.files("hermes_cli.commands.dashboard.demo_data")
        .joinpath("answers.yaml")
        .read_text("utf-8")
    )
    (place / "answers.yaml").write_text(script, encoding="utf-8")
    settings = {"llm": {"api": "script", "model": str(place / "answers.yaml")}}
    (place / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")


def remove() -> Path | None:
    """Remove the sample data; None if there is none."""
    place = folder()
    if not is_demo(place):
        return None
    shutil.rmtree(place)
    return place
