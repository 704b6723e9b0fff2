"""The conversations to choose from: typed for, of this folder or of all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from hermes_core import human_format
from hermes_core.terminal_text import fit, one_line, pad
from hermes_tui.submission import UNREACHABLE

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer

    from hermes_tui.conversation import ConversationClient

LISTED: Final = 100
TYPING_PAUSE_SECONDS: Final = 0.15
TWICE_SECONDS: Final = 3.0
NAME_COLUMNS: Final = 52
KEYS: Final = "Enter open · F2 this folder/all · Del Del trash · Esc close"


class SessionPicker(ModalScreen[str]):
    """Ends with the id of a conversation, or empty."""

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

    def __init__(self, conversation: ConversationClient, words: str = "") -> None:
        super().__init__()
        self._conversation = conversation
        self._words = words
        self._is_here = False
        self._pause: Timer | None = None
        self._rows: list[dict[str, Any]] = []
        self._unwanted = ""  # what Delete was pressed for once, and when
        self._unwanted_at = 0.0

    def compose(self) -> ComposeResult:
        """What to look for, what there is, which keys help."""
        with Vertical(classes="dialog wide"):
            yield Static("", classes="heading")
            yield Input(self._words, placeholder="type to search", compact=True)
            yield OptionList(compact=True)
            yield Static(Content(KEYS), classes="keys")

    def on_mount(self) -> None:
        """Show the latest."""
        self._load()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look again when nobody has typed for a moment."""
        event.stop()
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(TYPING_PAUSE_SECONDS, self._load)

    def action_switch_folder(self) -> None:
        """Between this folder and all."""
        self._is_here = not self._is_here
        self._load()

    def action_move(self, steps: int) -> None:
        """Up or down in the list, from wherever."""
        found = self.query_one(OptionList)
        if found.option_count:
            found.highlighted = ((found.highlighted or 0) + steps) % found.option_count

    async def action_page(self, way: str) -> None:
        """A page `up` or `down` in the list, from wherever."""
        await self.query_one(OptionList).run_action(f"page_{way}")

    def action_choose(self) -> None:
        """The one that is marked."""
        marked = self._marked()
        if marked is not None:
            self.dismiss(str(marked["id"]))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """The one that was clicked."""
        self.dismiss(str(self._rows[event.option_index]["id"]))

    def action_trash(self) -> None:
        """Into the trash, from where it can be brought back; in the words, a letter."""
        typed, marked, now = self.query_one(Input), self._marked(), time.monotonic()
        if typed.has_focus and typed.cursor_position < len(typed.value):
            typed.action_delete_right()
        elif marked is not None:
            unwanted = str(marked["id"])
            is_second = unwanted == self._unwanted and now - self._unwanted_at < TWICE_SECONDS
            self._unwanted, self._unwanted_at = ("", 0.0) if is_second else (unwanted, now)
            if is_second:
                self.run_worker(lambda: self._trash(unwanted), thread=True)
            else:
                text = f"Press Delete again to move to the trash: {_name(marked)}"
                self.notify(text, timeout=TWICE_SECONDS, markup=False)

    def _trash(self, session_id: str) -> None:
        try:
            self._conversation.call("session.delete", session_id=session_id)
            text = f"Moved to the trash. Restore with `hermes sessions restore {session_id}`."
            self.app.call_from_thread(self.notify, text)
        except UNREACHABLE as error:
            self.app.call_from_thread(self.notify, str(error), severity="error", markup=False)
        self.app.call_from_thread(self._load)

    def action_back(self) -> None:
        """None of them."""
        self.dismiss("")

    def _marked(self) -> dict[str, Any] | None:
        place = self.query_one(OptionList).highlighted
        return self._rows[place] if place is not None and place < len(self._rows) else None

    def _load(self) -> None:
        words = self.query_one(Input).value.strip()
        folder = str(self._conversation.info["cwd"]) if self._is_here else ""
        self.run_worker(lambda: self._look(words, folder), thread=True, exclusive=True)

    def _look(self, words: str, folder: str) -> None:
        wish = {"limit": LISTED, "search": words, "cwd": folder}
        try:
            rows = self._conversation.call("session.list", **wish)["sessions"]
        except UNREACHABLE as error:
            self.app.call_from_thread(self.notify, str(error), severity="error", markup=False)
            return
        self.app.call_from_thread(self._show, rows)

    def _show(self, rows: list[dict[str, Any]]) -> None:
        if not self.is_attached:
            return
        self._rows = rows
        found = self.query_one(OptionList)
        found.clear_options()
        found.add_options([Option(_line(row)) for row in rows])
        found.highlighted = 0 if rows else None
        place = "of this folder" if self._is_here else "of all folders"
        number = f"the latest {LISTED}" if len(rows) == LISTED else str(len(rows))
        self.query_one(".heading", Static).update(Content(f"Conversations {place}: {number}"))


def _name(row: dict[str, Any]) -> str:
    return one_line(str(row["title"] or row["preview"] or row["id"]))


def _line(row: dict[str, Any]) -> Content:
    name = _name(row)
    when = human_format.ago(row["last_active"] or row["started_at"] or 0, time.time())
    count = human_format.plural(row["message_count"] or 0, "message")
    return Content.assemble(
        pad(fit(name, NAME_COLUMNS), NAME_COLUMNS), (f"  {when:>12}  {count}", "dim")
    )
