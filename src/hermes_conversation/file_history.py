"""What a conversation changed in files: its checkpoints, their diff, and undoing them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.archive import CheckpointArchive
from hermes_agent.checkpoints.folder_files import real_folder
from hermes_agent.checkpoints.git_process import find_git
from hermes_agent.checkpoints.records import TURN
from hermes_agent.checkpoints.restore import FileRestore, diff_of
from hermes_agent.permissions.file_access import FileAccess
from hermes_agent.permissions.path_zones import PathContext, write_findings
from hermes_agent.permissions.verdicts import Level
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hermes_agent.checkpoints.records import Checkpoint
    from hermes_agent.checkpoints.restore import PlannedPath, ReviewPath
    from hermes_agent.checkpoints.store import CheckpointStore
    from hermes_state.store import SessionDB

    RecordFilter = Callable[[Checkpoint], bool]

NO_CHANGES = "This conversation has not changed any files."
NEEDS_APPROVAL: Final = "{reason}; restore it in a terminal with `hermes checkpoints restore`"


class FolderCheckpoints(NamedTuple):
    """Checkpoints of one folder, oldest first."""

    store: CheckpointStore
    records: list[Checkpoint]


class FilePlan(NamedTuple):
    """What undoing checkpoints would do; a path may be refused."""

    numbers: tuple[int, ...]
    paths: list[PlannedPath]
    diff: str

    @property
    def refused(self) -> list[PlannedPath]:
        """The paths that are not restored unless they are forced."""
        return [path for path in self.paths if path.problem]


class FileOutcome(NamedTuple):
    """What undoing checkpoints did; restoring *undo_numbers* redoes it."""

    restored: list[str]
    refused: list[PlannedPath]
    undo_numbers: tuple[int, ...]


class CheckpointSelection:
    """Checkpoints that are shown or undone together; they may be of several folders."""

    def __init__(
        self,
        archive: CheckpointArchive,
        folders: list[FolderCheckpoints],
        review: ReviewPath | None = None,
    ) -> None:
        self._archive = archive
        self._folders = [each for each in folders if each.records]
        self._review = review

    def within_permissions(self) -> CheckpointSelection:
        """The same checkpoints; files that the agent may not write unasked are refused."""
        return CheckpointSelection(self._archive, self._folders, write_problem)

    @property
    def records(self) -> list[Checkpoint]:
        """The checkpoints, oldest first."""
        found = (record for each in self._folders for record in each.records)
        return sorted(found, key=lambda record: record.number)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the checkpoints."""
        return tuple(record.number for record in self.records)

    def __bool__(self) -> bool:
        return bool(self._folders)

    def diff(self) -> str:
        """What they changed, as a unified diff."""
        texts = []
        for store, records in self._folders:
            with store.locked() as repository:
                texts.append(diff_of(repository, records))
        return "".join(texts)

    def plan(self, only: Iterable[str] = ()) -> FilePlan:
        """What undoing them would do now."""
        names = list(only)
        plans = [FileRestore(*each, self._review).plan(names) for each in self._folders]
        paths = [path for plan in plans for path in plan.paths]
        return FilePlan(self.numbers, paths, "".join(plan.diff for plan in plans))

    def restore(
        self, session_id: str, only: Iterable[str] = (), force: Iterable[str] = ()
    ) -> FileOutcome:
        """Undo them, except for paths that others changed and that are not forced."""
        names, forced = list(only), list(force)
        outcome = FileOutcome([], [], ())
        for each in self._folders:
            number = self._archive.next_number()
            result = FileRestore(*each, self._review).apply(number, session_id, names, forced)
            outcome.restored.extend(result.restored)
            outcome.refused.extend(result.refused)
            if result.number:
                outcome = outcome._replace(undo_numbers=(*outcome.undo_numbers, result.number))
        return outcome


