"""A dialog to search and choose a model of all providers whose key is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from hermes_core.terminal_text import fit, one_line, pad
from hermes_tui.submission import UNREACHABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from tui_gateway.summaries import ModelSummary

MAX_ROWS: Final = 200
NAME_COLUMNS: Final = 44
KEYS: Final = "Enter choose · Esc close"


class ModelPicker(ModalScreen[str]):
    """Returns the name of the selected model, or an empty text."""

    BINDINGS: ClassVar = [
        Binding("escape", "back"),
        Binding("up", "move(-1)", priority=True),
        Binding("down", "move(1)", priority=True),
        Binding("pageup", "page('up')", priority=True),
        Binding("pagedown", "page('down')", priority=True),
        Binding("enter", "choose", priority=True),
    ]

    def __init__(self, load: Callable[[], list[ModelSummary]], search: str = "") -> None:
        super().__init__()
        self._load = load  # called in a thread
        self._search = search
        self._models: list[ModelSummary] = []
        self._rows: list[ModelSummary] = []

    def compose(self) -> ComposeResult:
        """The search input, the list and the keys."""
        with Vertical(classes="dialog wide"):
            yield Static("Models: loading…", classes="heading")
            yield Input(self._search, placeholder="type to search", compact=True)
            yield OptionList(compact=True)
            yield Static(Content(KEYS), classes="keys")

    def on_mount(self) -> None:
        """Load the models."""
        self.run_worker(self._fetch, thread=True)

    def _fetch(self) -> None:
        try:
            models = self._load()
        except UNREACHABLE as error:
            self.app.call_from_thread(self.notify, str(error), severity="error", markup=False)
            return
        self.app.call_from_thread(self._set, models)

    def _set(self, models: list[ModelSummary]) -> None:
        self._models = models
        self._filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter the list."""
        event.stop()
        self._filter()

    def _filter(self) -> None:
        if not self.is_attached:
            return
        words = self.query_one(Input).value.lower().split()
        found = [
            model
            for model in self._models
            if all(word in f"{model.name} {model.provider}".lower() for word in words)
        ]
        self._rows = found[:MAX_ROWS]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(_line(row)) for row in self._rows])
        options.highlighted = 0 if self._rows else None
        more = f", the first {MAX_ROWS} are shown" if len(found) > MAX_ROWS else ""
        self.query_one(".heading", Static).update(Content(f"Models: {len(found)}{more}"))

    def action_move(self, steps: int) -> None:
        """Move the selection, whatever has the focus."""
        options = self.query_one(OptionList)
        if options.option_count:
            options.highlighted = ((options.highlighted or 0) + steps) % options.option_count

    async def action_page(self, direction: str) -> None:
        """Move the selection a page `up` or `down`."""
        await self.query_one(OptionList).run_action(f"page_{direction}")

    def action_choose(self) -> None:
        """Choose the selected model; without any, what was typed."""
        index = self.query_one(OptionList).highlighted
        if index is not None and index < len(self._rows):
            self.dismiss(self._rows[index].name)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the clicked model."""
        self.dismiss(self._rows[event.option_index].name)

    def action_back(self) -> None:
        """Cancel."""
        self.dismiss("")


def _line(row: ModelSummary) -> Content:
    name = pad(fit(one_line(row.name), NAME_COLUMNS), NAME_COLUMNS)
    return Content.assemble(name, (f" {row.window_text:>6}  {row.price_text}", "dim"))
