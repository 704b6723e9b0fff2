"""A wheel carries the page built in: hatchling calls this before it packs the files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent.parent


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds `web/dist` and the bundled plugin's script."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what a browser runs; a wheel without it is not made."""
        if version == "editable":
            return
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "set_up_page.py")], check=False)
        if done.returncode:
            raise RuntimeError("Building the web dashboard failed; see the lines above.")
        build_data["force_include"][str(ROOT / "web" / "dist")] = "hermes_dashboard/page"
