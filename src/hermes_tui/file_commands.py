"""Commands about files: /diff, /checkpoints, and the question of /undo and of a rewind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.json_values import objects_in, text_in
from hermes_tui.file_dialogs import (
    CheckpointsDialog,
    DiffScreen,
    RestoreDialog,
    RestorePreview,
)
from tui_gateway.protocol import parse
from tui_gateway.summaries import CheckpointSummary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_tui.app import HermesApp
    from hermes_tui.file_dialogs import RestoreChoice

    Call = Callable[..., Awaitable[JsonObject | None]]


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
