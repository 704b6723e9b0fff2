"""Tells the owner in a chat when a platform is lost, and when it is back."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from gateway.outbound import direct_send
from gateway.process.live_facts import WORKING_STATES
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gateway.config import GatewayConfig
    from gateway.status import RuntimePlatform
    from hermes_state import SessionDB

log = logging.getLogger(__name__)

LOST_SECONDS: Final = 60.0  # a platform that is back sooner is not mentioned
LOST_NOTICE: Final = "Hermes: {platform} is not connected: {reason}"
BACK_NOTICE: Final = "Hermes: {platform} is connected again, after {minutes} min."


class OutageNotices:
    """Compares the states of the platforms; sends through the outbox.

    A notice to the lost platform itself arrives when that is back.
    """

    def __init__(
        self,
        db: SessionDB,
        config: GatewayConfig,
        targets: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._config = config
        self._targets = targets  # `platform:chat`, a home channel or the name of a chat
        self._clock = clock
        self._lost_since: dict[str, float] = {}
        self._announced: set[str] = set()

    def update(self, states: Mapping[str, RuntimePlatform]) -> None:
        """Send what has changed."""
        now = self._clock()
        for platform, state in states.items():
            if state.get("state") in WORKING_STATES:
                since = self._lost_since.pop(platform, now)
                if platform in self._announced:
                    self._announced.discard(platform)
                    minutes = max(1, round((now - since) / 60))
                    self._send(BACK_NOTICE.format(platform=platform, minutes=minutes))
                continue
            is_lost = now - self._lost_since.setdefault(platform, now) >= LOST_SECONDS
            if is_lost and platform not in self._announced:
                self._announced.add(platform)
                reason = state.get("error_message") or state.get("state")
                self._send(LOST_NOTICE.format(platform=platform, reason=reason))

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
