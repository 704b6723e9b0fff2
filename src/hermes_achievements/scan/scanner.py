"""Keeping the ledger up to date: everything the first time, what changed ever after.

The ledger follows the log. A scan notes where the history stood when it began and saves
what it has read every few seconds, so a kill loses those seconds and the next scan goes
on from there. Nothing is written to the history.
"""

from __future__ import annotations

import contextlib
import logging
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from hermes_achievements.calendar import Calendar
from hermes_achievements.metrics import METRIC_RULES
from hermes_achievements.metrics.facts import FACT_RULES
from hermes_achievements.metrics.tally import Contribution, Tally
from hermes_achievements.scan.history import Mark
from hermes_achievements.scan.ledger_entries import book_of, entry_of, longer_book
from hermes_achievements.scan.workers import ScanJob, do_all, do_all_here, free_cores, read_apart
from hermes_core.errors import LedgerDamagedError, ScanBusyError
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from threading import Event

    from hermes_achievements.scan.history import History, Ledger, LedgerEntry
    from hermes_achievements.scan.workers import Done

log = logging.getLogger(__name__)

MAX_INLINE_SESSIONS: Final = 200  # changed sessions that are read again right here
SMALL_HISTORY: Final = 4000  # messages that this process reads sooner than another starts
FIRST_JOB: Final = 150  # messages; small, so that something is seen at once
JOB: Final = 4000
MAX_SESSIONS: Final = 250
REPORT_SECONDS: Final = 1.0
SAVE_SECONDS: Final = 2.0
SAVE_ENTRIES: Final = 1000
LOOK_OVER_SECONDS: Final = 600.0


class Mode(StrEnum):
    """What a scan had to do."""

    FULL = "full"
    INCREMENTAL = "incremental"


class ScanProgress(NamedTuple):
    """How far a scan is: what it has so far, and an honest guess of the seconds left."""

    sessions: int
    total: int
    tally: Tally
    seconds_left: float | None


class Scan(NamedTuple):
    """A finished scan."""

    mode: Mode
    tally: Tally
    mark: Mark
    rescanned: int
    reused: int
    changed: tuple[str, ...] | None  # None: all of them
    skipped: tuple[str, ...] = ()  # sessions that could not be read


