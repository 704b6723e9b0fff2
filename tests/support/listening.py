"""A plugin that writes down which ends it hears of, and for which conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from pathlib import Path

LISTENER = """
def register(ctx):
    for name in ("on_session_end", "on_session_finalize"):
        def note(name=name, **facts):
            with open({path!r}, "a") as file:
                file.write(name + " " + facts["session_id"] + chr(10))
        ctx.register_hook(name, note)
"""


class Listener:
    """What it heard."""

    def __init__(self, home: Path) -> None:
        self._heard = home / "heard"
        self._heard.touch()
        make_plugin(home, "listener", LISTENER.format(path=str(self._heard)))
        (home / "config.yaml").write_text("plugins:\n  enabled: [listener]\n")

    def of(self, session_id: str) -> list[str]:
        """The hooks that were called for a conversation, in order."""
        lines = [line.split() for line in self._heard.read_text().splitlines()]
        return [name for name, about in lines if about == session_id]
