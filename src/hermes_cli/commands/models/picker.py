"""`hermes models` on a terminal: choose the default model from all providers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App

from hermes_tui import pickers

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.driver import Driver

    from tui_gateway.protocol import ModelSummary


class ModelPickerApp(App[str]):
    """Returns the name of the chosen model, or None."""

    TITLE = "hermes models"
    CSS_PATH = Path(pickers.__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, load: Callable[[], list[ModelSummary]], driver: type[Driver]) -> None:
        super().__init__(driver_class=driver)
        self._load = load

    def on_mount(self) -> None:
        """Open the dialog."""
        self.push_screen(pickers.ModelPicker(self._load), lambda name: self.exit(name or None))
