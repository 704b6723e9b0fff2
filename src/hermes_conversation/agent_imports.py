"""Following the histories of other agents in a long-running process."""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import hermes_plugin_host
from hermes_core.backoff import Backoff
from hermes_core.config.yaml_reader import is_set
from hermes_core.isolate import Failure, attempt
from hermes_import.importer import AgentImport, reason_of
from hermes_import.registry import SourceRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.config.file import Settings
    from hermes_import.follower import Follower, FollowOptions
    from hermes_import.importer import Progress, SourceReport
    from hermes_import.registry import FoundHistory
    from hermes_state.store import SessionDB

FOLLOW_BACKOFF: Final = Backoff(1.0, 300.0)
TAKE_OVER_SECONDS: Final = 30.0  # between looks whether another process still follows


def registry_of_home() -> SourceRegistry:
    """The agents whose histories can be imported, those of enabled plugins included."""
    if not is_set("plugins.enabled"):
        return SourceRegistry()
    plugins = hermes_plugin_host.active().plugins.values()
    return SourceRegistry(
        source for plugin in plugins for source in plugin.registered.agent_sources
    )


def follow_options(settings: Settings) -> FollowOptions:
    """What to follow, by the settings."""
    from hermes_import.follower import FollowOptions  # noqa: PLC0415 - loads the file watcher

    minutes = settings.get_int("import.idle_minutes")
    return FollowOptions(minutes * 60.0, tuple(settings.get_list("import.agents")))


def make_follower(
    db: SessionDB,
    options: FollowOptions,
    on_report: Callable[[SourceReport], object] = lambda _report: None,
) -> Follower:
    """A follower of all agents."""
    from hermes_import.follower import Follower  # noqa: PLC0415 - loads the file watcher

    return Follower(db, registry_of_home(), options, on_report)


class BackgroundImport:
    """Imports of a dashboard: one at a time, in a thread."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.progress: Progress | None = None
        self.reports: list[SourceReport] = []

    @property
    def is_running(self) -> bool:
        """Whether an import is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, histories: Sequence[FoundHistory]) -> bool:
        """Start importing; False if an import is running."""
        with self._lock:
            if self.is_running:
                return False
            self.reports, self.progress = [], None
            run = functools.partial(self._run, histories)
            self._thread = threading.Thread(target=run, name="hermes-import", daemon=True)
            self._thread.start()
            return True

    def wait(self) -> None:
        """Wait for the end of the import."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, histories: Sequence[FoundHistory]) -> None:
        for found in histories:
            self._import(found)

    def _import(self, found: FoundHistory) -> None:
        importing = AgentImport(self._db, found.source, on_progress=self._note)
        self.reports.append(importing.report)
        result = attempt(f"import from {found.source.name}", lambda: importing.run(found.units()))
        if isinstance(result, Failure):
            importing.report.failures[found.source.label] = reason_of(result.error)

    def _note(self, progress: Progress) -> None:
        self.progress = progress


class BackgroundFollower:
    """Follows other agents in a thread, if the setting `import.follow` asks for it."""

    def __init__(self, db: SessionDB, settings: Settings) -> None:
        self._follower: Follower | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        if settings.get_bool("import.follow"):
            self._follower = make_follower(db, follow_options(settings))

    def start(self) -> None:
        """Start following."""
        if self._follower is not None:
            self._thread = threading.Thread(target=self._run, name="hermes-import", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        """Follow until stopped: again after a failure, and after another process has ended."""
        failures = 0
        while not self._stop.is_set():
            result = attempt("follow other agents", self._follow)
            failures = failures + 1 if isinstance(result, Failure) else 0
            if isinstance(result, Failure) and self._follower is not None:
                self._follower.note_restart(result.error)
            self._stop.wait(FOLLOW_BACKOFF.delay(failures) if failures else TAKE_OVER_SECONDS)

    def _follow(self) -> None:
        if self._follower is not None:
            self._follower.run(Path.home(), os.environ)

    def stop(self) -> None:
        """Stop following, and wait for the current import."""
        self._stop.set()
        if self._follower is not None and self._thread is not None:
            self._follower.stop()
            self._thread.join()
