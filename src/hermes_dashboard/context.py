"""What the dashboard is made of; whoever starts it puts the parts together."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hermes_dashboard.analytics.analysis import Analysis

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_state import SessionDB


class LooksAtGateway(Protocol):
    """What the dashboard knows of the chat gateway, which may run in another process."""

    def state(self) -> dict[str, Any]:
        """Whether it runs, since when, and how each platform is doing.

        `is_running`, `pid`, `started_at`, `version` and `platforms`: a list with `name`,
        `state`, `detail`, `account` and `since`.
        """
        ...

    def errors(self, limit: int) -> list[dict[str, Any]]:
        """What went wrong lately, the newest first: `at`, `level`, `logger`, `message`."""
        ...

    def chats(self, limit: int) -> list[dict[str, Any]]:
        """The places that have a conversation, the latest first.

        `key`, `platform`, `name`, `kind`, `session_id` and `last_active`.
        """
        ...


@dataclass(frozen=True)
class DashboardContext:
    """Everything the resources stand on."""

    db: SessionDB
    home: Path
    gateway: LooksAtGateway
    models: Callable[[], list[dict[str, Any]]]  # as `hermes models list --json` tells them
    is_demo: bool = False

    @functools.cached_property
    def analysis(self) -> Analysis:
        """What the history amounts to: one for all resources that stand on it."""
        return Analysis(self.db)
