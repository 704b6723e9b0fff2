"""Records the unlocks of a scan and announces them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_achievements.evaluation import announcements
from hermes_achievements.evaluation.dates import Threshold
from hermes_achievements.evaluation.records import is_dated
from hermes_achievements.evaluation.standings import reached_tiers
from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.evaluation.announcements import ClaimedAnnouncement
    from hermes_achievements.evaluation.dates import UnlockMoment
    from hermes_achievements.evaluation.records import UnlockRecords
    from hermes_achievements.evaluation.snapshot import (
        AnnouncedUnlock,
        Announcement,
        Scan,
        TierEvidence,
        Unlock,
        UnlockState,
    )
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
        if any(announcements.is_overdue(item, now) for item in due):
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
        self,
        catalogue: Catalogue,
        claimed: ClaimedAnnouncement,
        titles: dict[str, str],
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