class FileHistory:
    """The checkpoints of one conversation."""

    def __init__(self, db: SessionDB, session_id: str) -> None:
        self._db = db
        self.session_id = session_id

    def all(self) -> CheckpointSelection:
        """Everything the conversation changed, including what it changed before a branch."""
        ids = self._message_ids()
        return self._select(
            lambda record: record.session_id == self.session_id or record.message_id in ids
        )

    def turns(self) -> CheckpointSelection:
        """What its turns changed, without restores."""
        ids = self._message_ids()
        return self._select(
            lambda record: (
                record.kind == TURN
                and (record.session_id == self.session_id or record.message_id in ids)
            )
        )

    def last(self) -> CheckpointSelection:
        """What the last turn with changes changed."""
        turns = self.turns()
        newest = max((record.message_id for record in turns.records[-1:]), default=0)
        number = max(turns.numbers, default=0)
        return self._select(
            lambda record: (
                record.number == number
                or (newest > 0 and record.message_id == newest and record.kind == TURN)
            )
        )

    def since_prompt(self, message_id: int) -> CheckpointSelection:
        """What a prompt of the user and all later ones changed."""
        ids = self._message_ids(message_id)
        return self._select(lambda record: record.kind == TURN and record.message_id in ids)

    def of_last_prompts(self, count: int) -> CheckpointSelection:
        """What the last prompts changed."""
        ids = sorted(self._db.edits.prompt_ids(self.session_id))[-count:]
        return self.since_prompt(ids[0]) if ids else self._select(lambda _record: False)

    def numbered(self, numbers: Iterable[int]) -> CheckpointSelection:
        """Checkpoints of the conversation by number."""
        wanted = set(numbers)
        missing = wanted - set(self.all().numbers)
        if missing:
            raise UsageError(
                f"This conversation has no checkpoint {min(missing)}. /checkpoints lists them."
            )
        return self._select(lambda record: record.number in wanted)

    def _message_ids(self, since: int = 0) -> set[int]:
        """The rows of the prompts, and those that they were copied from."""
        prompts = {row for row in self._db.edits.prompt_ids(self.session_id) if row >= since}
        origins = self._db.edits.origins(self.session_id)
        return (prompts | {origins[row] for row in prompts if row in origins}) - {0}

    def _select(self, is_wanted: RecordFilter) -> CheckpointSelection:
        archive = CheckpointArchive.of_home()
        return CheckpointSelection(archive, list(select_records(archive, is_wanted)))

    @property
    def is_available(self) -> bool:
        """Whether checkpoints can be read: git is installed."""
        return find_git() is not None


def select_records(
    archive: CheckpointArchive, is_wanted: RecordFilter, folder: Path | None = None
) -> Iterator[FolderCheckpoints]:
    """Closed checkpoints by folder; those of turns that were killed are closed first."""
    stores: Sequence[CheckpointStore] = (
        list(archive.stores())
        if folder is None
        else [archive.store(folder), archive.edited_files()]
    )
    real = "" if folder is None else str(real_folder(folder))
    for store in stores:
        if not store.exists:
            continue
        store.close_interrupted()
        records = [
            record
            for record in store.repository.records()
            if not record.is_open and is_wanted(record) and real in {"", record.folder}
        ]
        if records:
            yield FolderCheckpoints(store, records)


def write_problem(path: Path, folder: Path) -> str:
    """Why a file of a working folder is not written unasked; empty if it is.

    The rules are those of the mode `workspace`, without what a person has allowed.
    """
    context = PathContext(
        home=Path.home(),
        hermes_home=hermes_home(),
        free=(folder,),
        bases=(folder,),
        own_pid=os.getpid(),
    )
    if FileAccess(context.hermes_home, context.home).is_hidden(path, folder):
        return NEEDS_APPROVAL.format(reason="belongs to Hermes or holds credentials")
    findings = (each for each in write_findings(str(path), context) if each.level >= Level.RISK)
    finding = next(findings, None)
    return "" if finding is None else NEEDS_APPROVAL.format(reason=finding.reason)
