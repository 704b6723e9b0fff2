"""Commands about files: /diff, /checkpoints, and the question of /undo and of a rewind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.segment import Segment
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import OptionList, SelectionList, Static
from textual.widgets.selection_list import Selection

from hermes_core import human_format
from hermes_core.json_values import objects_in, text_in
from hermes_core.terminal_text import clean, fit, one_line
from hermes_tui.dialogs import MAX_LABEL_COLUMNS, ListDialog
from tui_gateway.protocol import CheckpointSummary, PlannedFile, parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.app import ComposeResult

    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_tui.app import HermesApp

    Call = Callable[..., Awaitable[JsonObject | None]]

MAX_DIFF_LINES: Final = 5_000  # more take long to lay out
STYLES: Final = {"+": "$success", "-": "$error", "@": "$accent"}
UNDO_KEYS: Final = (
    "Enter conversation and files · c conversation only · f files only\n"
    "Space select · Tab scroll the diff · Esc cancel"
)
RESTORE_KEYS: Final = "Enter restore files · Space select · Tab scroll the diff · Esc cancel"


def colored_diff(text: str) -> Content:
    """A unified diff with its colors."""
    lines = text.splitlines()
    pieces = [(f"{clean(line)}\n", _style(line)) for line in lines[:MAX_DIFF_LINES]]
    if len(lines) > MAX_DIFF_LINES:
        pieces.append((f"… {len(lines) - MAX_DIFF_LINES:,} more lines\n", "$text-muted"))
    return Content.assemble(*pieces)


def _style(line: str) -> str:
    if line.startswith(("diff ", "+++", "---")):
        return "bold"
    return STYLES.get(line[:1], "")


class DiffScreen(ModalScreen[None]):
    """A diff that can be scrolled."""

    BINDINGS: ClassVar = [Binding("escape,q,enter", "close")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The diff."""
        with Vertical(classes="dialog wide"):
            yield Static("Changed by this conversation", classes="heading")
            with VerticalScroll(classes="diff"):
                yield Static(colored_diff(self._text))
            yield Static(Content("arrows, PgUp, PgDn scroll · Esc close"), classes="keys")

    def on_mount(self) -> None:
        """Focus the diff, to scroll it."""
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss(None)


class RestorePreview(NamedTuple):
    """What a restore would change."""

    files: list[PlannedFile]
    diff: str

    @classmethod
    def read(cls, result: JsonObject) -> RestorePreview:
        """The preview from JSON."""
        files = [parse(PlannedFile, item) for item in objects_in(result, "files")]
        return cls(files, text_in(result, "diff"))


class RestoreChoice(NamedTuple):
    """What to restore: the conversation, and which files; forced ones were changed since."""

    has_conversation: bool
    paths: tuple[str, ...] = ()
    force: tuple[str, ...] = ()


class FileSelection(SelectionList[int]):
    """Files with a mark that is visible without colors: [x] or [ ]."""

    def render_line(self, y: int) -> Strip:
        """A file and its mark."""
        strip = super().render_line(y)
        index = self.scroll_offset.y + y
        if index >= self.option_count:
            return strip
        is_selected = self.get_option_at_index(index).value in self.selected
        _, button, _, *line = strip
        return Strip([Segment("[x]" if is_selected else "[ ]", button.style), *line])


class RestoreDialog(ModalScreen[RestoreChoice | None]):
    """The files that a restore would change, its diff, and the choice."""

    BINDINGS: ClassVar = [
        Binding("escape", "cancel"),
        Binding("enter", "accept", priority=True),
        Binding("b", "choose(True, True)"),
        Binding("c", "choose(True, False)"),
        Binding("f", "choose(False, True)"),
    ]

    def __init__(self, preview: RestorePreview, *, offers_conversation: bool) -> None:
        super().__init__()
        self._preview = preview
        self._offers_conversation = offers_conversation

    def compose(self) -> ComposeResult:
        """The files, the diff and the keys."""
        count = human_format.plural(len(self._preview.files), "file")
        with Vertical(classes="dialog wide"):
            yield Static(Content(f"Restoring would change {count}"), classes="heading")
            yield FileSelection(*self._selections(), compact=True)
            with VerticalScroll(classes="diff"):
                yield Static(colored_diff(self._preview.diff))
            keys = UNDO_KEYS if self._offers_conversation else RESTORE_KEYS
            yield Static(Content(keys), classes="keys")

    def _selections(self) -> list[Selection[int]]:
        """Files that others changed since are selected by the user only."""
        return [
            Selection(
                Content(fit(one_line(_label(file)), MAX_LABEL_COLUMNS)),
                index,
                initial_state=not file.problem,
                disabled=bool(file.problem) and not file.may_force,
            )
            for index, file in enumerate(self._preview.files)
        ]

    def on_mount(self) -> None:
        """Focus the files."""
        self.query_one(SelectionList).focus()

    def action_accept(self) -> None:
        """Restore the selected files, and the conversation if it is offered."""
        self.action_choose(self._offers_conversation, True)

    def action_choose(self, has_conversation: bool, has_files: bool) -> None:
        """Close with the choice."""
        if has_conversation and not self._offers_conversation:
            return
        chosen = self.query_one(SelectionList).selected if has_files else []
        files = [self._preview.files[index] for index in chosen]
        if not has_conversation and not files:
            self.notify("No file is selected.")
            return
        paths = tuple(file.path for file in files if not file.problem)
        force = tuple(file.path for file in files if file.problem)
        self.dismiss(RestoreChoice(has_conversation, paths, force))

    def action_cancel(self) -> None:
        """Restore nothing."""
        self.dismiss(None)


