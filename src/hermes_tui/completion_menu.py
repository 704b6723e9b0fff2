"""The menu of completions above the input: commands, their arguments, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content
from textual.widgets import Static

from hermes_core.terminal_text import fit, one_line, pad, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

MAX_ROWS: Final = 8
LABEL_SHARE: Final = 0.4  # of the width at least, if a detail is beside it
SELECTION_MARK: Final = "❯ "  # noqa: RUF001 - also visible without colors


class MenuItem(NamedTuple):
    """An entry: what is shown, and what replaces the completed word."""

    label: str
    text: str
    detail: str = ""
    is_complete: bool = True  # nothing has to follow: Enter may send it


class CompletionMenu(Static):
    """A list with a selected entry; it keeps its height until it is closed.

    A change of the height would lay out the whole conversation again at every key.
    """

    def __init__(self) -> None:
        super().__init__(id="menu")
        self.display = False
        self._items: Sequence[MenuItem] = ()
        self._index = 0
        self._first = 0  # the first visible entry
        self._rows = 0

    @property
    def is_open(self) -> bool:
        """Whether there are entries."""
        return bool(self._items)

    @property
    def selected(self) -> MenuItem | None:
        """The selected entry."""
        return self._items[self._index] if self._items else None

    @property
    def items(self) -> Sequence[MenuItem]:
        """All entries."""
        return self._items

    def open(self, items: Sequence[MenuItem]) -> None:
        """Show entries; the first is selected. Without entries the menu is closed."""
        if not items:
            self.close()
            return
        if items == self._items:
            return
        self._items, self._index, self._first = items, 0, 0
        rows = min(len(items), MAX_ROWS) + 1
        if not self.display or rows > self._rows:
            self._rows = rows
            self.styles.height = rows
            self.display = True
        self._draw()

    def close(self) -> None:
        """Hide the menu."""
        self._items = ()
        if self.display:
            self.display = False
            self._rows = 0

    def move(self, steps: int) -> None:
        """Move the selection; it continues at the other end."""
        if self._items:
            self._index = (self._index + steps) % len(self._items)
            self._first = min(max(self._first, self._index - MAX_ROWS + 1), self._index)
            self._draw()

    def move_page(self, pages: int) -> None:
        """Move the selection by pages, to the ends at most."""
        target = max(0, min(len(self._items) - 1, self._index + pages * MAX_ROWS))
        self.move(target - self._index)

    def on_resize(self, _event: events.Resize) -> None:
        """Fit the entries to the width."""
        if self._items:
            self._draw()

    def _draw(self) -> None:
        columns = max(20, self.content_size.width or self.app.size.width - 4)
        visible = self._items[self._first : self._first + MAX_ROWS]
        widest = max(width(one_line(item.label)) for item in self._items)
        detail = max(width(one_line(item.detail)) for item in self._items)
        rest = columns - detail - (4 if detail else 2)  # what the widest detail leaves
        label_columns = min(widest, max(int(columns * LABEL_SHARE), rest))
        pieces: list[str | tuple[str, str]] = []
        for number, item in enumerate(visible, self._first):
            is_selected = number == self._index
            label = pad(fit(one_line(item.label), label_columns), label_columns)
            line = f"{SELECTION_MARK if is_selected else '  '}{label}"
            about = fit(one_line(item.detail), columns - width(line) - 2)
            padding = " " * max(0, columns - width(line) - width(about) - 2)
            style = "bold $text on $primary-muted" if is_selected else ""
            pieces.append((line, style))
            pieces.append((f"  {about}{padding}", style or "dim"))
            pieces.append("\n")
        pieces.append((f"  {self._index + 1} of {len(self._items)}{KEY_HINT}", "dim"))
        self.update(Content.assemble(*pieces), layout=False)


KEY_HINT: Final = "  ↑↓ select · Tab complete · Enter accept · Esc close"
