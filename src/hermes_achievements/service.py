"""Achievements as a service: a snapshot that is always at hand, and scans behind it.

Whoever asks gets the last good snapshot at once. A scan runs in the background, one at a
time; while the first one runs, partial snapshots show what it has found so far. They are
never recorded, and never take the place of a complete snapshot. A scan that fails leaves
what was known, says why, and is tried again after a pause.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from hermes_achievements.catalogue.user_catalogue import ChosenCatalogue
from hermes_achievements.evaluation.recorder import Recording
from hermes_achievements.evaluation.records import Records
from hermes_achievements.evaluation.standings import counts, evaluate
from hermes_achievements.scan.status import ScanProcess, ScanStatus
from hermes_achievements.scan.survey import Follower, Order, survey, survey_elsewhere
from hermes_core.clock import SystemClock
from hermes_core.errors import HermesError, ScanBusyError, ScanError
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from hermes_achievements.catalogue import Achievement, Catalogue
    from hermes_achievements.scan.history import History, Ledger
    from hermes_achievements.scan.survey import HistorySurvey, Report
    from hermes_core.clock import Clock

    Snapshot = dict[str, Any]
    Scan = dict[str, Any]

SNAPSHOT_TTL_SECONDS: Final = 120
LOOK_SECONDS: Final = 2.0  # how often it is worth a look whether anything was written
PENDING: Final = "pending"
IN_PROGRESS: Final = "in_progress"
FAILED: Final = "failed"
INCOMPLETE: Final = frozenset({PENDING, IN_PROGRESS, FAILED})


class Source(NamedTuple):
    """Where the history comes from; `can_travel` when another process can open it.

    The zone `is_remembered` when it is the machine's own: other processes of the same user
    may live in another zone, and days must not depend on who scans.
    """

    open_history: Callable[[], History]
    open_ledger: Callable[[], Ledger]
    zone: str = ""
    can_travel: bool = False
    is_remembered: bool = False


class Compute(Protocol):
    """Makes a snapshot of a scan."""

    def __call__(self, scan: Scan, *, is_partial: bool = False) -> Snapshot: ...


class AchievementService:
    """The achievements of one user."""

    def __init__(
        self,
        folder: Callable[[], Path],
        *,
        clock: Clock | None = None,
        announce: Callable[[dict[str, Any]], object] | None = None,
        added: Callable[[], Iterable[Achievement]] = tuple,
        hidden: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._clock = clock or SystemClock()
        self.records = Records(folder, self._clock)
        self.status = ScanStatus(self._clock)
        self.thread: threading.Thread | None = None
        self.cache: Snapshot | None = None
        self._recording = Recording(self.records, self._clock, announce)
        self._chosen = ChosenCatalogue(added, hidden)
        self._process = ScanProcess()
        self._follower = Follower()
        self._lock = threading.Lock()
        self._scanning = threading.Lock()
        self._watched: History | None = None
        self._version: int | None = None
        self._resets = 0
        self._looked_at = 0.0
        self._has_moved = False

    @property
    def catalogue(self) -> Catalogue:
        """Our achievements and those of plugins, without those the user hides."""
        return self._chosen.current()

    # Answering

    def evaluate(
        self, *, force: bool, run: Callable[[], object], start: Callable[[], object]
    ) -> Snapshot:
        """What is known now; with *force*, after looking at everything new."""
        if force:
            run()
            return self._served(self.current(), is_stale=False)
        snapshot = self.current()
        is_stale = snapshot is None or self.is_stale(snapshot)
        served = self._served(snapshot, is_stale=is_stale)
        if is_stale:
            start()
        return served

    def _served(self, snapshot: Snapshot | None, *, is_stale: bool) -> Snapshot:
        error = self.status.facts()["last_error"]
        if snapshot is None:
            return self._failed(error) if error else self.pending()
        is_partial = _mode(snapshot) in INCOMPLETE
        return {**snapshot, "error": error, "is_stale": is_stale or is_partial or bool(error)}

    def current(self) -> Snapshot | None:
        """The last snapshot, from memory or from disk."""
        with self._lock:
            if self.cache is None:
                self.cache = self.records.snapshot()
            return self.cache

    def is_stale(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is partial, old, or older than the history."""
        if _mode(snapshot) in INCOMPLETE:
            return True
        if snapshot.get("catalogue_id") != self._chosen.id():
            return True  # achievements were added, changed or hidden
        age = self._clock.now() - float(snapshot.get("generated_at") or 0)
        return age > SNAPSHOT_TTL_SECONDS or age < 0 or self._has_history_moved()

    def _has_history_moved(self) -> bool:
        now = time.monotonic()
        watched = self._watched
        if watched is not None and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            try:
                self._has_moved = watched.version() != self._version
            except HermesError:  # it is gone, or cannot be read: the scan says so
                self._has_moved = True
        return self._has_moved

    def pending(self) -> Snapshot:
        """What is shown before anything is known: the catalogue, with nothing earned."""
        shown = evaluate(self.catalogue, {}, {})
        return self._snapshot(shown, {"mode": PENDING, "sessions_total": 0}, {})

    def _failed(self, reason: str) -> Snapshot:
        """What is shown when nothing is known because the scan has failed."""
        empty = self.pending()
        meta = {**empty["scan_meta"], "mode": FAILED}
        return {**empty, "scan_meta": meta, "error": reason, "is_stale": True}

    # Scanning

    def start(self, run: Callable[[], object]) -> None:
        """Scan in the background, unless that is going on or has just failed."""
        with self._lock:
            if self.status.is_resting or (self.thread is not None and self.thread.is_alive()):
                return
            self.thread = threading.Thread(
                target=lambda: attempt(Step("scan for achievements", run)),
                name="hermes-achievements-scan",
                daemon=True,
            )
            self.thread.start()

    def run(
        self, source: Source, compute: Compute, *, publish: bool = True, full: bool = False
    ) -> Snapshot | None:
        """Scan, and put the result in place of the snapshot.

        When another process is scanning, or the scan fails, the last good snapshot stays.
        """
        with self._scanning, self.status.running():
            self._chosen.look()
            try:
                version = self._watch(source)
                if not full and self._is_known(version):
                    self.status.succeeded()
                    return self._confirmed()
                result = self._found(source, compute, publish=publish, full=full)
            except ScanBusyError as error:
                self.status.busy(str(error))
                self._reload()
                if publish:
                    self._follow(source, compute)
                return None
            except HermesError as error:
                self._give_up(str(error))
                return None
            snapshot = compute(scan_of(result))
            self.records.save_snapshot(snapshot)
            with self._lock:
                self.cache = snapshot
                self._version = version
                self._has_moved = False
            self.status.succeeded()
            return snapshot

    def _is_known(self, version: int | None) -> bool:
        """Whether everything is known of a history that has come to *version*."""
        snapshot = self.cache
        return (
            version is not None
            and version >= 0
            and version == self._version
            and snapshot is not None
            and _mode(snapshot) not in INCOMPLETE
            and snapshot.get("catalogue_id") == self._chosen.id()
        )

    def _confirmed(self) -> Snapshot | None:
        """Nothing was written since the last scan: its snapshot is as good as new."""
        with self._lock:
            self._has_moved = False
            if self.cache is not None:
                self.cache = {**self.cache, "generated_at": self._clock.now()}
            return self.cache

    def _give_up(self, reason: str) -> None:
        """What is complete stays; what the scan had found so far does not."""
        with self._lock:
            if self.cache is not None and _mode(self.cache) in INCOMPLETE:
                self.cache = None
        self.status.failed(reason)

    def _found(
        self, source: Source, compute: Compute, *, publish: bool, full: bool
    ) -> HistorySurvey:
        """A survey that began after the unlocks were last forgotten."""
        if source.is_remembered:
            self.records.remember_zone(source.zone)
        while True:
            if self._process.is_exiting:
                raise ScanError("this program is about to end")
            resets = self._resets
            result = self._survey(source, compute, publish=publish, full=full)
            if resets == self._resets:
                return result

    def _survey(
        self, source: Source, compute: Compute, *, publish: bool, full: bool
    ) -> HistorySurvey:
        order = Order(
            source.open_history,
            source.open_ledger,
            source.zone,
            self.catalogue.achievements,
            self._recording.settled(full=full),
            full=full,
            processes=None if source.can_travel else 0,
        )
        partials = _Partials(self, compute) if publish else None

        def on_report(report: Report) -> None:
            self.status.progress(report)
            if partials is not None:
                partials.publish(report)

        if source.can_travel and (full or self.current() is None):
            return survey_elsewhere(order, on_report, self._process.started)
        return _expected(lambda: survey(order, on_report))

    def _watch(self, source: Source) -> int | None:
        """The version of the history; of the file that is there now, if it was replaced."""
        if not source.can_travel:
            return None
        try:
            if self._watched is not None:
                version = self._watched.version()
                if version >= 0:
                    return version
                self._unwatch()
            self._watched = source.open_history()
            return self._watched.version()
        except HermesError:
            self._unwatch()
            raise

    def _unwatch(self) -> None:
        if self._watched is not None:
            self._watched.close()
            self._watched = None
        self._version = None

    def _reload(self) -> None:
        """Another process may have written a newer snapshot."""
        stored = self.records.snapshot()
        with self._lock:
            mine = self.cache or {}
            if stored and stored["generated_at"] >= mine.get("generated_at", 0):
                self.cache = stored

    def _follow(self, source: Source, compute: Compute) -> None:
        """Show how far another scan is, where nothing complete is known yet."""
        known = self.current()
        if known is None or _mode(known) in INCOMPLETE:
            report = self._follower.look(source)
            if report is not None:
                _Partials(self, compute).publish(report)

    def show_partial(self, snapshot: Snapshot) -> None:
        """Show what a first scan has found so far, unless something complete is there."""
        with self._lock:
            held = self.cache or self.records.snapshot()
            if held is None or _mode(held) in INCOMPLETE:
                self.cache = snapshot

    def compute(self, scan: Scan, *, is_partial: bool = False) -> Snapshot:
        """The snapshot of a scan; tiers that are new are recorded, unless it is partial."""
        values = {name: int(amount) for name, amount in scan.get("aggregate", {}).items()}
        catalogue = self.catalogue
        meta = dict(scan.get("scan_meta", {}))
        if is_partial:
            shown = evaluate(catalogue, values, {}, with_dates=False)
            return self._snapshot(shown, {**meta, "mode": IN_PROGRESS}, values)
        unlocks = self._recording.record(catalogue, values, scan)["unlocks"]
        return self._snapshot(evaluate(catalogue, values, unlocks), meta, values)

    def _snapshot(
        self, shown: list[dict[str, Any]], meta: dict[str, Any], values: dict[str, int]
    ) -> Snapshot:
        return {
            "achievements": shown,
            **counts(shown),
            "aggregate": values,
            "scan_meta": meta,
            "catalogue_id": self._chosen.id(),
            "scan_id": uuid.uuid4().hex,
            "error": None,
            "is_stale": meta.get("mode") in INCOMPLETE,
            "generated_at": self._clock.now(),
        }

    def reset(self) -> None:
        """Forget every unlock; the next scan finds and dates them again."""
        self.records.reset()
        with self._lock:
            self._resets += 1
            self.cache = None
            self._version = None

    def close(self) -> None:
        """Let go of the history, and of a process that reads it."""
        self._process.close()
        self._unwatch()


