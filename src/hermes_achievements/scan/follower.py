"""Watching a scan that somebody else is doing, by what it leaves in the ledger."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Final

import orjson

from hermes_achievements.evaluation.values import values_of
from hermes_achievements.metrics.tally import Contribution, Tally
from hermes_achievements.scan.survey import Report
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from hermes_achievements.scan.history import Ledger
    from hermes_achievements.service import Source

log = logging.getLogger(__name__)

AT_ONCE: Final = 2000  # sessions that are added up at one look


class Follower:
    """What has been found so far; each look adds what is new since the last one."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._added: set[str] = set()
        self._best: dict[str, int] = {}
        self._generation = -1

    def look(self, source: Source) -> Report | None:
        """How far the other scan is; None when that cannot be told."""
        try:
            with contextlib.closing(source.open_ledger()) as ledger:
                done = self._read(ledger)
            with contextlib.closing(source.open_history()) as history:
                total = sum(1 for _ in history.everything())
        except HermesError as error:
            log.info("another scan cannot be followed: %s", error)
            return None
        for name, value in values_of(self._tally).items():
            self._best[name] = max(value, self._best.get(name, 0))  # nothing goes while it is read
        return Report(min(done, total), total, dict(self._best), None)

    def _read(self, ledger: Ledger) -> int:
        generation = orjson.loads(ledger.notes().get("generation", b"0"))
        if generation != self._generation:  # a scan that reads everything has begun
            self._tally, self._added, self._best = Tally(), set(), {}
            self._generation = generation
        known = ledger.known(generation)
        new = [one for one in known if one not in self._added][:AT_ONCE]
        for session_id, _, stored in ledger.contributions(new):
            self._tally.add(session_id, Contribution.unpack(stored))
        self._added.update(new)
        return len(known)
