"""The achievements service: the latest snapshot, and background scans that update it.

Requests are answered with the latest snapshot, without waiting for a scan. One scan runs at
a time, in the background; during the first one, partial snapshots show its progress. Partial
snapshots are never recorded and never replace a complete one. A failed scan keeps the latest
snapshot, reports the error, and is retried with backoff.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from hermes_achievements.catalogue import UserCatalogue
from hermes_achievements.evaluation import records
from hermes_achievements.evaluation.dates import Threshold
from hermes_achievements.evaluation.records import FolderStorage, UnlockRecords, is_dated
from hermes_achievements.evaluation.standings import (
    FALLING_VALUES,
    count_states,
    evaluate,
    reached_tiers,
)
from hermes_achievements.scan.survey import (
    ScanFollower,
    ScanProcess,
    ScanStatus,
    SurveyRequest,
    survey,
    survey_in_subprocess,
)
from hermes_core.clock import SystemClock
from hermes_core.errors import HermesError, ScanBusyError, ScanError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from hermes_achievements.catalogue import Achievement, Catalogue
    from hermes_achievements.evaluation.dates import UnlockMoment
    from hermes_achievements.evaluation.records import ClaimedAnnouncement, RecordStorage
    from hermes_achievements.evaluation.snapshot import (
        AchievementView,
        AnnouncedUnlock,
        Announcement,
        Scan,
        ScanMeta,
        Snapshot,
        TierEvidence,
        Unlock,
        UnlockState,
    )
    from hermes_achievements.scan.history import History, Ledger
    from hermes_achievements.scan.survey import HistorySurvey, SurveyReport
    from hermes_core.clock import Clock

    Tiers = dict[str, TierEvidence]


class UnlockRecorder:
    """Records unlocks with their dates."""

    def __init__(
        self,
        records: UnlockRecords,
        clock: Clock,
        announce: Callable[[Announcement], object] | None,
    ) -> None:
        self._records = records
        self._clock = clock
        self._announce = announce

    def settled_tiers(self, *, full: bool) -> dict[str, list[str]]:
        """The tiers of each achievement that do not have to be dated.

        A recorded tier without a message is dated by the next scan. If that scan does not find
        the message, only a full scan searches for it again.
        """
        return {
            name: [
                tier
                for tier, item in unlock["tiers"].items()
                if is_dated(item) or (item.get("was_sought") and not full)
            ]
            for name, unlock in self._records.state()["unlocks"].items()
        }

    def record(self, catalogue: Catalogue, values: dict[str, int], scan: Scan) -> UnlockState:
        """Add the new tiers of *scan* to the unlocks; returns the complete state.

        A scan without moments has no evidence and is not recorded.
        """
        before = self._records.state()
        if "moments" not in scan:
            return before
        titles = scan.get("titles", {})
        now = self._clock.now()
        due = before.get("unannounced", {}).values()
        if any(records.is_overdue(item, now) for item in due):
            for announcement in self._records.take_over_announcements(now):
                self._announce_unlocks(catalogue, announcement, titles)
        tiers = self._collect_tiers(catalogue, values, scan["moments"], before["unlocks"])
        if not tiers:
            return before
        recorded = self._records.record(tiers, before, now)
        if recorded.announcement is not None:
            self._announce_unlocks(catalogue, recorded.announcement, titles)
        return recorded.state

    def _collect_tiers(
        self,
        catalogue: Catalogue,
        values: dict[str, int],
        moments: dict[Threshold, UnlockMoment],
        unlocks: dict[str, Unlock],
    ) -> dict[str, Tiers]:
        """The tiers to write: new ones, and recorded ones without a message."""
        tiers: dict[str, Tiers] = {}
        for entry in catalogue:
            recorded = unlocks[entry.id]["tiers"] if entry.id in unlocks else {}
            for tier, threshold in reached_tiers(entry, values.get(entry.value, 0)):
                moment = moments.get(Threshold(entry.value, threshold))
                is_undated = tier in recorded and not is_dated(recorded[tier])
                if tier not in recorded or (is_undated and moment is not None):
                    tiers.setdefault(entry.id, {})[tier] = self._evidence(moment)
        return tiers

    def _evidence(self, moment: UnlockMoment | None) -> TierEvidence:
        if moment is None:
            now = self._clock.now()
            return {"at": now, "session_id": None, "message_id": None, "was_sought": True}
        at, session_id, message_id = moment
        return {"at": at, "session_id": session_id, "message_id": message_id}

    def _announce_unlocks(
        self, catalogue: Catalogue, claimed: ClaimedAnnouncement, titles: dict[str, str]
    ) -> None:
        unlocks: list[AnnouncedUnlock] = [
            {
                "id": entry.id,
                "name": entry.name,
                "icon": entry.icon,
                "tier": tier,
                "at": evidence["at"],
                "session_id": evidence["session_id"],
                "message_id": evidence["message_id"],
                "title": titles.get(evidence["session_id"] or ""),
            }
            for entry in catalogue
            for tier, evidence in list(claimed.tiers.get(entry.id, {}).items())[-1:]
        ]
        announcement: Announcement = {
            "unlocks": unlocks,
            "count": len(unlocks),
            "is_first_scan": claimed.is_first,
        }
        announce = self._announce
        if announce is not None and unlocks:
            attempt("announce achievements", lambda: announce(announcement))
        self._records.settle_announcement(claimed.id)


SNAPSHOT_TTL_SECONDS: Final = 120
VERSION_CHECK_SECONDS: Final = 2.0  # interval of the checks whether the history has changed
CLOSE_TIMEOUT_SECONDS: Final = 10.0
PENDING_MODE: Final = "pending"
IN_PROGRESS_MODE: Final = "in_progress"
FAILED_MODE: Final = "failed"
INCOMPLETE_MODES: Final = frozenset({PENDING_MODE, IN_PROGRESS_MODE, FAILED_MODE})


class HistorySource(NamedTuple):
    """A history to scan; `is_shareable` means that another process can open it.

    `is_zone_new` means that the zone is that of this machine and has to be recorded: other
    processes of the user may run in another zone, and days must not depend on the process.
    """

    open_history: Callable[[], History]
    open_ledger: Callable[[], Ledger]
    zone: str = ""
    is_shareable: bool = False
    is_zone_new: bool = False


class ComputeSnapshot(Protocol):
    """Computes the snapshot of a scan."""

    def __call__(self, scan: Scan, *, is_partial: bool = False) -> Snapshot: ...


class AchievementService:
    """The achievements of one user."""

    def __init__(
        self,
        folder: Callable[[], Path],
        *,
        clock: Clock | None = None,
        announce: Callable[[Announcement], object] | None = None,
        added: Callable[[], Iterable[Achievement]] = tuple,
        hidden: Callable[[], Iterable[str]] = tuple,
        shared: Callable[[], RecordStorage | None] = lambda: None,
    ) -> None:
        """Records are in the storage that *shared* returns; in the folder if it returns None."""
        clock = self._clock = clock or SystemClock()
        self.records = UnlockRecords(lambda: shared() or FolderStorage(folder(), clock))
        self.status = ScanStatus(self._clock)
        self.thread: threading.Thread | None = None
        self.cache: Snapshot | None = None
        self._recording = UnlockRecorder(self.records, self._clock, announce)
        self._user_catalogue = UserCatalogue(added, hidden)
        self._process = ScanProcess()
        self._follower = ScanFollower()
        self._lock = threading.Lock()
        self._scanning = threading.Lock()
        self._watched: History | None = None
        self._version: int | None = None
        self._resets = 0
        self._checked_at = 0.0
        self._has_changed = False

    @property
    def catalogue(self) -> Catalogue:
        """The built-in achievements and those of plugins, without hidden ones."""
        return self._user_catalogue.current()

    # Snapshots

    def evaluate(
        self, *, force: bool, run: Callable[[], object], start: Callable[[], object]
    ) -> Snapshot:
        """The current snapshot; with *force*, after a scan."""
        if force:
            run()
            return self._annotate(self.current(), is_stale=False)
        snapshot = self.current()
        is_stale = snapshot is None or self.is_stale(snapshot)
        annotated = self._annotate(snapshot, is_stale=is_stale)
        if is_stale:
            start()
        return annotated

    def _annotate(self, snapshot: Snapshot | None, *, is_stale: bool) -> Snapshot:
        error = self.status.facts().last_error
        if snapshot is None:
            return self._failed_snapshot(error) if error else self.pending()
        is_partial = _mode(snapshot) in INCOMPLETE_MODES
        return {**snapshot, "error": error, "is_stale": is_stale or is_partial or bool(error)}

    def current(self) -> Snapshot | None:
        """The latest snapshot, from memory or from disk."""
        with self._lock:
            if self.cache is None:
                self.cache = self.records.snapshot()
            return self.cache

    def is_stale(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is partial, old, or older than the history."""
        if _mode(snapshot) in INCOMPLETE_MODES:
            return True
        age = self._clock.now() - float(snapshot.get("generated_at") or 0)
        if age > SNAPSHOT_TTL_SECONDS or age < 0:
            return True  # known without loading plugins
        if snapshot.get("catalogue_id") != self._user_catalogue.id():
            return True  # achievements were added, changed or hidden
        return self._has_history_changed()

    def _has_history_changed(self) -> bool:
        now = time.monotonic()
        watched = self._watched
        if watched is not None and now - self._checked_at >= VERSION_CHECK_SECONDS:
            self._checked_at = now
            try:
                self._has_changed = watched.version() != self._version
            except HermesError:  # deleted or unreadable: the scan reports the error
                self._has_changed = True
        return self._has_changed

    def pending(self) -> Snapshot:
        """The snapshot before the first scan: the catalogue without unlocks."""
        shown = evaluate(self.catalogue, {}, {})
        return self._snapshot(shown, {"mode": PENDING_MODE, "sessions_total": 0}, {})

    def _failed_snapshot(self, reason: str) -> Snapshot:
        """The snapshot after a failed first scan."""
        empty = self.pending()
        meta: ScanMeta = {**empty["scan_meta"], "mode": FAILED_MODE}
        return {**empty, "scan_meta": meta, "error": reason, "is_stale": True}

    # Scanning

    def start(self, run: Callable[[], object]) -> None:
        """Start a background scan, unless one is running or has just failed."""
        with self._lock:
            if self.status.is_backing_off or (self.thread is not None and self.thread.is_alive()):
                return
            self.thread = threading.Thread(
                target=lambda: attempt("scan for achievements", run),
                name="hermes-achievements-scan",
                daemon=True,
            )
            self.thread.start()

    def run(
        self,
        source: HistorySource,
        compute: ComputeSnapshot,
        *,
        publish: bool = True,
        full: bool = False,
    ) -> Snapshot | None:
        """Scan, and replace the snapshot with the result.

        The snapshot is kept if another process is scanning or the scan fails.
        """
        with self._scanning, self.status.running():
            self._user_catalogue.invalidate()
            try:
                version = self._watch(source)
                if not full and self._is_current(version):
                    self.status.succeeded()
                    return self._renew_snapshot()
                result = self._complete_survey(source, compute, publish=publish, full=full)
                snapshot = compute(scan_from_survey(result))
            except ScanBusyError as error:
                self.status.busy(str(error))
                self._reload()
                if publish:
                    self._follow(source, compute)
                return None
            except HermesError as error:
                self._discard_partial(str(error))
                return None
            self.records.save_snapshot(snapshot)
            with self._lock:
                self.cache = snapshot
                self._version = version
                self._has_changed = False
            self.status.succeeded()
            return snapshot

    def _is_current(self, version: int | None) -> bool:
        """Whether the snapshot is complete and covers *version* of the history."""
        snapshot = self.cache
        return (
            version is not None
            and version >= 0
            and version == self._version
            and snapshot is not None
            and _mode(snapshot) not in INCOMPLETE_MODES
            and snapshot.get("catalogue_id") == self._user_catalogue.id()
        )

    def _renew_snapshot(self) -> Snapshot | None:
        """Renew the time of the snapshot: the history has not changed since the last scan."""
        with self._lock:
            self._has_changed = False
            if self.cache is not None:
                self.cache = {**self.cache, "generated_at": self._clock.now()}
            return self.cache

    def _discard_partial(self, reason: str) -> None:
        """Drop a partial snapshot and record the failure; a complete snapshot is kept."""
        with self._lock:
            if self.cache is not None and _mode(self.cache) in INCOMPLETE_MODES:
                self.cache = None
        self.status.failed(reason)

    def _complete_survey(
        self, source: HistorySource, compute: ComputeSnapshot, *, publish: bool, full: bool
    ) -> HistorySurvey:
        """A survey that started after the latest reset of the unlocks."""
        if source.is_zone_new:
            self.records.remember_zone(source.zone)
        while True:
            if self._process.is_exiting:
                raise ScanError("this program is exiting")
            resets = self._resets
            result = self._survey(source, compute, publish=publish, full=full)
            if resets == self._resets:
                return result

    def _survey(
        self, source: HistorySource, compute: ComputeSnapshot, *, publish: bool, full: bool
    ) -> HistorySurvey:
        request = SurveyRequest(
            source.open_history,
            source.open_ledger,
            source.zone,
            self.catalogue.achievements,
            self._recording.settled_tiers(full=full),
            full=full,
            processes=None if source.is_shareable else 0,
        )
        partials = _PartialSnapshots(self, compute) if publish else None

        def on_report(report: SurveyReport) -> None:
            self.status.progress(report)
            if partials is not None:
                partials.publish(report)

        if source.is_shareable and (full or self.current() is None):
            return survey_in_subprocess(request, on_report, self._process.started)
        return _wrap_errors(lambda: survey(request, on_report))

    def _watch(self, source: HistorySource) -> int | None:
        """The version of the history; a replaced file is reopened."""
        if not source.is_shareable:
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
        """Load the stored snapshot if another process has written a newer one."""
        stored = self.records.snapshot()
        with self._lock:
            cached_at = self.cache["generated_at"] if self.cache else 0
            if stored and stored["generated_at"] >= cached_at:
                self.cache = stored

    def _follow(self, source: HistorySource, compute: ComputeSnapshot) -> None:
        """Publish the progress of another process's scan while no complete snapshot exists."""
        current = self.current()
        if current is None or _mode(current) in INCOMPLETE_MODES:
            report = self._follower.poll(source)
            if report is not None:
                _PartialSnapshots(self, compute).publish(report)

    def show_partial(self, snapshot: Snapshot) -> None:
        """Publish a partial snapshot, unless a complete one exists."""
        with self._lock:
            existing = self.cache or self.records.snapshot()
            if existing is None or _mode(existing) in INCOMPLETE_MODES:
                self.cache = snapshot

    def compute(self, scan: Scan, *, is_partial: bool = False) -> Snapshot:
        """The snapshot of a scan; new tiers are recorded, unless it is partial."""
        values = {name: int(amount) for name, amount in scan.get("aggregate", {}).items()}
        catalogue = self.catalogue
        meta: ScanMeta = {**scan.get("scan_meta", {})}
        if is_partial:
            shown = evaluate(catalogue, values, {}, with_dates=False)
            return self._snapshot(shown, {**meta, "mode": IN_PROGRESS_MODE}, values)
        unlocks = self._recording.record(catalogue, values, scan)["unlocks"]
        return self._snapshot(evaluate(catalogue, values, unlocks), meta, values)

    def _snapshot(
        self, shown: list[AchievementView], meta: ScanMeta, values: dict[str, int]
    ) -> Snapshot:
        return {
            "achievements": shown,
            **count_states(shown),
            "aggregate": values,
            "scan_meta": meta,
            "catalogue_id": self._user_catalogue.id(),
            "scan_id": uuid.uuid4().hex,
            "error": None,
            "is_stale": meta.get("mode") in INCOMPLETE_MODES,
            "generated_at": self._clock.now(),
        }

    def reset(self) -> None:
        """Delete every unlock; the next scan finds and dates them again."""
        self.records.reset()
        with self._lock:
            self._resets += 1
            self.cache = None
            self._version = None

    def close(self) -> None:
        """Terminate a scan process, wait for the background scan and close the history."""
        self._process.close()
        if self.thread is not None:
            self.thread.join(CLOSE_TIMEOUT_SECONDS)
        self._unwatch()


