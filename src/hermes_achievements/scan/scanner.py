"""Keeps the ledger up to date: a full scan first, then only changed sessions.

A scan records the position of the history at its start and saves its results every few
seconds, so that the next scan can resume it after a kill. Nothing is written to the history.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from hermes_achievements.calendar import Calendar
from hermes_achievements.metrics import METRIC_RULES
from hermes_achievements.metrics.facts import FACT_RULES
from hermes_achievements.metrics.tally import Contribution, Tally
from hermes_achievements.scan import workers
from hermes_achievements.scan.history import HistoryPosition
from hermes_achievements.scan.ledger_entries import collect_facts, extend_facts, make_entry
from hermes_core.errors import LedgerDamagedError, ScanBusyError, ScanError
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from threading import Event

    from hermes_achievements.scan.history import History, Ledger, LedgerEntry


MAX_WORKERS: Final = 8
SAMPLE_SECONDS: Final = 0.1  # the kernel counts in hundredths of a second
STATISTICS_FILE: Final = Path("/proc/stat")
IDLE_COLUMNS: Final = slice(3, 5)  # idle, and waiting for a disk
COUNTED_COLUMNS: Final = 8  # the times of guests are included in earlier columns


def count_free_cores() -> int:
    """Number of workers that do not slow down other processes.

    A busy core counts half, since workers run at low priority.
    """
    cores = _usable_cores()
    return max(1, min(MAX_WORKERS, round(len(cores) - _count_busy(cores) / 2)))


def _usable_cores() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _count_busy(cores: frozenset[int]) -> float:
    """How many of *cores* are busy now; without statistics, the load of the last minute."""
    before = read_core_times(cores)
    if before is None:
        return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    time.sleep(SAMPLE_SECONDS)
    return busy_share(before, read_core_times(cores) or before) * len(cores)


def read_core_times(cores: frozenset[int], file: Path = STATISTICS_FILE) -> tuple[int, int] | None:
    """The idle and the total time of *cores* since the start; None where it is unknown."""
    try:
        lines = file.read_text("ascii").splitlines()
    except OSError:  # not Linux, or hidden
        return None
    idle = total = 0
    for name, *columns in filter(None, map(str.split, lines)):
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            times = [int(column) for column in columns[:COUNTED_COLUMNS]]
            idle += sum(times[IDLE_COLUMNS])
            total += sum(times)
    return (idle, total) if total else None


def busy_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """The share of busy time between two readings, from 0 to 1."""
    idle, total = after[0] - before[0], after[1] - before[1]
    return min(1.0, max(0.0, 1 - idle / total)) if total > 0 else 0.0


log = logging.getLogger(__name__)

MAX_INLINE_SESSIONS: Final = 200  # changed sessions read in this process; more are read by workers
SMALL_HISTORY_MESSAGES: Final = (
    4000  # smaller histories are read before a worker process has started
)
WORKER_MESSAGES: Final = 20_000  # per worker process; its start takes the time of 8,000
FIRST_JOB_MESSAGES: Final = 150  # small, for an early progress report
MAX_JOB_MESSAGES: Final = 4000
MAX_JOB_SESSIONS: Final = 250
REPORT_SECONDS: Final = 1.0
SAVE_SECONDS: Final = 2.0
SAVE_ENTRIES: Final = 1000
SIGNATURE_CHECK_SECONDS: Final = 600.0


class ScanMode(StrEnum):
    """Whether a scan read all sessions or only changed ones."""

    FULL = "full"
    INCREMENTAL = "incremental"


class ScanProgress(NamedTuple):
    """Progress of a scan: the tally so far and the estimated seconds left."""

    sessions: int
    total: int
    tally: Tally
    seconds_left: float | None


class ScanOutcome(NamedTuple):
    """The result of a scan."""

    mode: ScanMode
    tally: Tally
    position: HistoryPosition
    rescanned: int
    reused: int
    changed: tuple[str, ...] | None  # None: all sessions
    skipped: tuple[str, ...] = ()  # unreadable sessions


class Scanner:
    """Scans one history into one ledger."""

    def __init__(
        self,
        open_history: Callable[[], History],
        ledger: Ledger,
        zone: str = "",
        *,
        processes: int | None = None,
        running: Event | None = None,
        save_seconds: float = SAVE_SECONDS,
    ) -> None:
        self._open_history = open_history
        self._ledger = ledger
        self._zone = zone
        self._processes = processes
        self._running = running
        self._save_seconds = save_seconds
        self._rules = orjson.dumps([FACT_RULES])
        self._metric_rules = orjson.dumps([METRIC_RULES, str(find_zone(zone).key)])

    def refresh(
        self, *, full: bool = False, on_progress: Callable[[ScanProgress], None] | None = None
    ) -> ScanOutcome:
        """Bring the ledger up to date; one scanner at a time, across all processes."""
        with self._ledger.try_lock() as is_locked:
            if not is_locked:
                raise ScanBusyError("the history is being scanned by another process")
            with contextlib.closing(self._open_history()) as history:
                report = on_progress or _ignore
                try:
                    return self._scan(history, report, full=full)
                except LedgerDamagedError as error:
                    log.warning("statistics ledger damaged (%s): rebuilding it", error)
                    self._ledger.clear()
                    return self._scan(history, report, full=True)

    def _scan(
        self, history: History, report: Callable[[ScanProgress], None], *, full: bool
    ) -> ScanOutcome:
        plan = self._plan(history, full=full)
        if isinstance(plan, _LedgerState):
            return self._follow(history, plan)
        full_scan = self._read_all(history, plan, report)
        # Sessions that were written during the scan, or since it was interrupted.
        follow_up = self._follow(history, _LedgerState(self._ledger.notes()))
        return full_scan._replace(
            tally=follow_up.tally,
            position=follow_up.position,
            skipped=(*full_scan.skipped, *follow_up.skipped),
        )

    def current(self) -> tuple[Tally, HistoryPosition] | None:
        """The last complete tally, if the rules have not changed since."""
        state = _LedgerState(self._ledger.notes())
        if not state.matches_rules(self._rules, self._metric_rules) or state.tally is None:
            return None
        return Tally.unpack(state.tally), state.position

    def _plan(self, history: History, *, full: bool) -> _FullScanPlan | _LedgerState:
        state = _LedgerState(self._ledger.notes())
        current = history.position()
        is_same_history = history.is_same_history(state.position) and history.is_same_history(
            state.pending_position
        )
        if not is_same_history:
            self._ledger.clear()  # it belongs to another history
            return _FullScanPlan(1, current, rereads=True)
        if self._ledger.is_shared:
            self._refuse_newer_rules(state)
        if current.message < state.position.message or current.change < state.position.change:
            # An older copy replaced the history: its new messages reuse known IDs.
            return _FullScanPlan(state.generation + 1, current, rereads=True)
        if state.rules != self._rules or full:
            return _FullScanPlan(state.generation + 1, current, rereads=True)
        if state.metric_rules != self._metric_rules:
            return _FullScanPlan(state.generation + 1, current, rereads=False)
        if state.pending_position != HistoryPosition():  # resume an interrupted full scan
            return _FullScanPlan(
                state.generation, state.pending_position, rereads=True, resumes=True
            )
        return state

    def _refuse_newer_rules(self, state: _LedgerState) -> None:
        """Leave a shared ledger to newer releases: two releases would rebuild it in turn."""
        for stored, own in ((state.rules, self._rules), (state.metric_rules, self._metric_rules)):
            if stored is not None and orjson.loads(stored)[0] > orjson.loads(own)[0]:
                raise ScanError(
                    "the statistics were written by a newer release of Hermes on another "
                    "machine. Update Hermes on this one"
                )

    # Full scans

    def _read_all(
        self, history: History, plan: _FullScanPlan, report: Callable[[ScanProgress], None]
    ) -> ScanOutcome:
        done_ids = set(self._ledger.session_ids(plan.generation)) if plan.resumes else set()
        known_ids = set(self._ledger.session_ids())
        pending_sessions = [
            (item, size) for item, size in history.session_sizes() if item not in done_ids
        ]
        listed_ids = {item for item, _ in pending_sessions}
        pending_sessions += [(item, 0) for item in sorted(known_ids - listed_ids - done_ids)]
        tally = self._tally_of(done_ids)
        self._save_plan(plan)
        signatures = history.signatures()
        run = _FullScanRun(
            self, plan, tally, len(done_ids), len(done_ids) + len(pending_sessions), report
        )
        run.save_seconds = self._save_seconds
        run.consume(self._results(pending_sessions, known_ids, rereads=plan.rereads))
        self._finish(plan, run, signatures)
        return ScanOutcome(
            ScanMode.FULL,
            tally,
            plan.position,
            len(pending_sessions),
            len(done_ids),
            None,
            tuple(run.skipped),
        )

    def _tally_of(self, session_ids: set[str]) -> Tally:
        tally = Tally()
        if session_ids:
            for item, _, stored in self._ledger.contributions():
                if item in session_ids:
                    tally.add(item, Contribution.unpack(stored))
        return tally

    def _save_plan(self, plan: _FullScanPlan) -> None:
        """Record that a full scan starts: the ledger has no complete tally until it ends."""
        self._ledger.save(
            (),
            {
                "rules": self._rules,
                "metric_rules": self._metric_rules,
                "generation": orjson.dumps(plan.generation),
                "pending_mark": orjson.dumps(tuple(plan.position)),
            },
            plan.generation,
        )

    def save(self, entries: Iterable[LedgerEntry], plan: _FullScanPlan) -> None:
        """Save the entries read so far."""
        self._ledger.save(entries, {}, plan.generation)

    def _finish(self, plan: _FullScanPlan, run: _FullScanRun, signatures: dict[str, str]) -> None:
        notes: dict[str, bytes | None] = {
            "tally": run.tally.pack(),
            "mark": orjson.dumps(tuple(plan.position)),
            "pending_mark": None,
            "looked_at": orjson.dumps(time.time()),
            "signatures": orjson.dumps(signatures),
        }
        self._ledger.save(run.unsaved, notes, plan.generation)

    def _results(
        self, pending_sessions: list[tuple[str, int]], known_ids: set[str], *, rereads: bool
    ) -> Iterator[workers.JobResult]:
        jobs = self._jobs(pending_sessions, known_ids, rereads=rereads)
        messages = sum(size for _, size in pending_sessions)
        if messages <= SMALL_HISTORY_MESSAGES or self._processes == 0:
            return workers.run_jobs_inline(jobs, self._open_history, self._zone)
        number = self._processes or _count_workers(messages)
        return workers.run_jobs(jobs, self._open_history, self._zone, number)

    def _jobs(
        self, pending_sessions: list[tuple[str, int]], known_ids: set[str], *, rereads: bool
    ) -> Iterator[workers.ScanJob]:
        """Jobs of increasing size; the first ones are small for an early progress report."""
        limit, size = FIRST_JOB_MESSAGES, 0
        block: list[str] = []
        for session_id, messages in pending_sessions:
            block.append(session_id)
            size += messages + 1
            if size >= limit or len(block) >= MAX_JOB_SESSIONS:
                yield self._job(block, known_ids, size, rereads=rereads)
                block, size = [], 0
                limit = min(MAX_JOB_MESSAGES, limit * 2)
        if block:
            yield self._job(block, known_ids, size, rereads=rereads)

    def _job(
        self, block: list[str], known_ids: set[str], size: int, *, rereads: bool
    ) -> workers.ScanJob:
        if self._running is not None:
            self._running.wait()  # paused
        earlier_facts = self._ledger.recorded_facts([item for item in block if item in known_ids])
        return workers.ScanJob([(item, earlier_facts.get(item)) for item in block], rereads, size)

    # Incremental scans

    def _follow(self, history: History, state: _LedgerState) -> ScanOutcome:
        position = history.position()
        tally = Tally.unpack(state.tally or b"")
        changed = {
            item.session_id: item.is_longer for item in history.changed_since(state.position)
        }
        notes: dict[str, bytes | None] = {}
        for session_id in self._find_silent_changes(history, state, notes):
            changed.setdefault(session_id, False)
        skipped: list[str] = []
        if changed:
            entries = self._replace(history, changed, tally, skipped)
            notes |= {"tally": tally.pack(), "mark": orjson.dumps(tuple(position))}
            self._ledger.save(entries, notes, state.generation)
        elif notes or not position.has_same_messages(state.position):
            self._ledger.save(
                (), {**notes, "mark": orjson.dumps(tuple(position))}, state.generation
            )
        reused = max(0, self._ledger.count() - len(changed))
        return ScanOutcome(
            ScanMode.INCREMENTAL,
            tally,
            position,
            len(changed),
            reused,
            tuple(changed),
            tuple(skipped),
        )

    def _find_silent_changes(
        self, history: History, state: _LedgerState, notes: dict[str, bytes | None]
    ) -> list[str]:
        """Sessions whose row another program changed without a change record; checked rarely."""
        if 0 <= time.time() - state.signatures_checked_at < SIGNATURE_CHECK_SECONDS:
            return []
        signatures = history.signatures()
        notes |= {"signatures": orjson.dumps(signatures), "looked_at": orjson.dumps(time.time())}
        if state.signatures is None:
            return []
        try:
            earlier = orjson.loads(state.signatures)
        except ValueError as error:
            raise LedgerDamagedError(f"signatures cannot be read: {error}") from error
        return [item for item, signature in signatures.items() if earlier.get(item) != signature]

    def _replace(
        self, history: History, changed: dict[str, bool], tally: Tally, skipped: list[str]
    ) -> list[LedgerEntry]:
        """Replace the contributions of changed sessions in the tally."""
        ids = list(changed)
        old = {item: Contribution.unpack(c) for item, _, c in self._ledger.contributions(ids)}
        if len(ids) <= MAX_INLINE_SESSIONS:
            entries = self._reread(history, changed, skipped)
        else:
            entries = self._read_in_workers(ids, old, skipped)
        new = {entry.session_id: Contribution.unpack(entry.contribution) for entry in entries}
        is_exact = True
        for session_id, contribution in new.items():
            if session_id in old:
                is_exact &= tally.replace(session_id, old[session_id], contribution)
            else:
                tally.add(session_id, contribution)
        if not is_exact:
            self._recount(tally, new)
        return entries

    def _reread(
        self, history: History, changed: dict[str, bool], skipped: list[str]
    ) -> list[LedgerEntry]:
        calendar = Calendar(find_zone(self._zone))
        earlier_facts = self._ledger.recorded_facts(list(changed))
        entries: list[LedgerEntry] = []

        def read(session_id: str, before: bytes | None) -> None:
            is_longer = changed[session_id]
            recorded = extend_facts(history, session_id, before) if before and is_longer else None
            recorded = recorded or collect_facts(history, session_id, before)
            if recorded is not None:
                entries.append(make_entry(recorded, calendar)[0])

        skipped += [
            item
            for item in changed
            if not workers.read_isolated(
                item, lambda session_id: read(session_id, earlier_facts.get(session_id))
            )
        ]
        return entries

    def _read_in_workers(
        self, ids: list[str], old: dict[str, Contribution], skipped: list[str]
    ) -> list[LedgerEntry]:
        """Read many sessions in worker processes, e.g. after an import."""
        pending_sessions = [(item, MAX_JOB_MESSAGES // MAX_JOB_SESSIONS) for item in ids]
        entries: list[LedgerEntry] = []
        for result in self._results(pending_sessions, set(old), rereads=True):
            entries += result.entries
            skipped += result.skipped
        return entries

    def _recount(self, tally: Tally, new: dict[str, Contribution]) -> None:
        """Recompute maxima and first appearances from all sessions, after one was lost."""
        others = (
            (item, Contribution.unpack(stored))
            for item, _, stored in self._ledger.contributions()
            if item not in new
        )
        fresh = Tally.of([*others, *new.items()])
        tally.best, tally.peaks, tally.seen = fresh.best, fresh.peaks, fresh.seen


class _FullScanPlan(NamedTuple):
    """The parameters of a full scan."""

    generation: int
    position: HistoryPosition
    rereads: bool
    resumes: bool = False


class _LedgerState:
    """The notes of the ledger, decoded."""

    def __init__(self, notes: dict[str, bytes]) -> None:
        self.rules = notes.get("rules")
        self.metric_rules = notes.get("metric_rules")
        self.tally = notes.get("tally")
        self.signatures = notes.get("signatures")
        try:
            self.generation = int(orjson.loads(notes.get("generation", b"0")))
            self.position = _unpack_position(notes.get("mark"))
            self.pending_position = _unpack_position(notes.get("pending_mark"))
            self.signatures_checked_at = float(orjson.loads(notes.get("looked_at", b"0")))
        except (ValueError, TypeError) as error:
            raise LedgerDamagedError(f"a note cannot be read: {error}") from error

    def matches_rules(self, rules: bytes, metric_rules: bytes) -> bool:
        """Whether the ledger was written with these rules."""
        return self.rules == rules and self.metric_rules == metric_rules


def _unpack_position(stored: bytes | None) -> HistoryPosition:
    if stored is None:
        return HistoryPosition()
    message, change, witnesses, name = orjson.loads(stored)
    return HistoryPosition(
        int(message),
        int(change),
        tuple((message_id, checksum) for message_id, checksum in witnesses),
        str(name),
    )


class _FullScanRun:
    """A running full scan: merges, saves and reports results."""

    def __init__(
        self,
        scanner: Scanner,
        plan: _FullScanPlan,
        tally: Tally,
        done_count: int,
        total: int,
        report: Callable[[ScanProgress], None],
    ) -> None:
        self.tally = tally
        self.unsaved: list[LedgerEntry] = []
        self.skipped: list[str] = []
        self.save_seconds = SAVE_SECONDS
        self._scanner = scanner
        self._plan = plan
        self._done = done_count
        self._total = total
        self._report = report
        self._started_at = self._saved_at = time.monotonic()
        self._reported_at = float("-inf")
        self._reported = 0
        self._read_count = 0

    def consume(self, results: Iterable[workers.JobResult]) -> None:
        """Process results in the order of arrival."""
        for result in results:
            self.unsaved += result.entries
            self.tally.merge(result.tally)
            self.skipped += result.skipped
            self._done += len(result.job.sessions)
            self._read_count += len(result.job.sessions)
            now = time.monotonic()
            if now - self._saved_at >= self.save_seconds or len(self.unsaved) >= SAVE_ENTRIES:
                self._scanner.save(self.unsaved, self._plan)
                self.unsaved = []
                self._saved_at = now
            self._report_if_due(now)

    def _report_if_due(self, now: float) -> None:
        is_due = (
            now - self._reported_at >= REPORT_SECONDS
            or self._done - self._reported >= MAX_JOB_SESSIONS
        )
        if is_due and self._done < self._total:
            self._reported_at, self._reported = now, self._done
            left = (now - self._started_at) / self._read_count * (self._total - self._done)
            self._report(ScanProgress(self._done, self._total, self.tally, left))


def _count_workers(messages: int) -> int:
    """One process, and one more for each `WORKER_MESSAGES`, as far as there are free cores."""
    most = 1 + messages // WORKER_MESSAGES
    return min(most, count_free_cores()) if most > 1 else 1


def _ignore(progress: ScanProgress) -> None:
    del progress
