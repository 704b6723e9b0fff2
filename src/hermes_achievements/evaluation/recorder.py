"""Putting on record what a scan has found, and telling those who want to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_achievements.evaluation.dates import Threshold
from hermes_achievements.evaluation.records import is_dated
from hermes_achievements.evaluation.standings import reached
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.evaluation.records import Records
    from hermes_core.clock import Clock

    Scan = dict[str, Any]
    Tiers = dict[str, dict[str, Any]]


class Recording:
    """From a finished scan to unlocks with dates."""

    def __init__(
        self, records: Records, clock: Clock, announce: Callable[[dict[str, Any]], object] | None
    ) -> None:
        self._records = records
        self._clock = clock
        self._announce = announce

    def settled(self, *, full: bool) -> dict[str, list[str]]:
        """The tiers of each achievement that need no date any more.

        A tier on record without a message is dated when a scan can tell; one that a scan
        could not tell is only looked for again when everything is read again.
        """
        return {
            name: [
                tier
                for tier, item in unlock["tiers"].items()
                if is_dated(item) or (item.get("was_sought") and not full)
            ]
            for name, unlock in self._records.state()["unlocks"].items()
        }

    def record(self, catalogue: Catalogue, values: dict[str, int], scan: Scan) -> dict[str, Any]:
        """Add what *scan* has found to the unlocks, all of which are returned.

        A scan that does not know the moments is no evidence, and changes nothing.
        """
        before = self._records.state()
        if "moments" not in scan:
            return before
        result, news = self._found(catalogue, values, scan["moments"], before["unlocks"])
        if not result:
            return before
        state = self._records.record(result)
        if news and self._records.problem is None:
            is_first = not before["unlocks"]
            self._tell(catalogue, news, scan.get("titles", {}), is_first=is_first)
        return state

    def _found(
        self,
        catalogue: Catalogue,
        values: dict[str, int],
        moments: dict[Threshold, Any],
        unlocks: dict[str, Any],
    ) -> tuple[dict[str, Tiers], dict[str, Tiers]]:
        """What is to be written, and the part of it that is new."""
        result: dict[str, Tiers] = {}
        news: dict[str, Tiers] = {}
        for entry in catalogue:
            held = unlocks.get(entry.id, {}).get("tiers", {})
            for tier, threshold in reached(entry, values.get(entry.value, 0)):
                moment = moments.get(Threshold(entry.value, threshold))
                if tier not in held:
                    evidence = self._evidence(moment)
                    result.setdefault(entry.id, {})[tier] = evidence
                    news.setdefault(entry.id, {})[tier] = evidence
                elif moment is not None and not is_dated(held[tier]):
                    result.setdefault(entry.id, {})[tier] = self._evidence(moment)
        return result, news

    def _evidence(self, moment: Any) -> dict[str, Any]:
        if moment is None:
            nothing = {"session_id": None, "message_id": None}
            return {"at": self._clock.now(), **nothing, "was_sought": True}
        at, session_id, message_id = moment
        return {"at": at, "session_id": session_id, "message_id": message_id}

    def _tell(
        self,
        catalogue: Catalogue,
        new: dict[str, Tiers],
        titles: dict[str, str],
        *,
        is_first: bool,
    ) -> None:
        announce = self._announce
        if announce is None:
            return
        unlocks = []
        for entry in catalogue:
            for tier, evidence in list(new.get(entry.id, {}).items())[-1:]:
                moment = {key: evidence[key] for key in ("at", "session_id", "message_id")}
                title = titles.get(evidence["session_id"] or "")
                shown = {"id": entry.id, "name": entry.name, "icon": entry.icon, "tier": tier}
                unlocks.append({**shown, **moment, "title": title})
        announcement = {"unlocks": unlocks, "count": len(unlocks), "is_first_scan": is_first}
        attempt(Step("announce achievements", lambda: announce(announcement)))
