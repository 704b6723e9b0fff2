"""The app of `hermes sessions browse`: a search input, the list and a preview."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from hermes_cli.commands.sessions import show as transcript
from hermes_core import human_format
from hermes_core.command_name import with_command_name
from hermes_core.isolate import Failure, attempt
from hermes_core.terminal_text import clean, fit, one_line, pad
from hermes_state.search.repository import SearchOptions
from hermes_state.sessions.records import ListedSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.driver import Driver
    from textual.timer import Timer

    from hermes_cli.filters import ListFilters
    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

FIRST_ROWS: Final = 200  # more than a screen shows; read before the first paint
PAGE_ROWS: Final = 2000
MAX_HITS: Final = 60
ENDING_MESSAGES: Final = 30


class MessageHit(NamedTuple):
    """A conversation with a matching message, and the snippet."""

    session_id: str
    snippet: str


class BrowserSessions:
    """Reads and changes the conversations that match the filters of the command."""

    def __init__(
        self,
        db: SessionDB,
        filters: ListFilters,
        on_change: Callable[[SessionDB], None],
        max_rows: int | None = None,
    ) -> None:
        self._db = db
        self._filters = filters
        self._on_change = on_change
        self._max_rows = max_rows

    def first(self, *, with_archived: bool = False) -> list[ListedSession]:
        """The rows of the first screen."""
        return self._page(FIRST_ROWS, 0, with_archived)

    def pages(self, start: int, *, with_archived: bool = False) -> Iterator[list[ListedSession]]:
        """The other rows, in pages."""
        while rows := self._page(PAGE_ROWS, start, with_archived):
            yield rows
            start += len(rows)

    def _page(self, limit: int, offset: int, with_archived: bool) -> list[ListedSession]:
        if self._max_rows is not None:
            limit = min(limit, self._max_rows - offset)
            if limit <= 0:
                return []
        return self._db.lists.sessions(
            **self._filters,
            limit=limit,
            offset=offset,
            order_by_last_active=True,
            include_archived=with_archived,
        )

    def search(self, words: str) -> list[MessageHit]:
        """Conversations with messages that answer *words*, best or latest first, each once."""
        source = self._filters.get("source")
        options = SearchOptions(sources=(source,) if source else (), is_typing=True, limit=MAX_HITS)
        hits = self._db.search.answer(words, options).hits
        result: dict[str, MessageHit] = {}
        for hit in hits:
            # A conversation that continues in a new row is listed under its last row.
            tip = self._db.titles.get_compression_tip(hit.session_id)
            result.setdefault(tip, MessageHit(tip, hit.snippet_text))
        return list(result.values())

    def ending(self, session_id: str) -> list[MessageRow]:
        """The last messages of a conversation."""
        return self._db.messages.rows(session_id, limit=ENDING_MESSAGES, latest=True)

    def pin(self, session_id: str, *, is_pinned: bool) -> None:
        """Pin or unpin."""
        self._db.sessions.set_session_pinned(session_id, is_pinned)

    def trash(self, session_id: str) -> None:
        """Move to the trash and notify plugins."""
        self._db.trash.delete_session(session_id)
        self._on_change(self._db)


class RowEntry(NamedTuple):
    """One line of the list."""

    row: ListedSession
    snippet: str = ""  # the matching message, if title, ID and preview do not match


class RowCatalogue:
    """The loaded rows in list order, with a text filter."""

    def __init__(self) -> None:
        self._rows: dict[str, ListedSession] = {}
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Iterable[ListedSession]) -> None:
        """Append rows; known ones keep their position."""
        for row in rows:
            session_id = row.id
            if session_id not in self._rows:
                words = (session_id, row.session.title or "", row.preview)
                self._rows[session_id] = row
                self._texts[session_id] = "\n".join(words).casefold()

    def remove(self, session_id: str) -> None:
        """Remove a row."""
        self._rows.pop(session_id, None)
        self._texts.pop(session_id, None)

    def mark_pinned(self, session_id: str, *, is_pinned: bool) -> None:
        """Show a row as pinned, or not."""
        row = self._rows.get(session_id)
        if row is not None:
            session = row.session._replace(pinned=int(is_pinned))
            self._rows[session_id] = row._replace(session=session)

    def entries(self, typed: str, hits: Sequence[MessageHit] = ()) -> list[RowEntry]:
        """Rows that match in title, ID or preview, followed by rows with matching messages."""
        words = typed.casefold().split()
        if not words:
            return [RowEntry(row) for row in self._rows.values()]
        matches = {
            session_id: RowEntry(self._rows[session_id])
            for session_id, text in self._texts.items()
            if all(word in text for word in words)
        }
        for hit in hits:
            if hit.session_id in self._rows and hit.session_id not in matches:
                matches[hit.session_id] = RowEntry(self._rows[hit.session_id], hit.snippet)
        return list(matches.values())


T = TypeVar("T")
COLUMN_GAP = "  "


class RowField(NamedTuple):
    """A column, visible if the list has at least *from_cells* cells."""

    title: str
    cells: int
    from_cells: int
    right: bool = False


FIELDS = (RowField("when", 11, 30), RowField("source", 8, 54), RowField("msgs", 6, 44, right=True))
PINNED, ARCHIVED, NO_MARK = "*", "-", " "


def heading(cells: int) -> str:
    """The titles of the columns."""
    return _line(NO_MARK, [field.title for field in FIELDS], "conversation", cells)


def line(entry: RowEntry, cells: int, now: float) -> str:
    """The columns of a conversation in exactly *cells* cells, without control characters."""
    row, session = entry.row, entry.row.session
    mark = PINNED if session.pinned else ARCHIVED if session.archived else NO_MARK
    values = [
        human_format.ago(row.last_active or session.started_at, now),
        session.source,
        human_format.number(session.message_count),
    ]
    text = row.name or "(empty)"
    if entry.snippet:
        text = f"{session.title or session.id}: {entry.snippet}"
    return _line(mark, values, text, cells)


def _line(mark: str, values: Iterable[str], text: str, cells: int) -> str:
    head = f"{mark} "
    room = cells - len(head)
    for field, value in zip(FIELDS, values, strict=True):
        if cells >= field.from_cells:
            head += (
                pad(fit(one_line(value), field.cells), field.cells, right=field.right) + COLUMN_GAP
            )
            room -= field.cells + len(COLUMN_GAP)
    return head + pad(fit(one_line(text), room), room)


HEADING_ROWS = 1
STYLES = {
    "heading": Style(bold=True),
    "selected": Style(reverse=True),
    "found": Style(color="cyan"),
    "archived": Style(dim=True),
    "plain": Style(),
}


class RowList(ScrollView, can_focus=False):
    """Conversations, one line each, one of them selected; the first line is the heading."""

    class Selected(Message, namespace="row"):
        """The selection changed."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: Sequence[RowEntry] = ()
        self._position = 0
        self._now = time.time()

    @property
    def selected(self) -> RowEntry | None:
        """The selected row."""
        return self._entries[self._position] if self._entries else None

    @property
    def page_rows(self) -> int:
        """The number of visible rows."""
        return max(self.size.height - HEADING_ROWS, 1)

    def show(self, entries: Sequence[RowEntry], *, is_kept: bool) -> None:
        """Show other rows; *is_kept* keeps the selected conversation if it is still listed."""
        before = self.selected
        self._entries = entries
        self._now = time.time()
        if not is_kept:
            self._position = 0
        elif before is not None:
            self._position = self._place_of(before, default=self._position)
        self.virtual_size = Size(0, len(entries) + HEADING_ROWS)
        self.move_to(self._position)
        self.refresh()

    def _place_of(self, wanted: RowEntry, default: int) -> int:
        near = self._entries[default : default + 1]
        if near and near[0].row.id == wanted.row.id:
            return default
        places = (n for n, item in enumerate(self._entries) if item.row.id == wanted.row.id)
        return next(places, default)

    def move_by(self, rows: int) -> None:
        """Move the selection by *rows*."""
        self.move_to(self._position + rows)

    def move_to(self, position: int) -> None:
        """Select a row and scroll to it."""
        self._position = max(0, min(position, len(self._entries) - 1))
        top = round(self.scroll_y)
        if self._position < top:
            top = self._position
        elif self._position >= top + self.page_rows:
            top = self._position - self.page_rows + 1
        self.scroll_to(y=top, animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Selected())

    def move_to_end(self) -> None:
        """Select the last row."""
        self.move_to(len(self._entries) - 1)

    def on_resize(self) -> None:
        """Keep the selected row in view."""
        self.move_to(self._position)

    def on_click(self, event: events.Click) -> None:
        """Select the clicked row."""
        if event.y >= HEADING_ROWS:
            self.move_to(round(self.scroll_y) + event.y - HEADING_ROWS)

    def render_line(self, y: int) -> Strip:
        """Render a line of the screen."""
        cells = self.scrollable_content_region.width
        if y < HEADING_ROWS:
            return _strip(heading(cells), "heading", cells)
        index = round(self.scroll_y) + y - HEADING_ROWS
        if index >= len(self._entries):
            return Strip.blank(cells)
        entry = self._entries[index]
        style = "found" if entry.snippet else "archived" if entry.row.session.archived else "plain"
        if index == self._position:
            style = "selected"
        return _strip(line(entry, cells, self._now), style, cells)


