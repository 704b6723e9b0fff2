"""Imports what other agents write while they work, and ends their conversations.

Changes are reported by the operating system; a poll behind it finds what was not reported.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from watchfiles import watch

from hermes_core.instance_record import hold_lock
from hermes_core.isolate import Failure, attempt
from hermes_import.follower_status import FollowerStatus, lock_path
from hermes_import.importer import AgentImport, ImportOptions, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hermes_import.importer import SourceReport
    from hermes_import.registry import FoundHistory, SourceRegistry
    from hermes_import.sources import AgentSource, Unit
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

WAIT_MILLISECONDS: Final = 500  # for further changes, before those so far are read
CHECK_MILLISECONDS: Final = 1000
POLL_SECONDS: Final = 30.0
FIND_SECONDS: Final = 60.0  # until agents that were installed meanwhile are found


class FollowOptions(NamedTuple):
    """What to follow."""

    idle_seconds: float = 1800.0  # a conversation without records for so long has ended
    names: tuple[str, ...] = ()  # of agents; empty for all


class Follower:
    """Watches the histories of other agents."""

    def __init__(
        self,
        db: SessionDB,
        registry: SourceRegistry,
        options: FollowOptions,
        on_report: Callable[[SourceReport], object] = lambda _report: None,
    ) -> None:
        self._db = db
        self._registry = registry
        self._options = options
        self._on_report = on_report
        self._found: list[FoundHistory] = []
        self._unwatched: set[str] = set()  # agents that do not say what to watch
        self._stop = threading.Event()
        self._found_at = self._polled_at = 0.0
        self.status = FollowerStatus()

    def stop(self) -> None:
        """Let `run` return soon; from any thread."""
        self._stop.set()

    def run(self, home: Path, environ: Mapping[str, str]) -> bool:
        """Import and follow until stopped; False if another process does it."""
        with hold_lock(lock_path()) as is_ours:
            if not is_ours:
                return False
            now = self._db.clock.now()
            self._report(self.status._replace(pid=os.getpid(), started_at=now))
            self._find(home, environ)
            self._import_all()  # without waiting for the watcher
            while not self._stop.is_set():
                self._watch()
                self._find(home, environ)
        return True

    def _find(self, home: Path, environ: Mapping[str, str]) -> None:
        self._found_at = time.monotonic()
        self._unwatched.clear()
        names = self._options.names
        found = self._registry.found_in(home, environ)
        self._found = [each for each in found if not names or each.source.name in names]
        for agent in self.status.failing.keys() - {each.source.name for each in self._found}:
            self._report(self.status.without_failure(agent))

    def _watch(self) -> None:
        """Import changes until it is time to look for other agents."""
        self._polled_at = float("-inf")  # poll when the watcher has started
        for paths in self._changes():
            self._import_changes(paths)
            attempt("end idle conversations", self._end_idle)
            now = time.monotonic()
            if now - self._polled_at > POLL_SECONDS:
                self._import_all()
            if now - self._found_at > FIND_SECONDS:
                return

    def _changes(self) -> Iterator[set[Path]]:
        """The files that have changed, at least once a second, until stopped."""
        stamps = self._stamps()
        for paths in self._reported():
            before, stamps = stamps, self._stamps()
            yield paths | {path for path, stamp in stamps.items() if before.get(path) != stamp}

    def _reported(self) -> Iterator[set[Path]]:
        """The files that the operating system reports; if it cannot, all files are polled."""
        folders, is_reported = self._folders(), True
        try:
            while folders and not self._stop.is_set():
                for changes in watch(
                    *folders,
                    debounce=WAIT_MILLISECONDS,
                    step=100,
                    rust_timeout=CHECK_MILLISECONDS,
                    yield_on_timeout=True,
                    stop_event=self._stop,
                    raise_interrupt=False,
                    ignore_permission_denied=True,
                ):
                    yield {Path(path) for _change, path in changes}
        except (OSError, RuntimeError) as error:  # too many folders, or a name that is not UTF-8
            log.warning("file watcher failed, polling: %s", error)
            is_reported = False
        while not self._stop.wait(CHECK_MILLISECONDS / 1000):
            if not is_reported:
                self._import_all()
            yield set()

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        """The size and the time of the last change of each polled file."""
        stamps = {}
        for found in self._found:
            for path in self._polled(found):
                with contextlib.suppress(OSError):
                    status = path.stat()
                    stamps[path] = (status.st_size, status.st_mtime_ns)
        return stamps

    def _folders(self) -> list[Path]:
        return [folder for found in self._found for folder in self._watched(found)]

    def _watched(self, found: FoundHistory) -> list[Path]:
        return self._asked(found, found.source.watched)

    def _polled(self, found: FoundHistory) -> list[Path]:
        return self._asked(found, found.source.polled)

    def _asked(self, found: FoundHistory, ask: Callable[[Path], list[Path]]) -> list[Path]:
        """What an agent says of its roots; one that fails is only polled until the next search."""
        name = found.source.name
        if name in self._unwatched:
            return []
        paths = attempt(
            f"watch {name}", lambda: [path for root in found.roots for path in ask(root)]
        )
        if isinstance(paths, Failure):
            self._unwatched.add(name)
            now = self._db.clock.now()
            self._report(self.status.with_failure(reason_of(paths.error), now, name))
            return []
        return paths

    def _import_changes(self, paths: set[Path]) -> None:
        """Import the units that changed files belong to."""
        for found in self._found:
            for root in found.roots:
                one = found._replace(roots=(root,))
                folders, files = self._watched(one), set(self._polled(one))
                changed = [
                    path
                    for path in paths
                    if path in files or any(path.is_relative_to(folder) for folder in folders)
                ]
                if changed:
                    self._import(found, _units_at(found.source, root, changed))

    def _import_all(self) -> None:
        self._polled_at = time.monotonic()
        for found in self._found:
            if self._import(found, found.units()) and found.source.name not in self._unwatched:
                self._report(self.status.without_failure(found.source.name))

    def _import(self, found: FoundHistory, units: Iterable[Unit]) -> bool:
        """Import units of an agent; whether nothing failed."""
        name, problems = found.source.name, list[str]()
        result = attempt(f"import from {name}", lambda: self._import_units(found, units, problems))
        if isinstance(result, Failure):
            problems.append(reason_of(result.error))
        if problems:
            now = self._db.clock.now()
            self._report(self.status.with_failure(problems[0], now, name))
        return not problems

    def _import_units(
        self, found: FoundHistory, units: Iterable[Unit], problems: list[str]
    ) -> None:
        options = ImportOptions(live_seconds=self._options.idle_seconds)
        report = AgentImport(self._db, found.source, options).run(units)
        problems += [f"{path}: {error}" for path, error in report.failures.items()]
        if report.units:
            self._on_report(report)

    def _report(self, status: FollowerStatus) -> None:
        """Tell other processes what has changed."""
        before, self.status = self.status, status
        if status._replace(failed_at=before.failed_at) != before:
            attempt("write the status of imports", status.save)

    def note_restart(self, failure: Exception) -> None:
        """Report that following failed as a whole, and that it starts again."""
        text = str(failure) or type(failure).__name__
        status = self.status._replace(restarts=self.status.restarts + 1)
        self._report(status.with_failure(text, self._db.clock.now()))

    def _end_idle(self) -> None:
        before = self._db.clock.now() - self._options.idle_seconds
        for session_id in self._db.imports.end_idle(before):
            log.info("imported conversation ended: %s", session_id)


def _units_at(source: AgentSource, root: Path, paths: list[Path]) -> Iterator[Unit]:
    """The units of changed files; an error of the agent is raised while they are read."""
    yield from source.units_at(root, paths)
