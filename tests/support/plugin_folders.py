"""Plugins made for one test, in the home of that test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Writes what it hears to heard.jsonl in the home.
LISTENING = """
import json, os, pathlib
def listener(hook):
    def hear(**facts):
        path = pathlib.Path(os.environ["HERMES_HOME"]) / "heard.jsonl"
        with path.open("a") as file:
            file.write(json.dumps({"hook": hook, **facts}) + "\\n")
        return facts.get("answer")
    return hear
def register(ctx):
    for name in ("on_session_finalize", "on_session_reset", "on_session_boundary",
                 "on_session_start"):
        ctx.register_hook(name, listener(name))
"""


def make_plugin(home: Path, key: str, code: str, manifest: str = "version: '1'") -> None:
    """A plugin's folder."""
    folder = home / "plugins" / key
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(manifest)
    (folder / "__init__.py").write_text(code)


def heard(home: Path) -> list[str]:
    """The lines that the listening plugin wrote."""
    path = home / "heard.jsonl"
    return path.read_text().splitlines() if path.exists() else []
