"""Draw the terminal UI for docs/images: a scripted conversation, the same every time.

.venv/bin/python tools/screenshots.py [FOLDER]
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.widgets import OptionList

from hermes_agent.providers.scripted import ModelScript
from hermes_state import SessionDB
from hermes_tui.app import HermesApp
from hermes_tui.approval_dialog import ApprovalDialog
from hermes_tui.completer import CompletionMenu
from hermes_tui.conversation import ConversationClient, OpenRequest
from hermes_tui.messages import AgentMessage
from hermes_tui.pickers import SessionPicker
from hermes_tui.prompt import Prompt
from hermes_tui.rewind import RewindDialog
from hermes_tui.status import StatusBar
from tui_gateway import client
from tui_gateway.hub import Hub

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.pilot import Pilot

IMAGES: Final = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE: Final = (100, 36)
PATIENCE_SECONDS: Final = 20.0
PROGRAM: Final = '''"""Water the garden."""

DRY_BELOW = 0.3


def is_thirsty(moisture):
    return moisture > DRY_BELOW
'''
PAST: Final = (
    ("Roses", "which roses bloom twice?"),
    ("Compost", "how warm does a compost heap get?"),
    ("Pump", "the pump runs at night"),
)
STEPS: Final = r"""
steps:
  - think: Wet beds get water. Most likely a comparison that points the wrong way.
    say: I will look at the program and turn the comparison round.
    calls:
      - {name: terminal, arguments: {command: ls}}
      - name: patch
        arguments:
          path: watering.py
          old_string: moisture > DRY_BELOW
          new_string: moisture < DRY_BELOW
  - say: |
      The comparison was the wrong way round: it watered **wet** beds.

      ```python
      assert is_thirsty(0.2)
      ```

      - `watering.py` is the only place that compares it
      - no test covers it yet; I can write one
  - calls:
      - {name: terminal, arguments: {command: rm -rf build}}
  - say: Done.
"""


async def _until(pilot: Pilot[None], is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_true():
            await pilot.pause(0.05)


async def _draw(app: HermesApp, folder: Path) -> None:
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        prompt.fill("why do the wet beds get water?")
        await pilot.press("enter")
        await _until(pilot, lambda: not app.is_busy and len(app.query(AgentMessage)) == 2)
        await pilot.pause(0.3)
        prompt.fill("Write that test, please")
        await pilot.pause(0.3)
        _save(app, folder / "tui.svg")
        await _draw_menu(app, pilot, folder)
        prompt.fill("clear the build folder")
        await pilot.press("enter")
        await _until(pilot, lambda: isinstance(app.screen, ApprovalDialog))
        await pilot.pause(1.5)  # so long no key answers
        app.query_one("#status", StatusBar).stop()  # its clock shows another time each time
        await pilot.pause()
        _save(app, folder / "tui-approval.svg")
        await pilot.press("d")
        await _until(pilot, lambda: not app.is_busy)
        await _draw_choices(app, pilot, folder)


async def _draw_menu(app: HermesApp, pilot: Pilot[None], folder: Path) -> None:
    """The menu of commands with a selection."""
    app.query_one(Prompt).fill("")
    await pilot.press("/")
    await _until(pilot, lambda: app.query_one(CompletionMenu).is_open)
    await pilot.press("down", "down", "down")
    await pilot.pause(0.3)
    _save(app, folder / "tui-menu.svg")
    await pilot.press("escape")


async def _draw_choices(app: HermesApp, pilot: Pilot[None], folder: Path) -> None:
    """Going back, and going elsewhere; in light colours."""
    await pilot.press("ctrl+t", "f3")
    await _until(pilot, lambda: isinstance(app.screen, RewindDialog))
    await pilot.pause(0.3)
    _save(app, folder / "tui-rewind.svg")
    await pilot.press("escape", "ctrl+t", "ctrl+r")
    await _until(pilot, lambda: isinstance(app.screen, SessionPicker))
    await _until(pilot, lambda: app.screen.query_one(OptionList).option_count > 0)
    await pilot.pause(0.3)
    _save(app, folder / "tui-picker.svg")
    await pilot.press("escape")


def _past(db: SessionDB, folder: Path) -> None:
    """Conversations of other days, and the one that is shown."""
    for number, (title, text) in enumerate(PAST):
        name = f"past-{number}"
        db.create_session(name, "cli", cwd=str(folder))
        db.append_message(name, "user", text, timestamp=time.time() - (number + 1) * 90_000)
        db.set_session_title(name, title)
    db.create_session("watering", "tui", cwd=str(folder))
    db.set_session_title("watering", "Watering")


def _save(app: HermesApp, path: Path) -> None:
    """Without the name a drawing gives itself and the time tools took: others each time."""
    svg = re.sub(r"terminal-\d+", "terminal", app.export_screenshot(title="hermes tui"))
    path.write_text(re.sub(r"\b\d\.\d&#160;s\b", "0.1&#160;s", svg), encoding="utf-8")


def main() -> None:
    """Draw."""
    sys.path.append(str(IMAGES.parents[1] / "tests"))
    from support.scripted_server import ScriptServer  # noqa: PLC0415 - after sys.path

    target = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        os.environ.update(HERMES_HOME=str(home / ".hermes"), HOME=str(home))
        garden = home / "garden"
        (garden / "build").mkdir(parents=True)
        (garden / "watering.py").write_text(PROGRAM, encoding="utf-8")
        with ScriptServer(ModelScript.parse(STEPS)) as server, SessionDB() as db:
            _past(db, garden)
            hub = Hub(db)
            model = f"{server.base_url}#scripted"
            request = OpenRequest(str(garden), "watering", model=model)
            conversation = ConversationClient(
                lambda on_event: client.connect_in_process(hub, on_event), request
            )
            conversation.open()
            asyncio.run(_draw(HermesApp(conversation), target))
            conversation.leave(is_over=True)


if __name__ == "__main__":
    main()