def _strip(text: str, style: str, cells: int) -> Strip:
    return Strip([Segment(text, STYLES[style])]).adjust_cell_length(cells)


WIDE_COLUMNS: Final = 80
STACKED_LINES: Final = 18
TYPING_PAUSE_SECONDS: Final = 0.25
MOVING_PAUSE_SECONDS: Final = 0.05
KEY_HELP: Final = (
    "↑ ↓ PgUp PgDn Home End: move · Enter: select · Esc: close · Tab: preview · "
    "Ctrl+A: include archived · Ctrl+T: pin · Ctrl+D: trash · F1: keys"
)
Piece = tuple[str, str]

MAX_CHARACTERS_BY_ROLE: Final = {"tool": 600}
MAX_CHARACTERS: Final = 4000
_STYLES: Final = {
    "user": "bold ansi_cyan",
    "assistant": "bold ansi_green",
    "tool": "bold ansi_yellow",
}


def preview_pieces(session: SessionRow, messages: Iterable[MessageRow]) -> list[Piece]:
    """Heading and messages as (text, style) pieces, without control characters."""
    facts = (session.id, session.source, session.model, session.cwd)
    results = [
        (f"{one_line(session.title or session.id)}\n", "bold"),
        (one_line(" · ".join(fact for fact in facts if fact)) + "\n\n", "dim"),
    ]
    for message in messages:
        results += _message_pieces(message)
    return results


