"""Achievements as a service: a snapshot that is always at hand, and scans behind it.

Whoever asks gets the last good snapshot at once. A scan runs in the background, one at a
time; while the first one runs, partial snapshots show what it has found so far. They are
never recorded, and never take the place of a complete snapshot.
"""

from __future__ import annotations

import threading
import time
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from zlib import crc32

from hermes_achievements import catalogue as catalogue_module
from hermes_achievements.dating import Line
from hermes_achievements.evaluation import counts, evaluate, reached
from hermes_achievements.records import Records
from hermes_achievements.scan_status import ScanStatus
from hermes_achievements.survey import Order, survey, survey_elsewhere
from hermes_core.clock import SystemClock
from hermes_core.errors import HermesError, ScanBusyError
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from hermes_achievements.catalogue import Achievement, Catalogue
    from hermes_achievements.history import History, Ledger
    from hermes_achievements.survey import Report, Survey
    from hermes_core.clock import Clock

    Snapshot = dict[str, Any]
    Scan = dict[str, Any]

SNAPSHOT_TTL_SECONDS: Final = 120
LOOK_SECONDS: Final = 2.0  # how often it is worth a look whether anything was written


class Source(NamedTuple):
    """Where the history comes from; `can_travel` when another process can open it."""

    open_history: Callable[[], History]
    open_ledger: Callable[[], Ledger]
    zone: str = ""
    can_travel: bool = False


class Compute(Protocol):
    """Makes a snapshot of a scan."""

    def __call__(self, scan: Scan, *, is_partial: bool = False) -> Snapshot: ...


