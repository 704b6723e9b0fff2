"""Achievements: the engine is `hermes_achievements`, the page's API is in dashboard/."""

from __future__ import annotations

from typing import Any


def register(ctx: Any) -> None:
    """Nothing to register: the dashboard finds the plugin by its manifest."""