def _message_pieces(message: MessageRow) -> list[Piece]:
    role = message.role or "?"
    heading = f"{role} {message.tool_name}" if message.tool_name else role
    results = [
        (one_line(heading), _STYLES.get(role, "bold")),
        (f"  {human_format.local(message.timestamp)}\n", "dim"),
    ]
    body = transcript.content_text(message.content)
    longest = MAX_CHARACTERS_BY_ROLE.get(role, MAX_CHARACTERS)
    if len(body) > longest:
        body = body[:longest] + "…"
    if body:
        results.append((clean(body) + "\n", ""))
    calls = message.tool_calls or ()
    results += [(clean(transcript.call_line(call)) + "\n", "ansi_yellow") for call in calls]
    return [*results, ("\n", "")]


class Preview(VerticalScroll, can_focus=True):
    """A scrolling text, shown from its end."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = Content("")

    def compose(self) -> ComposeResult:
        """Create the text widget; a conversation may have been read before."""
        yield Static(self._shown, id="ending", markup=False)

    def show(self, texts: Sequence[Piece]) -> None:
        """Show another conversation."""
        self._shown = Content.assemble(*texts)
        for ending in self.query("#ending").results(Static):
            ending.update(self._shown)
        self.call_after_refresh(self.scroll_end, animate=False)


class TrashQuestion(NamedTuple):
    """The confirmation before a conversation is moved to the trash."""

    row: ListedSession

    @property
    def text(self) -> str:
        """The text of the question."""
        name = self.row.name or self.row.id
        return f"Move “{fit(one_line(name), 40)}” to the trash? [y/N]"


class StatusLine(Static, can_focus=True):
    """The bottom line: the count, the keys, or a question."""


class BrowserApp(App[ListedSession | None]):
    """Returns the selected row, or None."""

    TITLE = "hermes sessions browse"
    CSS_PATH = "browser.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding("escape,ctrl+c,ctrl+q", "leave", priority=True),
        Binding("enter", "choose", priority=True),
        Binding("up", "move(-1)", priority=True),
        Binding("down", "move(1)", priority=True),
        Binding("pageup", "page(-1)", priority=True),
        Binding("pagedown", "page(1)", priority=True),
        Binding("home", "first", priority=True),
        Binding("end", "last", priority=True),
        Binding("tab,shift+tab", "switch", priority=True),
        Binding("ctrl+a", "archived", priority=True),
        Binding("ctrl+d", "trash", priority=True),
        Binding("ctrl+t", "pin", priority=True),
        Binding("f1", "keys", priority=True),
    ]

    def __init__(self, sessions: BrowserSessions, driver_class: type[Driver] | None = None) -> None:
        # ANSI colours match the terminal's theme and respect NO_COLOR.
        super().__init__(driver_class=driver_class, ansi_color=True)
        self.theme = "ansi-dark"
        self._sessions = sessions
        self._catalogue = RowCatalogue()
        self._hits: Sequence[MessageHit] = ()
        self._with_archived = False
        self._is_loading = True
        self._question: TrashQuestion | None = None
        self._previewed = ""
        self._pauses: dict[str, Timer] = {}

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Input(placeholder="type to search", compact=True, select_on_focus=False)
        with Container(id="body"):
            yield RowList()
            yield Preview()
        yield StatusLine(id="status")

    def on_mount(self) -> None:
        """Show the first rows and load the others."""
        self._load()

    def on_resize(self, event: events.Resize) -> None:
        """Place the preview beside the list, below it, or instead of it."""
        is_wide = event.size.width >= WIDE_COLUMNS
        is_stacked = not is_wide and event.size.height >= STACKED_LINES
        body = self.query_one("#body")
        body.set_class(is_wide, "wide")
        body.set_class(is_stacked, "stacked")
        body.set_class(not is_wide and not is_stacked, "single")

    # Loading and showing rows.

    def _load(self) -> None:
        self._catalogue = RowCatalogue()
        self._is_loading = True
        with_archived = self._with_archived
        rows = self._sessions.first(with_archived=with_archived)
        self._run("read the list", lambda: self._read_rows(len(rows), with_archived))
        self._catalogue.add(rows)
        self._show(is_kept=True)

    def _run(
        self, name: str, work: Callable[[], T], then: Callable[[T], object] | None = None
    ) -> None:
        """Do *work* in a thread, then pass its result to *then*; a failure is shown."""

        def isolated() -> None:
            result = attempt(name, work)
            if isinstance(result, Failure):
                self.call_later(self._show_status, f"Cannot {name}: {result.error}")
            elif then is not None:
                self.call_later(then, result)

        self.run_worker(isolated, name=name, group=name, thread=True, exclusive=True)

    def _read_rows(self, start: int, with_archived: bool) -> None:
        worker = get_current_worker()
        for rows in self._sessions.pages(start, with_archived=with_archived):
            if worker.is_cancelled:
                return
            self.call_later(self._add_rows, rows, with_archived)
        self.call_later(self._add_rows, (), with_archived)

    def _add_rows(self, rows: Sequence[ListedSession], with_archived: bool) -> None:
        """Add rows; none are the end."""
        if with_archived == self._with_archived:
            self._catalogue.add(rows)
            self._is_loading = bool(rows)
            self._show(is_kept=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter the list at once; search messages after a pause."""
        if event.value == "?":
            with event.input.prevent(Input.Changed):
                event.input.value = ""
            self.action_keys()
            return
        self._hits = ()
        self._show(is_kept=False)
        self._after("search", TYPING_PAUSE_SECONDS, lambda: self._search(event.value))

    def _search(self, query: str) -> None:
        if query.strip():
            search = self._sessions.search
            self._run("search", lambda: search(query), lambda hits: self._show_hits(query, hits))

    def _show_hits(self, query: str, hits: Sequence[MessageHit]) -> None:
        """Show the conversations whose messages match."""
        if query == self._typed:
            self._hits = hits
            self._show(is_kept=True)

    def on_row_selected(self, _event: RowList.Selected) -> None:
        """Preview the selected conversation after a short pause."""
        self._after("preview", MOVING_PAUSE_SECONDS, self._preview)

    def _preview(self) -> None:
        if not self.query(RowList):
            return  # the screen is being closed
        entry = self._list.selected
        session_id = entry.row.id if entry else ""
        if session_id != self._previewed:
            self._previewed = session_id
            if entry:
                row, read = entry.row, self._sessions.ending
                show = functools.partial(self._show_ending, row)
                self._run("read the conversation", lambda: read(row.id), show)
            else:
                self.query_one(Preview).show([])

    def _show_ending(self, row: ListedSession, messages: list[MessageRow]) -> None:
        """Show the end of the selected conversation."""
        if row.id == self._previewed:
            for preview in self.query(Preview):  # none while the screen is being closed
                preview.show(preview_pieces(row.session, messages))

    def _show(self, *, is_kept: bool) -> None:
        entries = self._catalogue.entries(self._typed, self._hits)
        self._list.show(entries, is_kept=is_kept)
        total = human_format.number(len(self._catalogue)) + ("…" if self._is_loading else "")
        counted = (
            f"{human_format.number(len(entries))} of {total}" if self._typed.strip() else total
        )
        archived = " including archived" if self._with_archived else ""
        self._show_status(f"{counted} conversations{archived} · F1: keys")

    @property
    def _list(self) -> RowList:
        return self.query_one(RowList)

    @property
    def _typed(self) -> str:
        return self.query_one(Input).value

    def _show_status(self, text: str) -> None:
        if self._question is None:
            self.query_one(StatusLine).update(Content(one_line(text)))

    def _after(self, what: str, seconds: float, then: Any) -> None:
        if what in self._pauses:
            self._pauses[what].stop()
        self._pauses[what] = self.set_timer(seconds, then)

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable actions while a question is open."""
        return self._question is None and super().check_action(action, parameters)

    def on_key(self, event: events.Key) -> None:
        """Answer the open question, if any."""
        if self._question is None:
            return
        event.stop()
        row, self._question = self._question.row, None

        def trashed() -> None:
            self._catalogue.remove(row.id)
            self._show(is_kept=True)
            restore = with_command_name("`hermes sessions restore`")
            self._show_status(f"{row.id} moved to the trash. {restore} restores it.")

        self.query_one(Input).focus()
        if event.key in {"y", "Y"}:
            self._run(
                "move to the trash", lambda: self._sessions.trash(row.id), lambda _: trashed()
            )
        else:
            self._show(is_kept=True)

    def action_leave(self) -> None:
        """Exit without a selection."""
        self.exit(None)

    def action_choose(self) -> None:
        """Exit with the selected row."""
        entry = self._list.selected
        if entry is not None:
            self.exit(entry.row)

    @property
    def _is_reading(self) -> bool:
        return self.query_one(Preview).has_focus

    def action_move(self, rows: int) -> None:
        """Move one row, or one line in the preview."""
        if self._is_reading:
            self.query_one(Preview).scroll_relative(y=rows, animate=False)
        else:
            self._list.move_by(rows)

    def action_page(self, pages: int) -> None:
        """Move one page."""
        if self._is_reading:
            preview = self.query_one(Preview)
            preview.scroll_relative(y=pages * preview.size.height, animate=False)
        else:
            self._list.move_by(pages * self._list.page_rows)

    def action_first(self) -> None:
        """Move to the beginning."""
        if self._is_reading:
            self.query_one(Preview).scroll_home(animate=False)
        else:
            self._list.move_to(0)

    def action_last(self) -> None:
        """Move to the end."""
        if self._is_reading:
            self.query_one(Preview).scroll_end(animate=False)
        else:
            self._list.move_to_end()

    def action_switch(self) -> None:
        """Switch between the list and the preview."""
        is_reading = not self._is_reading
        self.query_one("#body").set_class(is_reading, "reading")
        self.query_one(Preview if is_reading else Input).focus()

    def action_archived(self) -> None:
        """Toggle archived conversations."""
        self._with_archived = not self._with_archived
        self._load()

    def action_pin(self) -> None:
        """Toggle the pin of the selected conversation."""
        entry = self._list.selected
        if entry is None:
            return
        session_id, is_pinned = entry.row.id, not entry.row.session.pinned

        def pinned() -> None:
            self._catalogue.mark_pinned(session_id, is_pinned=is_pinned)
            self._show(is_kept=True)
            self._show_status(f"{session_id} {'pinned' if is_pinned else 'unpinned'}")

        pin = functools.partial(self._sessions.pin, session_id, is_pinned=is_pinned)
        self._run("pin", pin, lambda _: pinned())

    def action_trash(self) -> None:
        """Ask for confirmation before moving the selected conversation to the trash."""
        entry = self._list.selected
        if entry is not None:
            question = TrashQuestion(entry.row)
            self._show_status(question.text)
            self._question = question
            self.query_one(StatusLine).focus()

    def action_keys(self) -> None:
        """Show the keys."""
        self._show_status(KEY_HELP)
