"""Tells the owner in a chat when a platform is lost, and when it is back."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Final

from gateway.outbound import direct_send
from gateway.process.live_facts import WORKING_STATES
from hermes_core.errors import UsageError
from hermes_state.engine.process_identity import node_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gateway.config import GatewayConfig
    from gateway.status import RuntimePlatform
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

LOST_SECONDS: Final = 60.0  # a platform that is back sooner is not mentioned
LOST_NOTICE: Final = "Hermes: {platform} is not connected: {reason}"
BACK_NOTICE: Final = "Hermes: {platform} is connected again, after {minutes} min."


class OutageNotices:
    """Compares the states of the platforms; sends through the outbox.

    A notice to the lost platform itself arrives when that is back. Announced outages are stored:
    the gateway may be restarted before they end.
    """

    def __init__(
        self,
        db: SessionDB,
        config: GatewayConfig,
        targets: Sequence[str],
        clock: Callable[[], float] = time.time,  # of the wall: a loss may be older than the process
    ) -> None:
        self._db = db
        self._config = config
        self._targets = targets  # `platform:chat`, a home channel or the name of a chat
        self._clock = clock
        self._lost_since: dict[str, float] = {}
        self._key = f"gateway_outages:{node_name()}"
        stored = db.meta.get_meta(self._key) if targets else None
        self._announced: dict[str, float] = json.loads(stored or "{}")  # times of the losses

    def update(self, states: Mapping[str, RuntimePlatform]) -> None:
        """Send what has changed."""
        now = self._clock()
        for platform, state in states.items():
            if state.get("state") in WORKING_STATES:
                self._lost_since.pop(platform, None)
                self._announce_return(platform)
                continue
            lost_at = self._lost_since.setdefault(platform, now)
            if now - lost_at >= LOST_SECONDS and platform not in self._announced:
                reason = state.get("error_message") or state.get("state")
                self._send(LOST_NOTICE.format(platform=platform, reason=reason))
                self._announced[platform] = lost_at
                self._store()

    def _announce_return(self, platform: str) -> None:
        lost_at = self._announced.pop(platform, None)
        if lost_at is not None:
            minutes = max(1, round((self._clock() - lost_at) / 60))
            self._send(BACK_NOTICE.format(platform=platform, minutes=minutes))
            self._store()

    def _store(self) -> None:
        if self._targets:
            self._db.meta.set_meta(self._key, json.dumps(self._announced))

    def _send(self, text: str) -> None:
        for name in self._targets:
            try:
                channel = direct_send.find_channel(self._db, self._config, name)
            except UsageError as error:
                log.warning("gateway.notify: %s", error)
                continue
            self._db.outbox.add(
                f"notice:{self._db.ids.new()}",
                platform=channel.platform,
                target=channel.target(),
                payload={"text": text},
            )
