"""A dialog to search a list and choose one of its rows; the base of the pickers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from hermes_tui.submission import UNREACHABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult


class DialogRow(NamedTuple):
    """A row of the list: what the dialog returns when it is chosen, and its text."""

    id: str
    text: Content


class SearchDialog(ModalScreen[str]):
    """Returns the ID of the selected row, or an empty text."""

    BINDINGS: ClassVar = [
        Binding("escape", "back"),
        Binding("up", "move(-1)", priority=True),
        Binding("down", "move(1)", priority=True),
        Binding("pageup", "page('up')", priority=True),
        Binding("pagedown", "page('down')", priority=True),
        Binding("enter", "choose", priority=True),
    ]
    KEYS: ClassVar = "Enter choose · Esc close"
    FIRST_HEADING: ClassVar = ""

    def __init__(self, search: str = "") -> None:
        super().__init__()
        self._search = search
        self._ids: list[str] = []

    def compose(self) -> ComposeResult:
        """The search input, the list and the keys."""
        with Vertical(classes="dialog wide"):
            yield Static(self.FIRST_HEADING, classes="heading")
            yield Input(self._search, placeholder="type to search", compact=True)
            yield OptionList(compact=True)
            yield Static(Content(self.KEYS), classes="keys")

    @property
    def search_text(self) -> str:
        """What was typed."""
        return self.query_one(Input).value.strip()

    @property
    def selected_id(self) -> str:
        """The ID of the selected row; empty if there is none."""
        index = self.query_one(OptionList).highlighted
        return self._ids[index] if index is not None and index < len(self._ids) else ""

    def show_rows(self, heading: str, rows: Sequence[DialogRow]) -> None:
        """Replace the list and select its first row."""
        self._ids = [row.id for row in rows]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(row.text) for row in rows])
        options.highlighted = 0 if rows else None
        self.query_one(".heading", Static).update(Content(heading))

    def call(self, function: Callable[[], None]) -> None:
        """Run a function of a worker thread; show that the daemon is unreachable."""
        try:
            function()
        except UNREACHABLE as error:
            self.app.call_from_thread(self.notify, str(error), severity="error", markup=False)

    def action_move(self, steps: int) -> None:
        """Move the selection, whatever has the focus."""
        options = self.query_one(OptionList)
        if options.option_count:
            options.highlighted = ((options.highlighted or 0) + steps) % options.option_count

    async def action_page(self, direction: str) -> None:
        """Move the selection a page `up` or `down`."""
        await self.query_one(OptionList).run_action(f"page_{direction}")

    def action_choose(self) -> None:
        """Choose the selected row."""
        if self.selected_id:
            self.dismiss(self.selected_id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the clicked row."""
        self.dismiss(self._ids[event.option_index])

    def action_back(self) -> None:
        """Cancel."""
        self.dismiss("")
