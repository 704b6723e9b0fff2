"""Which files of a project the user trusts: one file in the Hermes folder.

A file is trusted by its path below the root of the project and by its digest. A changed or
added file is not, until the user has seen it. A moved project is another one.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from hermes_agent.project.files import read_project
from hermes_core.atomic_files import folder_locked
from hermes_core.clock import SystemClock
from hermes_core.json_files import read_json, write_json
from hermes_core.paths import TRUST_FILE, hermes_home

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.project.files import ProjectFile, ProjectFiles

log = logging.getLogger(__name__)

WRITABLE_BY_OTHERS: Final = 0o022

PendingState = Literal["new", "changed"]


class TrustedFolder(NamedTuple):
    """A project and the digests of its trusted and of its declined files, by name."""

    root: Path
    files: dict[str, str]
    declined: dict[str, str]
    trusted_at: float


class PendingFile(NamedTuple):
    """A file that the user has not trusted as it is now."""

    file: ProjectFile
    state: PendingState
    is_declined: bool = False  # the user has seen it as it is now and said no


class ProjectTrust(NamedTuple):
    """The files of a project that are used, and those that are ignored."""

    project: ProjectFiles
    trusted: tuple[ProjectFile, ...] = ()
    pending: tuple[PendingFile, ...] = ()

    @property
    def must_ask(self) -> bool:
        """Whether there is a file that the user has not decided about."""
        return any(not item.is_declined for item in self.pending)

    @property
    def notice(self) -> str:
        """What the user should know; empty if nothing is ignored, or as they decided."""
        names = [item.file.name for item in self.pending if not item.is_declined]
        if not names:
            return ""
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return (
            f"Ignored, because this folder is not trusted: {', '.join(names[:3])}{more}. "
            f"To review and use them: hermes trust {self.project.root}"
        )


class TrustStore:
    """The decisions of the user."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or hermes_home() / TRUST_FILE

    def assess(self, project: ProjectFiles) -> ProjectTrust:
        """Divide the files of a project into trusted and other ones."""
        if not project.files:
            return ProjectTrust(project)
        known = self._read().get(str(project.root))
        files = known.files if known else {}
        declined = known.declined if known else {}
        trusted, pending = [], []
        for file in project.files:
            if files.get(file.name) == file.digest:
                trusted.append(file)
            else:
                state: PendingState = "changed" if file.name in files else "new"
                is_declined = declined.get(file.name) == file.digest
                pending.append(PendingFile(file, state, is_declined))
        return ProjectTrust(project, tuple(trusted), tuple(pending))

    def trust(self, project: ProjectFiles) -> None:
        """Trust the files of a project as they were read, and no longer any removed ones."""
        self._settle(project, {file.name: file.digest for file in project.files}, {})

    def decline(self, trust: ProjectTrust) -> None:
        """Note that the user does not trust the pending files as they are now."""
        accepted = {file.name: file.digest for file in trust.trusted}
        declined = {item.file.name: item.file.digest for item in trust.pending}
        self._settle(trust.project, accepted, declined)

    def revoke(self, root: Path) -> bool:
        """Forget a project; whether it was known."""
        with folder_locked(self.path.parent):
            folders = self._read()
            is_known = folders.pop(os.path.realpath(root), None) is not None
            if is_known:
                self._write(folders)
        return is_known

    def folders(self) -> list[TrustedFolder]:
        """All projects with trusted files."""
        return [folder for _, folder in sorted(self._read().items()) if folder.files]

    def _settle(
        self, project: ProjectFiles, files: dict[str, str], declined: dict[str, str]
    ) -> None:
        with folder_locked(self.path.parent):
            folders = self._read()
            known = folders.get(str(project.root))
            folders[str(project.root)] = TrustedFolder(
                project.root,
                {**_elsewhere(known.files if known else {}, project), **files},
                {**_elsewhere(known.declined if known else {}, project), **declined},
                SystemClock().now(),
            )
            self._write(folders)

    def _read(self) -> dict[str, TrustedFolder]:
        try:
            status = self.path.stat()
        except OSError:
            return {}
        if status.st_mode & WRITABLE_BY_OTHERS or status.st_uid != os.getuid():
            log.error("%s is ignored: other users can write it", self.path)
            return {}
        document = read_json(self.path, {}, SystemClock()).value
        folders = document.get("folders") if isinstance(document, dict) else None
        if not isinstance(folders, dict):
            return {}
        return {
            root: _folder(root, fields)
            for root, fields in folders.items()
            if isinstance(fields, dict)
        }

    def _write(self, folders: dict[str, TrustedFolder]) -> None:
        rows = {
            root: {
                "files": folder.files,
                "declined": folder.declined,
                "trusted_at": folder.trusted_at,
            }
            for root, folder in sorted(folders.items())
        }
        write_json(self.path, {"folders": rows})


def assess_project(cwd: Path) -> ProjectTrust:
    """The files of the project of *cwd*, as far as the user trusts them."""
    return TrustStore().assess(read_project(cwd))


def _folder(root: str, fields: dict[str, object]) -> TrustedFolder:
    moment = fields.get("trusted_at")
    return TrustedFolder(
        Path(root),
        _digests(fields.get("files")),
        _digests(fields.get("declined")),
        float(moment) if isinstance(moment, (int, float)) else 0.0,
    )


def _digests(value: object) -> dict[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {name: digest for name, digest in pairs if isinstance(digest, str)}


def _elsewhere(digests: dict[str, str], project: ProjectFiles) -> dict[str, str]:
    """The entries of folders that were not searched this time."""
    return {
        name: digest
        for name, digest in digests.items()
        if not _is_searched(project.root / name, project.folders)
    }


def _is_searched(path: Path, folders: Iterable[Path]) -> bool:
    return any(
        path.is_relative_to(folder)
        and path.relative_to(folder).parts[0] in {".mcp.json", ".hermes", ".claude", ".agents"}
        for folder in folders
    )
