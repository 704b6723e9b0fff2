"""A plugin that records the session boundary hooks and their session IDs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN_CODE = """
def register(ctx):
    for name in ("on_session_end", "on_session_finalize"):
        def record(name=name, **fields):
            with open({path!r}, "a") as file:
                file.write(name + " " + fields["session_id"] + chr(10))
        ctx.register_hook(name, record)
"""


class BoundaryRecorder:
    """Installs the plugin and reads its record."""

    def __init__(self, home: Path) -> None:
        self._path = home / "boundaries"
        self._path.touch()
        make_plugin(home, "recorder", PLUGIN_CODE.format(path=str(self._path)))
        (home / "config.yaml").write_text("plugins:\n  enabled: [recorder]\n")

    def hooks_of(self, session_id: str) -> list[str]:
        """The hooks called for a conversation, in order."""
        lines = [line.split() for line in self._path.read_text().splitlines()]
        return [name for name, recorded_id in lines if recorded_id == session_id]
