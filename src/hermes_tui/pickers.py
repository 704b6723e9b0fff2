"""Dialogs to search a list and choose a row: conversations, models of known providers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from hermes_core import human_format
from hermes_core.command_name import with_command_name
from hermes_core.json_values import objects_in
from hermes_core.terminal_text import fit, one_line, pad
from hermes_tui.submission import UNREACHABLE
from tui_gateway.protocol import ConversationSummary, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.timer import Timer

    from hermes_tui.conversation import ConversationClient
    from tui_gateway.protocol import ModelSummary


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


MAX_SESSIONS: Final = 100
TYPING_PAUSE_SECONDS: Final = 0.15
REPEAT_SECONDS: Final = 3.0
WHEN_COLUMNS: Final = 13
COUNT_COLUMNS: Final = 13
MIN_NAME_COLUMNS: Final = 12
CELL_PADDING: Final = 2  # of an option, and a scroll bar


class SessionPicker(SearchDialog):
    """Returns the selected session ID, or an empty text."""

    BINDINGS: ClassVar = [
        Binding("f2", "switch_folder"),
        Binding("delete", "trash", priority=True),
    ]
    KEYS: ClassVar = "Enter open · F2 this folder/all · Del Del trash · Esc close"

    def __init__(self, conversation: ConversationClient, search: str = "") -> None:
        super().__init__(search)
        self._conversation = conversation
        self._is_this_folder = False
        self._timer: Timer | None = None
        self._rows: list[ConversationSummary] = []
        self._delete_candidate = ""  # session of the first Delete, and its time
        self._delete_pressed_at = 0.0

    def on_mount(self) -> None:
        """Load the latest conversations."""
        self._load()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search after a pause in typing."""
        event.stop()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(TYPING_PAUSE_SECONDS, self._load)

    def on_resize(self) -> None:
        """Fit the rows to the width."""
        if self._rows:
            highlighted = self.query_one(OptionList).highlighted
            self._show(self._rows)
            self.query_one(OptionList).highlighted = highlighted

    def action_switch_folder(self) -> None:
        """Switch between this folder and all folders."""
        self._is_this_folder = not self._is_this_folder
        self._load()

    def action_trash(self) -> None:
        """Move to the trash after a second press; inside the search text, delete a character."""
        search_input, session_id, now = self.query_one(Input), self.selected_id, time.monotonic()
        if search_input.has_focus and search_input.cursor_position < len(search_input.value):
            search_input.action_delete_right()
        elif session_id:
            is_second = (
                session_id == self._delete_candidate
                and now - self._delete_pressed_at < REPEAT_SECONDS
            )
            self._delete_candidate, self._delete_pressed_at = (
                ("", 0.0) if is_second else (session_id, now)
            )
            if is_second:
                self.run_worker(lambda: self._trash(session_id), thread=True)
            else:
                name = next(_name(row) for row in self._rows if row.id == session_id)
                text = f"Press Delete again to move to the trash: {name}"
                self.notify(text, timeout=REPEAT_SECONDS, markup=False)

    def _trash(self, session_id: str) -> None:
        self.call(lambda: self._delete(session_id))
        self.app.call_from_thread(self._load)

    def _delete(self, session_id: str) -> None:
        self._conversation.call("session.delete", session_id=session_id)
        text = f"Moved to the trash. Restore with `hermes sessions restore {session_id}`."
        self.app.call_from_thread(self.notify, with_command_name(text), markup=False)

    def _load(self) -> None:
        search = self.search_text
        folder = self._conversation.info.cwd if self._is_this_folder else ""
        self.run_worker(
            lambda: self.call(lambda: self._fetch(search, folder)), thread=True, exclusive=True
        )

    def _fetch(self, search: str, folder: str) -> None:
        found = self._conversation.call(
            "session.list", limit=MAX_SESSIONS, search=search, cwd=folder
        )
        rows = [parse(ConversationSummary, row) for row in objects_in(found, "sessions")]
        self.app.call_from_thread(self._show, rows)

    def _show(self, rows: list[ConversationSummary]) -> None:
        if not self.is_attached:
            return
        self._rows = rows
        columns = self.query_one(OptionList).content_size.width - CELL_PADDING
        scope = "of this folder" if self._is_this_folder else "of all folders"
        number = f"the latest {MAX_SESSIONS}" if len(rows) == MAX_SESSIONS else str(len(rows))
        shown = [DialogRow(row.id, _session_line(row, columns)) for row in rows]
        self.show_rows(f"Conversations {scope}: {number}", shown)


def _name(row: ConversationSummary) -> str:
    return one_line(row.title or row.preview or row.id)


def _session_line(row: ConversationSummary, columns: int) -> Content:
    """A conversation in one line of *columns* cells."""
    when = human_format.ago(row.last_active or row.started_at, time.time())
    count = human_format.plural(row.message_count, "message")
    facts = (
        f"{fit(when, WHEN_COLUMNS):>{WHEN_COLUMNS}}  {fit(count, COUNT_COLUMNS):>{COUNT_COLUMNS}}"
    )
    name_columns = max(MIN_NAME_COLUMNS, columns - len(facts) - 2)
    return Content.assemble(pad(fit(_name(row), name_columns), name_columns), (f"  {facts}", "dim"))


MAX_MODELS: Final = 200
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
        more = f", the first {MAX_MODELS} are shown" if len(found) > MAX_MODELS else ""
        rows = [DialogRow(model.name, _model_line(model)) for model in found[:MAX_MODELS]]
        self.show_rows(f"Models: {len(found)}{more}", rows)


def _model_line(row: ModelSummary) -> Content:
    name = pad(fit(one_line(row.name), NAME_COLUMNS), NAME_COLUMNS)
    return Content.assemble(name, (f" {row.window_text:>6}  {row.price_text}", "dim"))