def _mode(snapshot: Snapshot) -> str | None:
    return snapshot["scan_meta"].get("mode")


def _wrap_errors(work: Callable[[], HistorySurvey]) -> HistorySurvey:
    """The result of *work*; unexpected exceptions become ScanError."""

    def run() -> HistorySurvey | HermesError:
        try:
            return work()
        except HermesError as error:
            return error

    result = attempt("survey the history", run)
    if isinstance(result, Failure):
        raise ScanError(f"{type(result.error).__name__}: {result.error}") from result.error
    if isinstance(result, HermesError):
        raise result
    return result


class _PartialSnapshots:
    """Partial snapshots of one scan; values never decrease, and the final ones are not lower."""

    def __init__(self, service: AchievementService, compute: ComputeSnapshot) -> None:
        self._service = service
        self._compute = compute
        self._best: dict[str, int] = {}

    def publish(self, report: SurveyReport) -> None:
        for name, value in report.values.items():
            if name in FALLING_VALUES:
                continue
            self._best[name] = max(value, self._best.get(name, 0))
        meta: ScanMeta = {
            "mode": IN_PROGRESS_MODE,
            "sessions_total": report.total,
            "sessions_scanned_so_far": report.sessions,
            "sessions_expected_total": report.total,
            "seconds_left": report.seconds_left,
        }
        scan: Scan = {"sessions": [], "aggregate": dict(self._best), "scan_meta": meta}
        self._service.show_partial(self._compute(scan, is_partial=True))


def scan_from_survey(result: HistorySurvey) -> Scan:
    """A survey result in the format of `compute`."""
    return {
        "sessions": [],
        "aggregate": result.values,
        "moments": result.moments,
        "titles": result.titles,
        "scan_meta": {
            "mode": result.mode,
            "sessions_total": result.sessions,
            "sessions_rescanned": result.rescanned,
            "sessions_reused": result.reused,
        },
    }
