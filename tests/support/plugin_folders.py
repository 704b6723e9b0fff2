"""Plugins for one test, in the home of that test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

# Appends every hook call to hook_calls.jsonl in the home.
RECORDER_PLUGIN = """
import json, os, pathlib
def recorder(hook):
    def record(**fields):
        path = pathlib.Path(os.environ["HERMES_HOME"]) / "hook_calls.jsonl"
        with path.open("a") as file:
            file.write(json.dumps({"hook": hook, **fields}) + "\\n")
        return fields.get("answer")
    return record
def register(ctx):
    for name in ("on_session_finalize", "on_session_reset", "on_session_boundary",
                 "on_session_start"):
        ctx.register_hook(name, recorder(name))
"""


def add_misbehaving_plugin(home: Path) -> None:
    """Add the plugin that fails as HERMES_MISBEHAVE selects."""
    shutil.copytree(Path(__file__).with_name("misbehaving"), home / "plugins" / "misbehaving")


def make_plugin(home: Path, key: str, code: str, manifest: str = "version: '1'") -> None:
    """Create the folder of a plugin."""
    folder = home / "plugins" / key
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(manifest)
    (folder / "__init__.py").write_text(code)


# Registers for every hook; appends the names and values of the facts to hook_facts.jsonl.
FACTS_PLUGIN = """
import json, os, pathlib
from hermes_core.hooks import HOOKS
def recorder(hook):
    def record(**facts):
        path = pathlib.Path(os.environ["HERMES_HOME"]) / "hook_facts.jsonl"
        with path.open("a") as file:
            file.write(json.dumps({"hook": hook, "facts": facts}, default=repr) + "\\n")
    return record
def register(ctx):
    for hook in HOOKS:
        ctx.register_hook(hook.name, recorder(hook.name))
"""


def enable_plugins(home: Path, **codes: str) -> Path:
    """Create plugins and enable them."""
    for key, code in codes.items():
        make_plugin(home, key, code)
    (home / "config.yaml").write_text(f"plugins: {{enabled: [{', '.join(codes)}]}}\n")
    return home


def recorded_facts(home: Path, hook: str) -> list[dict[str, Any]]:
    """The facts of each call of a hook, as the facts plugin recorded them."""
    path = home / "hook_facts.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    calls = [json.loads(line) for line in lines]
    return [call["facts"] for call in calls if call["hook"] == hook]


def make_dashboard_plugin(root: Path, name: str, code: str | None = None, **manifest: Any) -> Path:
    """Create the dashboard folder of a plugin below *root*; *code* is its Python API."""
    folder = root / name / "dashboard"
    (folder / "dist").mkdir(parents=True)
    (folder / "dist" / "index.js").write_text("register()")
    fields: dict[str, Any] = {"name": name, **manifest}
    if code is not None:
        (folder / "plugin_api.py").write_text(code)
        fields["api"] = "plugin_api.py"
    (folder / "manifest.json").write_text(json.dumps(fields))
    return folder


def recorded_calls(home: Path) -> list[str]:
    """The lines that the recorder plugin wrote."""
    path = home / "hook_calls.jsonl"
    return path.read_text().splitlines() if path.exists() else []