class Service:
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
        self._announce = announce
        self._added = added
        self._hidden = hidden
        self._lock = threading.Lock()
        self._scanning = threading.Lock()
        self._watched: History | None = None
        self._version: int | None = None
        self._looked_at = 0.0

    @cached_property
    def catalogue(self) -> Catalogue:
        """Our achievements and those of plugins, without those the user hides."""
        hidden = frozenset(self._hidden())
        everything = catalogue_module.load().with_added(self._added())
        kept = tuple(one for one in everything if one.id not in hidden)
        return catalogue_module.Catalogue(everything.tiers, everything.categories, kept)

    @cached_property
    def catalogue_id(self) -> int:
        """What tells this catalogue from another one."""
        return crc32(repr(self.catalogue.achievements).encode())

    # Answering

    def evaluate(
        self, *, force: bool, run: Callable[[], object], start: Callable[[], object]
    ) -> Snapshot:
        """What is known now; with *force*, after looking at everything new."""
        if force:
            run()
            return self.current() or self.pending()
        snapshot = self.current()
        if snapshot is None:
            start()
            return self.pending()
        if self.is_stale(snapshot):
            start()
            return {**snapshot, "is_stale": True}
        return {**snapshot, "is_stale": False}

    def current(self) -> Snapshot | None:
        """The last snapshot, from memory or from disk."""
        with self._lock:
            if self.cache is None:
                self.cache = self.records.snapshot()
            return self.cache

    def is_stale(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is partial, old, or older than the history."""
        if snapshot.get("scan_meta", {}).get("mode") == "in_progress":
            return True
        if snapshot.get("catalogue_id") != self.catalogue_id:
            return True  # achievements were added, changed or hidden
        age = self._clock.now() - float(snapshot.get("generated_at") or 0)
        return age > SNAPSHOT_TTL_SECONDS or age < 0 or self._has_history_moved()

    def _has_history_moved(self) -> bool:
        now = time.monotonic()
        if self._watched is None or now - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = now
        return self._watched.version() != self._version

    def pending(self) -> Snapshot:
        """What is shown before anything is known: the catalogue, with nothing earned."""
        shown = evaluate(self.catalogue, {}, {})
        return self._snapshot(shown, {"mode": "pending", "sessions_total": 0}, {})

    # Scanning

    def start(self, run: Callable[[], object]) -> None:
        """Scan in the background, unless that is going on already."""
        with self._lock:
            if self.thread is not None and self.thread.is_alive():
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
            version = self._watch(source)
            if not full and version is not None and version == self._version:
                self.status.succeeded()
                return self._confirmed()
            try:
                found = self._survey(source, compute, publish=publish, full=full)
            except ScanBusyError as error:
                self.status.busy(str(error))
                self._reload()
                return None
            except HermesError as error:
                self.status.failed(str(error))
                return None
            snapshot = compute(scan_of(found))
            self.records.save_snapshot(snapshot)
            with self._lock:
                self.cache = snapshot
                self._version = version
            self.status.succeeded()
            return snapshot

    def _confirmed(self) -> Snapshot | None:
        """Nothing was written since the last scan: its snapshot is as good as new."""
        with self._lock:
            if self.cache is not None:
                self.cache = {**self.cache, "generated_at": self._clock.now()}
            return self.cache

    def _survey(self, source: Source, compute: Compute, *, publish: bool, full: bool) -> Survey:
        recorded = {
            one: list(unlock["tiers"]) for one, unlock in self.records.state()["unlocks"].items()
        }
        order = Order(
            source.open_history,
            source.open_ledger,
            source.zone,
            self.catalogue.achievements,
            recorded,
            full=full,
            processes=None if source.can_travel else 0,
        )
        is_long = source.can_travel and (full or self.current() is None)
        partials = _Partials(self, compute) if publish else None

        def on_report(report: Report) -> None:
            self.status.progress(report)
            if partials is not None:
                partials.publish(report)

        return (survey_elsewhere if is_long else survey)(order, on_report)

    def _watch(self, source: Source) -> int | None:
        if not source.can_travel:
            return None
        if self._watched is None:
            self._watched = source.open_history()
        return self._watched.version()

    def _reload(self) -> None:
        """Another process may have written a newer snapshot."""
        stored = self.records.snapshot()
        with self._lock:
            mine = self.cache or {}
            if stored and stored["generated_at"] >= mine.get("generated_at", 0):
                self.cache = stored

    def show_partial(self, snapshot: Snapshot) -> None:
        """Show what a first scan has found so far, unless something complete is there."""
        with self._lock:
            held = self.cache or self.records.snapshot()
            if held is None or held.get("scan_meta", {}).get("mode") in ("in_progress", "pending"):
                self.cache = snapshot

    def compute(self, scan: Scan, *, is_partial: bool = False) -> Snapshot:
        """The snapshot of a scan; tiers that are new are recorded, unless it is partial."""
        values = {name: int(amount) for name, amount in scan.get("aggregate", {}).items()}
        if is_partial:
            unlocks: dict[str, Any] = {}
        else:
            unlocks = self._record(values, scan)["unlocks"]
        shown = evaluate(self.catalogue, values, unlocks, with_dates=not is_partial)
        meta = dict(scan.get("scan_meta", {}))
        if is_partial:
            meta["mode"] = "in_progress"
        return self._snapshot(shown, meta, values)

    def _record(self, values: dict[str, int], scan: Scan) -> dict[str, Any]:
        before = self.records.state()
        moments, titles = scan.get("moments", {}), scan.get("titles", {})
        new: dict[str, dict[str, Any]] = {}
        for one in self.catalogue:
            held = before["unlocks"].get(one.id, {}).get("tiers", {})
            for tier, threshold in reached(one, values.get(one.value, 0)):
                if tier not in held:
                    moment = moments.get(Line(one.value, threshold))
                    new.setdefault(one.id, {})[tier] = self._evidence(moment, titles)
        if not new:
            return before
        state = self.records.record(new)
        self._tell(new, is_first=not before["unlocks"])
        return state

    def _evidence(self, moment: Any, titles: dict[str, str]) -> dict[str, Any]:
        if moment is None:
            return {"at": self._clock.now(), "session_id": None, "message_id": None}
        at, session_id, message_id = moment
        title = titles.get(session_id)
        return {"at": at, "session_id": session_id, "message_id": message_id, "title": title}

    def _tell(self, new: dict[str, dict[str, Any]], *, is_first: bool) -> None:
        if self._announce is None:
            return
        unlocks = [
            {"id": one.id, "name": one.name, "icon": one.icon, "tier": tier, **new[one.id][tier]}
            for one in self.catalogue
            if one.id in new
            for tier in list(new[one.id])[-1:]
        ]
        announcement = {"unlocks": unlocks, "count": len(unlocks), "is_first_scan": is_first}
        attempt(Step("announce achievements", lambda: self._announce_now(announcement)))

    def _announce_now(self, announcement: dict[str, Any]) -> None:
        if self._announce is not None:
            self._announce(announcement)

    def _snapshot(
        self, shown: list[dict[str, Any]], meta: dict[str, Any], values: dict[str, int]
    ) -> Snapshot:
        return {
            "achievements": shown,
            **counts(shown),
            "aggregate": values,
            "scan_meta": meta,
            "catalogue_id": self.catalogue_id,
            "scan_id": uuid.uuid4().hex,
            "error": None,
            "is_stale": meta.get("mode") in ("pending", "in_progress"),
            "generated_at": self._clock.now(),
        }

    def reset(self) -> None:
        """Forget every unlock; the next scan finds and dates them again."""
        self.records.reset()
        with self._lock:
            self.cache = None

    def close(self) -> None:
        """Let go of the history."""
        if self._watched is not None:
            self._watched.close()
            self._watched = None


class _Partials:
    """Partial snapshots of one scan: each at least as rich as the one before."""

    def __init__(self, service: Service, compute: Compute) -> None:
        self._service = service
        self._compute = compute
        self._best: dict[str, int] = {}

    def publish(self, report: Report) -> None:
        for name, value in report.values.items():
            self._best[name] = max(value, self._best.get(name, 0))
        meta = {
            "mode": "in_progress",
            "sessions_total": report.total,
            "sessions_scanned_so_far": report.sessions,
            "sessions_expected_total": report.total,
            "seconds_left": report.seconds_left,
        }
        scan = {"sessions": [], "aggregate": dict(self._best), "scan_meta": meta}
        self._service.show_partial(self._compute(scan, is_partial=True))


def scan_of(found: Survey) -> dict[str, Any]:
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
