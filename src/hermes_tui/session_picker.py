"""A dialog to search and open conversations of this folder or of all folders."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final

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
    from textual.app import ComposeResult
    from textual.timer import Timer

    from hermes_tui.conversation import ConversationClient

MAX_ROWS: Final = 100
TYPING_PAUSE_SECONDS: Final = 0.15
REPEAT_SECONDS: Final = 3.0
WHEN_COLUMNS: Final = 13
COUNT_COLUMNS: Final = 13
MIN_NAME_COLUMNS: Final = 12
CELL_PADDING: Final = 2  # of an option, and a scroll bar
KEYS: Final = "Enter open · F2 this folder/all · Del Del trash · Esc close"


class SessionPicker(ModalScreen[str]):
    """Returns the selected session ID, or an empty text."""

    BINDINGS: ClassVar = [
        Binding("escape", "back"),
        Binding("f2", "switch_folder"),
        Binding("delete", "trash", priority=True),
        Binding("up", "move(-1)", priority=True),
        Binding("down", "move(1)", priority=True),
        Binding("pageup", "page('up')", priority=True),
        Binding("pagedown", "page('down')", priority=True),
        Binding("enter", "choose", priority=True),
    ]

    def __init__(self, conversation: ConversationClient, search: str = "") -> None:
        super().__init__()
        self._conversation = conversation
        self._search = search
        self._is_this_folder = False
        self._timer: Timer | None = None
        self._rows: list[ConversationSummary] = []
        self._delete_candidate = ""  # session of the first Delete, and its time
        self._delete_pressed_at = 0.0

    def compose(self) -> ComposeResult:
        """The search input, the list and the keys."""
        with Vertical(classes="dialog wide"):
            yield Static("", classes="heading")
            yield Input(self._search, placeholder="type to search", compact=True)
            yield OptionList(compact=True)
            yield Static(Content(KEYS), classes="keys")

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

    def action_move(self, steps: int) -> None:
        """Move the selection, whatever has the focus."""
        options = self.query_one(OptionList)
        if options.option_count:
            options.highlighted = ((options.highlighted or 0) + steps) % options.option_count

    async def action_page(self, direction: str) -> None:
        """Move the selection a page `up` or `down`."""
        await self.query_one(OptionList).run_action(f"page_{direction}")

    def action_choose(self) -> None:
        """Open the selected conversation."""
        selected = self._selected()
        if selected is not None:
            self.dismiss(selected.id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the clicked conversation."""
        self.dismiss(self._rows[event.option_index].id)

    def action_trash(self) -> None:
        """Move to the trash after a second press; inside the search text, delete a character."""
        search_input, selected, now = self.query_one(Input), self._selected(), time.monotonic()
        if search_input.has_focus and search_input.cursor_position < len(search_input.value):
            search_input.action_delete_right()
        elif selected is not None:
            session_id = selected.id
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
                text = f"Press Delete again to move to the trash: {_name(selected)}"
                self.notify(text, timeout=REPEAT_SECONDS, markup=False)

    def _trash(self, session_id: str) -> None:
        try:
            self._conversation.call("session.delete", session_id=session_id)
            text = f"Moved to the trash. Restore with `hermes sessions restore {session_id}`."
            self.app.call_from_thread(self.notify, with_command_name(text), markup=False)
        except UNREACHABLE as error:
            self.app.call_from_thread(self.notify, str(error), severity="error", markup=False)
        self.app.call_from_thread(self._load)

    def action_back(self) -> None:
        """Cancel."""
        self.dismiss("")

    def _selected(self) -> ConversationSummary | None:
        index = self.query_one(OptionList).highlighted
        return self._rows[index] if index is not None and index < len(self._rows) else None

    def _load(self) -> None:
        search = self.query_one(Input).value.strip()
        folder = self._conversation.info.cwd if self._is_this_folder else ""
        self.run_worker(lambda: self._fetch(search, folder), thread=True, exclusive=True)

    def _fetch(self, search: str, folder: str) -> None:
        try:
            found = self._conversation.call(
                "session.list", limit=MAX_ROWS, search=search, cwd=folder
            )
        except UNREACHABLE as error:
            self.app.call_from_thread(self.notify, str(error), severity="error", markup=False)
            return
        rows = [parse(ConversationSummary, row) for row in objects_in(found, "sessions")]
        self.app.call_from_thread(self._show, rows)

    def _show(self, rows: list[ConversationSummary]) -> None:
        if not self.is_attached:
            return
        self._rows = rows
        options = self.query_one(OptionList)
        options.clear_options()
        columns = options.content_size.width - CELL_PADDING
        options.add_options([Option(_line(row, columns)) for row in rows])
        options.highlighted = 0 if rows else None
        scope = "of this folder" if self._is_this_folder else "of all folders"
        number = f"the latest {MAX_ROWS}" if len(rows) == MAX_ROWS else str(len(rows))
        self.query_one(".heading", Static).update(Content(f"Conversations {scope}: {number}"))


def _name(row: ConversationSummary) -> str:
    return one_line(row.title or row.preview or row.id)


def _line(row: ConversationSummary, columns: int) -> Content:
    """A conversation in one line of *columns* cells."""
    when = human_format.ago(row.last_active or row.started_at, time.time())
    count = human_format.plural(row.message_count, "message")
    facts = (
        f"{fit(when, WHEN_COLUMNS):>{WHEN_COLUMNS}}  {fit(count, COUNT_COLUMNS):>{COUNT_COLUMNS}}"
    )
    name_columns = max(MIN_NAME_COLUMNS, columns - len(facts) - 2)
    return Content.assemble(pad(fit(_name(row), name_columns), name_columns), (f"  {facts}", "dim"))
