"""The checkpoint of a turn: taken before its first change, closed at its end."""

from __future__ import annotations

import functools
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.checkpoints.archive import NO_GIT, CheckpointArchive, checkpoints_path
from hermes_agent.checkpoints.folder_files import real_folder
from hermes_agent.checkpoints.git_process import find_git
from hermes_agent.checkpoints.records import TURN, Checkpoint, refusal_of_folder
from hermes_agent.checkpoints.store import CheckpointCleanup
from hermes_core.errors import FolderTooLargeError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.checkpoints.edited_files import EditedFiles
    from hermes_agent.checkpoints.records import CheckpointLimits
    from hermes_agent.checkpoints.store import CheckpointStore, OpenCheckpoint
    from hermes_agent.tools.base import Tool, ToolContext
    from hermes_core.json_values import JsonObject

# Tools that change something, but no file of the working folder. All others that do not only
# read count as changing it: those of MCP servers and plugins may.
TOOLS_WITHOUT_FILES: Final = frozenset(
    {"clarify", "memory", "process", "schedule", "send_file", "delegate_task", "todo",
     "present_plan"}
)  # fmt: skip
PROGRESS_SECONDS: Final = 1.0
NOT_KEPT: Final = "The edit of {path} cannot be undone: {error}"
FAILED: Final = "No checkpoint was kept, so file changes of this turn cannot be undone: {error}"


class TurnCheckpoints:
    """Takes the checkpoints of one conversation; sub-agents work in the turn they belong to."""

    def __init__(self, limits: CheckpointLimits) -> None:
        self._archive: CheckpointArchive | None = None
        self._cleanup: CheckpointCleanup | None = None
        self._lock = threading.Lock()
        self._identify: Callable[[], tuple[str, int]] | None = None
        self._is_taken = False  # or refused, in this turn
        self._opened: tuple[CheckpointStore, OpenCheckpoint] | None = None
        self._edits: tuple[EditedFiles, OpenCheckpoint] | None = None
        self._notices: list[str] = []
        self._refused: set[Path] = set()
        program = find_git() if limits.is_enabled else None
        if program is not None:
            self._archive = CheckpointArchive(checkpoints_path(), limits, program)
            self._cleanup = CheckpointCleanup(self._archive)

    def begin(self, identify: Callable[[], tuple[str, int]]) -> None:
        """Start a turn; *identify* returns the session ID and the ID of the last prompt."""
        with self._lock:
            self._identify, self._is_taken = identify, False

    def finish(self) -> list[str]:
        """Close the checkpoint of the turn; returns notices for the user."""
        with self._lock:
            opened, self._opened, self._identify = self._opened, None, None
            edits, self._edits = self._edits, None
            for each in filter(None, (opened, edits)):
                attempt("close the checkpoint", functools.partial(self._close, *each))
            notices, self._notices = self._notices, []
        return notices

    def _close(self, store: CheckpointStore, opened: OpenCheckpoint) -> None:
        record = store.finish(opened, time.time())
        if record is not None and self._cleanup is not None:
            self._cleanup.start_if_due()

    def wrap(self, tool: Tool) -> Tool:
        """The tool, with a checkpoint before its first change."""
        if tool.name in TOOLS_WITHOUT_FILES or self._archive is None:
            return tool

        def run(arguments: JsonObject, context: ToolContext) -> str:
            if not self._is_taken and not tool.only_reads(arguments, context):
                self.before_change(context)
            keep = functools.partial(self._before_edit, context)
            return tool.run(arguments, context._replace(before_edit=keep))

        return tool._replace(run=run)

    def before_change(self, context: ToolContext) -> None:
        """Take the checkpoint of the turn, unless it was taken; a failure is a notice."""
        with self._lock:
            if self._is_taken or self._identify is None:
                return
            self._is_taken = True
            result = attempt("take a checkpoint", lambda: self._take(context))
            if isinstance(result, Failure):
                self._identify = None  # nothing more is kept in this turn
                self._notices.append(FAILED.format(error=result.error))

    def _take(self, context: ToolContext) -> None:
        archive, identify = self._archive, self._identify
        if archive is None or identify is None:
            return
        store = archive.store(context.cwd)
        if store.folder in self._refused:
            return
        if problem := archive.lack_of_space():
            self._identify = None
            self._refuse(archive, store, problem)
            return
        if refusal := refusal_of_folder(store.folder, Path.home()):
            self._refuse(archive, store, refusal)
            return
        session_id, message_id = identify()
        record = Checkpoint(
            archive.next_number(), TURN, str(store.folder), session_id, message_id, time.time(), ""
        )
        timer = threading.Timer(PROGRESS_SECONDS, lambda: _show_progress(context))
        timer.daemon = True
        timer.start()
        try:
            self._opened = store, store.begin(record)
        except FolderTooLargeError as error:
            self._refuse(archive, store, str(error))
        finally:
            timer.cancel()

    def _before_edit(self, context: ToolContext, path: Path) -> None:
        """Keep a file that the checkpoint of the folder does not have; a failure is a notice."""
        with self._lock:
            result = attempt("keep an edited file", lambda: self._keep(context, path))
            if isinstance(result, Failure):
                self._notices.append(NOT_KEPT.format(path=path, error=result.error))

    def _keep(self, context: ToolContext, path: Path) -> None:
        archive, identify, opened = self._archive, self._identify, self._opened
        if archive is None or identify is None:
            return
        if opened is not None and opened[0].covers(opened[1], path):
            return
        if self._edits is None:
            store, (session_id, message_id) = archive.edited_files(), identify()
            folder = str(real_folder(context.cwd))
            number, now = archive.next_number(), time.time()
            record = Checkpoint(number, TURN, folder, session_id, message_id, now, "")
            self._edits = store, store.begin(record)
        store, edits = self._edits
        name = os.fsencode(path.relative_to(store.folder))
        self._edits = store, store.keep(edits, name)

    def _refuse(self, archive: CheckpointArchive, store: CheckpointStore, reason: str) -> None:
        """Keep no checkpoints in this conversation; the user gets a notice once per folder."""
        self._refused.add(store.folder)
        if archive.is_first_notice(reason):
            self._notices.append(reason)


def _show_progress(context: ToolContext) -> None:
    attempt("show progress", lambda: context.show("Saving a checkpoint of the folder…\n"))


def problem_of_checkpoints() -> str:
    """Why no checkpoints are kept on this machine; empty if they are."""
    return "" if find_git() is not None else NO_GIT