def _label(file: PlannedFile) -> str:
    problem = f"; {file.problem}" if file.problem else ""
    return clean(f"{file.path} ({file.change} by the agent{problem})")


class CheckpointsDialog(ListDialog[int | None]):
    """The checkpoints of the conversation, newest first; returns the number of one to restore."""

    HEADING = "Restore the files of which turn?"
    KEYS = "Enter show and restore · Esc cancel"

    def __init__(self, checkpoints: list[CheckpointSummary]) -> None:
        now = time.time()
        super().__init__([_line(each, now) for each in checkpoints])
        self._checkpoints = checkpoints

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Show this checkpoint."""
        self.dismiss(self._checkpoints[event.option_index].number)


def _line(checkpoint: CheckpointSummary, now: float) -> str:
    files = human_format.plural(checkpoint.files, "file")
    parts = (str(checkpoint.number), human_format.ago(checkpoint.started_at, now), files)
    return "  ".join((*parts, checkpoint.about))


class TuiFileCommands:
    """Shows and restores what the conversation changed; *call* shows errors itself."""

    def __init__(self, app: HermesApp, call: Call) -> None:
        self._app = app
        self._call = call

    async def diff(self, scope: str) -> None:
        """Show what the conversation changed."""
        result = await self._call("checkpoints.diff", scope=scope)
        if result is not None:
            self._app.push_screen(DiffScreen(text_in(result, "diff")))

    async def pick(self) -> None:
        """Choose a checkpoint to restore."""
        result = await self._call("checkpoints.list")
        if result is None:
            return
        found = [parse(CheckpointSummary, item) for item in objects_in(result, "checkpoints")]
        if not found:
            await self._app.note("This conversation has not changed any files.")
            return
        self._app.push_screen(CheckpointsDialog(found), self._show_picked)

    def _show_picked(self, number: int | None) -> None:
        if number:
            self._app.run_worker(self.restore(None, number=number))

    async def restore(
        self, undo: Callable[[], Awaitable[object]] | None, **selector: JsonValue
    ) -> None:
        """Ask what to restore, then do it; *undo* changes the conversation, if that is offered.

        Without files to restore, the conversation alone is changed, without a question.
        """
        result = await self._call("checkpoints.preview", **selector)
        preview = RestorePreview([], "") if result is None else RestorePreview.read(result)
        if not preview.files:
            if undo is not None:
                await undo()
            elif result is not None:
                await self._app.note("Nothing to restore: the files already have that state.")
            return

        def on_choice(choice: RestoreChoice | None) -> None:
            if choice is not None:
                self._app.run_worker(self._apply(choice, undo, selector))

        dialog = RestoreDialog(preview, offers_conversation=undo is not None)
        self._app.push_screen(dialog, on_choice)

    async def _apply(
        self,
        choice: RestoreChoice,
        undo: Callable[[], Awaitable[object]] | None,
        selector: dict[str, JsonValue],
    ) -> None:
        text = ""
        if choice.paths or choice.force:
            paths, force = "\n".join(choice.paths), "\n".join(choice.force)
            result = await self._call("checkpoints.restore", **selector, paths=paths, force=force)
            if result is None:
                return
            text = text_in(result, "output")
        if choice.has_conversation and undo is not None:
            await undo()
        if text:
            await self._app.note(text)