class Scanner:
    """Reads one history into one ledger."""

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
    ) -> Scan:
        """Bring the ledger up to date; only one scanner at a time, in all processes."""
        with self._ledger.alone() as is_alone:
            if not is_alone:
                raise ScanBusyError("the history is being scanned by another process")
            with contextlib.closing(self._open_history()) as history:
                report = on_progress or _ignore
                try:
                    return self._scan(history, report, full=full)
                except LedgerDamagedError as error:
                    log.warning("statistics ledger damaged (%s): rebuilding it", error)
                    self._ledger.forget()
                    return self._scan(history, report, full=True)

    def _scan(
        self, history: History, report: Callable[[ScanProgress], None], *, full: bool
    ) -> Scan:
        plan = self._plan(history, full=full)
        if isinstance(plan, _State):
            return self._follow(history, plan)
        whole = self._read_whole(history, plan, report)
        # What was written meanwhile, or since the scan was cut short.
        rest = self._follow(history, _State(self._ledger.notes()))
        return whole._replace(
            tally=rest.tally, mark=rest.mark, skipped=(*whole.skipped, *rest.skipped)
        )

    def current(self) -> tuple[Tally, Mark] | None:
        """The last complete tally, if the rules have not changed since."""
        state = _State(self._ledger.notes())
        if not state.fits(self._rules, self._metric_rules) or state.tally is None:
            return None
        return Tally.unpack(state.tally), state.mark

    def _plan(self, history: History, *, full: bool) -> _Whole | _State:
        state = _State(self._ledger.notes())
        now = history.mark()
        is_ours = history.is_same(state.mark) and history.is_same(state.pending_mark)
        if not is_ours:
            self._ledger.forget()  # of another history, whose sessions are not to be kept
            return _Whole(1, now, rereads=True)
        if now.message < state.mark.message or now.change < state.mark.change:
            # An older copy was put in its place: ids come again that were seen before.
            return _Whole(state.generation + 1, now, rereads=True)
        if state.rules != self._rules or full:
            return _Whole(state.generation + 1, now, rereads=True)
        if state.metric_rules != self._metric_rules:
            return _Whole(state.generation + 1, now, rereads=False)
        if state.pending_mark != Mark():  # a whole scan was cut short: go on with it
            return _Whole(state.generation, state.pending_mark, rereads=True, resumes=True)
        return state

    # Everything

    def _read_whole(
        self, history: History, plan: _Whole, report: Callable[[ScanProgress], None]
    ) -> Scan:
        done = set(self._ledger.known(plan.generation)) if plan.resumes else set()
        known = set(self._ledger.known())
        todo = [(item, size) for item, size in history.everything() if item not in done]
        listed = {item for item, _ in todo}
        todo += [(item, 0) for item in sorted(known - listed - done)]
        tally = self._tally_of(done)
        self._note(plan)
        signatures = history.signatures()
        run = _Run(self, plan, tally, len(done), len(done) + len(todo), report)
        run.save_seconds = self._save_seconds
        run.work(self._results(todo, known, rereads=plan.rereads))
        self._finish(plan, run, signatures)
        return Scan(Mode.FULL, tally, plan.mark, len(todo), len(done), None, tuple(run.skipped))

    def _tally_of(self, session_ids: set[str]) -> Tally:
        tally = Tally()
        if session_ids:
            for item, _, stored in self._ledger.contributions():
                if item in session_ids:
                    tally.add(item, Contribution.unpack(stored))
        return tally

    def _note(self, plan: _Whole) -> None:
        """A whole scan begins: until it ends there is no complete tally in the ledger."""
        self._ledger.save(
            (),
            {
                "rules": self._rules,
                "metric_rules": self._metric_rules,
                "generation": orjson.dumps(plan.generation),
                "pending_mark": orjson.dumps(tuple(plan.mark)),
            },
            plan.generation,
        )

    def save(self, entries: Iterable[LedgerEntry], plan: _Whole) -> None:
        """Save what has been read so far."""
        self._ledger.save(entries, {}, plan.generation)

    def _finish(self, plan: _Whole, run: _Run, signatures: dict[str, str]) -> None:
        notes: dict[str, bytes | None] = {
            "tally": run.tally.pack(),
            "mark": orjson.dumps(tuple(plan.mark)),
            "pending_mark": None,
            "looked_at": orjson.dumps(time.time()),
            "signatures": orjson.dumps(signatures),
        }
        self._ledger.save(run.unsaved, notes, plan.generation)

    def _results(
        self, todo: list[tuple[str, int]], known: set[str], *, rereads: bool
    ) -> Iterator[Done]:
        jobs = self._jobs(todo, known, rereads=rereads)
        number = self._processes if self._processes is not None else free_cores()
        if number == 0 or sum(size for _, size in todo) <= SMALL_HISTORY:
            return do_all_here(jobs, self._open_history, self._zone)
        return do_all(jobs, self._open_history, self._zone, number)

    def _jobs(
        self, todo: list[tuple[str, int]], known: set[str], *, rereads: bool
    ) -> Iterator[ScanJob]:
        """Pieces of work: small ones first, so that something is seen at once."""
        limit, size = FIRST_JOB, 0
        block: list[str] = []
        for session_id, messages in todo:
            block.append(session_id)
            size += messages + 1
            if size >= limit or len(block) >= MAX_SESSIONS:
                yield self._job(block, known, size, rereads=rereads)
                block, size = [], 0
                limit = min(JOB, limit * 2)
        if block:
            yield self._job(block, known, size, rereads=rereads)

    def _job(self, block: list[str], known: set[str], size: int, *, rereads: bool) -> ScanJob:
        if self._running is not None:
            self._running.wait()  # paused
        books = self._ledger.books([item for item in block if item in known])
        return ScanJob([(item, books.get(item)) for item in block], rereads, size)

    # What changed

    def _follow(self, history: History, state: _State) -> Scan:
        mark = history.mark()
        tally = Tally.unpack(state.tally or b"")
        changed = {item.session_id: item.is_longer for item in history.changed_since(state.mark)}
        notes: dict[str, bytes | None] = {}
        for session_id in self._silently_changed(history, state, notes):
            changed.setdefault(session_id, False)
        skipped: list[str] = []
        if changed:
            entries = self._replace(history, changed, tally, skipped)
            notes |= {"tally": tally.pack(), "mark": orjson.dumps(tuple(mark))}
            self._ledger.save(entries, notes, state.generation)
        elif notes or mark != state.mark:
            self._ledger.save((), {**notes, "mark": orjson.dumps(tuple(mark))}, state.generation)
        reused = max(0, self._ledger.count() - len(changed))
        return Scan(
            Mode.INCREMENTAL, tally, mark, len(changed), reused, tuple(changed), tuple(skipped)
        )

    def _silently_changed(
        self, history: History, state: _State, notes: dict[str, bytes | None]
    ) -> list[str]:
        """Sessions whose row another program changed without leaving a trace, now and then."""
        if 0 <= time.time() - state.looked_at < LOOK_OVER_SECONDS:
            return []
        signatures = history.signatures()
        notes |= {"signatures": orjson.dumps(signatures), "looked_at": orjson.dumps(time.time())}
        if state.signatures is None:
            return []
        try:
            known = orjson.loads(state.signatures)
        except ValueError as error:
            raise LedgerDamagedError(f"signatures cannot be read: {error}") from error
        return [item for item, signature in signatures.items() if known.get(item) != signature]

    def _replace(
        self, history: History, changed: dict[str, bool], tally: Tally, skipped: list[str]
    ) -> list[LedgerEntry]:
        """Take the changed sessions out of the tally and put them in again."""
        ids = list(changed)
        old = {item: Contribution.unpack(c) for item, _, c in self._ledger.contributions(ids)}
        if len(ids) <= MAX_INLINE_SESSIONS:
            entries = self._read_again(history, changed, skipped)
        else:
            entries = self._read_many(ids, old, skipped)
        new = {entry.session_id: Contribution.unpack(entry.contribution) for entry in entries}
        is_exact = True
        for session_id, contribution in new.items():
            if session_id in old:
                is_exact &= tally.replace(session_id, old[session_id], contribution)
            else:
                tally.add(session_id, contribution)
        if not is_exact:
            self._count_anew(tally, new)
        return entries

    def _read_again(
        self, history: History, changed: dict[str, bool], skipped: list[str]
    ) -> list[LedgerEntry]:
        calendar = Calendar(find_zone(self._zone))
        books = self._ledger.books(list(changed))
        entries: list[LedgerEntry] = []

        def read(session_id: str, before: bytes | None) -> None:
            is_longer = changed[session_id]
            book = longer_book(history, session_id, before) if before and is_longer else None
            book = book or book_of(history, session_id, before)
            if book is not None:
                entries.append(entry_of(book, calendar)[0])

        skipped += [
            item
            for item in changed
            if not read_apart(item, lambda session_id: read(session_id, books.get(session_id)))
        ]
        return entries

    def _read_many(
        self, ids: list[str], old: dict[str, Contribution], skipped: list[str]
    ) -> list[LedgerEntry]:
        """After an import, say: the workers read them."""
        todo = [(item, JOB // MAX_SESSIONS) for item in ids]
        entries: list[LedgerEntry] = []
        for result in self._results(todo, set(old), rereads=True):
            entries += result.entries
            skipped += result.skipped
        return entries

    def _count_anew(self, tally: Tally, new: dict[str, Contribution]) -> None:
        """A best or a first was taken away: look for the runner-up among all sessions."""
        others = (
            (item, Contribution.unpack(stored))
            for item, _, stored in self._ledger.contributions()
            if item not in new
        )
        fresh = Tally.of([*others, *new.items()])
        tally.best, tally.peaks, tally.seen = fresh.best, fresh.peaks, fresh.seen


class _Whole(NamedTuple):
    """The plan to read everything."""

    generation: int
    mark: Mark
    rereads: bool
    resumes: bool = False


class _State:
    """What the ledger says about itself."""

    def __init__(self, notes: dict[str, bytes]) -> None:
        self.rules = notes.get("rules")
        self.metric_rules = notes.get("metric_rules")
        self.tally = notes.get("tally")
        self.signatures = notes.get("signatures")
        try:
            self.generation = int(orjson.loads(notes.get("generation", b"0")))
            self.mark = _mark(notes.get("mark"))
            self.pending_mark = _mark(notes.get("pending_mark"))
            self.looked_at = float(orjson.loads(notes.get("looked_at", b"0")))
        except (ValueError, TypeError) as error:
            raise LedgerDamagedError(f"a note cannot be read: {error}") from error

    def fits(self, rules: bytes, metric_rules: bytes) -> bool:
        """Whether the ledger was made by these rules."""
        return self.rules == rules and self.metric_rules == metric_rules


def _mark(stored: bytes | None) -> Mark:
    if stored is None:
        return Mark()
    message, change, witnesses, name = orjson.loads(stored)
    return Mark(int(message), int(change), tuple((item, two) for item, two in witnesses), str(name))


class _Run:
    """One whole scan under way: counts, saves and reports."""

    def __init__(
        self,
        scanner: Scanner,
        plan: _Whole,
        tally: Tally,
        done: int,
        total: int,
        report: Callable[[ScanProgress], None],
    ) -> None:
        self.tally = tally
        self.unsaved: list[LedgerEntry] = []
        self.skipped: list[str] = []
        self.save_seconds = SAVE_SECONDS
        self._scanner = scanner
        self._plan = plan
        self._done = done
        self._total = total
        self._report = report
        self._began = self._saved_at = time.monotonic()
        self._reported_at = float("-inf")
        self._reported = 0
        self._read = 0

    def work(self, results: Iterable[Done]) -> None:
        """Take in all results as they come."""
        for result in results:
            self.unsaved += result.entries
            self.tally.merge(result.tally)
            self.skipped += result.skipped
            self._done += len(result.job.sessions)
            self._read += len(result.job.sessions)
            now = time.monotonic()
            if now - self._saved_at >= self.save_seconds or len(self.unsaved) >= SAVE_ENTRIES:
                self._scanner.save(self.unsaved, self._plan)
                self.unsaved = []
                self._saved_at = now
            self._report_if_due(now)

    def _report_if_due(self, now: float) -> None:
        is_due = (
            now - self._reported_at >= REPORT_SECONDS or self._done - self._reported >= MAX_SESSIONS
        )
        if is_due and self._done < self._total:
            self._reported_at, self._reported = now, self._done
            left = (now - self._began) / self._read * (self._total - self._done)
            self._report(ScanProgress(self._done, self._total, self.tally, left))


def _ignore(progress: ScanProgress) -> None:
    del progress
