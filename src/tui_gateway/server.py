"""What tests of hermes-agent import from its server; the hub closes conversations without it."""

from __future__ import annotations

from hermes_compat.tui_server import finalize_session as _finalize_session
from hermes_compat.tui_server import get_db as _get_db

__all__ = ["_finalize_session", "_get_db"]