def _mode(snapshot: Snapshot) -> str | None:
    mode: str | None = snapshot.get("scan_meta", {}).get("mode")
    return mode


def _expected(work: Callable[[], HistorySurvey]) -> HistorySurvey:
    """The result of *work*; whatever goes wrong with it is an error that a scan may have."""
    results: list[HistorySurvey] = []
    expected: list[HermesError] = []

    def run() -> None:
        try:
            results.append(work())
        except HermesError as error:
            expected.append(error)

    failure = attempt(Step("survey the history", run))
    if failure is not None:
        kind = type(failure.error).__name__
        raise ScanError(f"{kind}: {failure.error}") from failure.error
    if expected:
        raise expected[0]
    return results[0]


class _Partials:
    """Partial snapshots of one scan: each at least as rich as the one before."""

    def __init__(self, service: AchievementService, compute: Compute) -> None:
        self._service = service
        self._compute = compute
        self._best: dict[str, int] = {}

    def publish(self, report: Report) -> None:
        for name, value in report.values.items():
            self._best[name] = max(value, self._best.get(name, 0))
        meta = {
            "mode": IN_PROGRESS,
            "sessions_total": report.total,
            "sessions_scanned_so_far": report.sessions,
            "sessions_expected_total": report.total,
            "seconds_left": report.seconds_left,
        }
        scan = {"sessions": [], "aggregate": dict(self._best), "scan_meta": meta}
        self._service.show_partial(self._compute(scan, is_partial=True))


def scan_of(found: HistorySurvey) -> dict[str, Any]:
    """A finished survey in the form that `compute` takes."""
    return {
        "sessions": [],
        "aggregate": found.values,
        "moments": found.moments,
        "titles": found.titles,
        "scan_meta": {
            "mode": found.mode,
            "sessions_total": found.sessions,
            "sessions_rescanned": found.rescanned,
            "sessions_reused": found.reused,
        },
    }
