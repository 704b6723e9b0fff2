"""Repository of exports, imports and backups.

The modules that implement them are imported at first use, because most programs never
need them.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from hermes_state.repository import Repository
from hermes_state.sessions.lists import refresh_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from hermes_state.portable.backup.archive_format import BackupManifest
    from hermes_state.portable.importer import ImportReport, OnConflict
    from hermes_state.repository import StoreContext
    from hermes_state.sessions.lists import ListRepository


class PortableRepository(Repository):
    """Exports, imports and backups."""

    def __init__(self, context: StoreContext, lists: ListRepository) -> None:
        super().__init__(context)
        self._lists = lists

    def sessions_to_export(
        self, *, include_archived: bool = True, include_trashed: bool = False, **filters: Any
    ) -> list[str]:
        """IDs of sessions, parents before children.

        `filters` are those of `list_sessions_rich`. With filters, the result includes for each
        matching conversation the rows it continues and the tasks delegated from it.
        """
        from hermes_state.portable import record  # noqa: PLC0415 - see above

        chosen = {name: value for name, value in filters.items() if value}
        if not chosen:
            return self.engine.read(
                lambda reader: record.all_sessions(
                    reader, archived=include_archived, trashed=include_trashed
                )
            )
        lists: list[dict[str, Any]] = [{"include_archived": include_archived}]
        lists += [{"trashed_only": True}] if include_trashed else []
        matching = [
            row.id
            for options in lists
            for row in self._lists.sessions(**chosen, **options, limit=-1, include_children=True)
        ]
        return self.engine.read(
            lambda reader: record.conversations(reader, matching, trashed=include_trashed)
        )

    def relatives_of(self, session_id: str) -> list[str]:
        """A session, its ancestors and the rows that continue it, oldest first."""
        from hermes_state.portable import record  # noqa: PLC0415 - see above

        return self.engine.read(lambda reader: record.relatives(reader, session_id))

    def iter_export_file(
        self, session_ids: Sequence[str], *, is_redacted: bool = False
    ) -> Iterator[bytes]:
        """An export file with these sessions, in chunks; parents must come first."""
        from hermes_state.portable.record import export_chunks  # noqa: PLC0415
        from hermes_state.portable.redaction import Redactor  # noqa: PLC0415 - see above

        refresh_index(self.engine)
        return export_chunks(self.engine, session_ids, Redactor() if is_redacted else None)

    def import_file(
        self,
        file: IO[bytes],
        *,
        name: str = "the file",
        on_conflict: OnConflict = "skip",
        is_dry_run: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> ImportReport:
        """Import an export file that can be read twice.

        Each session is imported completely or not at all. A damaged file is rejected with
        PortableFileError before anything is changed. Imported sessions belong to no
        process.
        """
        from hermes_state.portable.importer import Import  # noqa: PLC0415 - see above

        return Import(self.engine, on_conflict, is_dry_run=is_dry_run).run(file, name, progress)

    def backup_to(
        self,
        path: Path,
        *,
        with_secrets: bool = False,
        progress: Callable[[str], object] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> BackupManifest:
        """Write a backup of the store and the settings to *path*, and verify it.

        Other processes may keep writing; everything stored before the call is included. If an
        earlier backup into the same folder was killed, its finished parts are used. Raises
        BackupStoppedError soon after `should_stop` returns true, and leaves nothing.
        """
        from hermes_state.portable.backup import writer  # noqa: PLC0415 - see above

        watcher = writer.BackupWatcher(progress, should_stop)
        return writer.write_backup(self.engine, path, with_secrets=with_secrets, watcher=watcher)
