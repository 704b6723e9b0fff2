"""A dialog to search and choose a model of all providers whose key is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.content import Content

from hermes_core.terminal_text import fit, one_line, pad
from hermes_tui.search_dialog import DialogRow, SearchDialog

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.widgets import Input

    from tui_gateway.protocol import ModelSummary

MAX_ROWS: Final = 200
NAME_COLUMNS: Final = 44


class ModelPicker(SearchDialog):
    """Returns the name of the selected model, or an empty text."""

    FIRST_HEADING: ClassVar = "Models: loading…"

    def __init__(self, load: Callable[[], list[ModelSummary]], search: str = "") -> None:
        super().__init__(search)
        self._load = load  # called in a thread
        self._models: list[ModelSummary] = []

    def on_mount(self) -> None:
        """Load the models."""
        self.run_worker(lambda: self.call(self._fetch), thread=True)

    def _fetch(self) -> None:
        self._models = self._load()
        self.app.call_from_thread(self._filter)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter the list."""
        event.stop()
        self._filter()

    def _filter(self) -> None:
        if not self.is_attached:
            return
        words = self.search_text.lower().split()
        found = [
            model
            for model in self._models
            if all(word in f"{model.name} {model.provider}".lower() for word in words)
        ]
        more = f", the first {MAX_ROWS} are shown" if len(found) > MAX_ROWS else ""
        rows = [DialogRow(model.name, _line(model)) for model in found[:MAX_ROWS]]
        self.show_rows(f"Models: {len(found)}{more}", rows)


def _line(row: ModelSummary) -> Content:
    name = pad(fit(one_line(row.name), NAME_COLUMNS), NAME_COLUMNS)
    return Content.assemble(name, (f" {row.window_text:>6}  {row.price_text}", "dim"))
