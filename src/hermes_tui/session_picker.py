"""A dialog to search and open conversations of this folder or of all folders."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding
from textual.content import Content
from textual.widgets import Input, OptionList

from hermes_core import human_format
from hermes_core.command_name import with_command_name
from hermes_core.json_values import objects_in
from hermes_core.terminal_text import fit, one_line, pad
from hermes_tui.search_dialog import DialogRow, SearchDialog
from tui_gateway.protocol import ConversationSummary, parse

if TYPE_CHECKING:
    from textual.timer import Timer

    from hermes_tui.conversation import ConversationClient

MAX_ROWS: Final = 100
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
        found = self._conversation.call("session.list", limit=MAX_ROWS, search=search, cwd=folder)
        rows = [parse(ConversationSummary, row) for row in objects_in(found, "sessions")]
        self.app.call_from_thread(self._show, rows)

    def _show(self, rows: list[ConversationSummary]) -> None:
        if not self.is_attached:
            return
        self._rows = rows
        columns = self.query_one(OptionList).content_size.width - CELL_PADDING
        scope = "of this folder" if self._is_this_folder else "of all folders"
        number = f"the latest {MAX_ROWS}" if len(rows) == MAX_ROWS else str(len(rows))
        shown = [DialogRow(row.id, _line(row, columns)) for row in rows]
        self.show_rows(f"Conversations {scope}: {number}", shown)


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
