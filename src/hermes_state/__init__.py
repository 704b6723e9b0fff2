"""The session store: `hermes_state.store.SessionDB`.

The names of this package are those of hermes-agent, for its plugins; `hermes_compat` has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_compat.async_store import AsyncSessionDB
    from hermes_compat.session_db import OriginalSessionDB as SessionDB
    from hermes_compat.store_names import (
        apply_wal_with_fallback,
        format_session_db_unavailable,
        get_last_init_error,
        is_malformed_db_error,
        repair_state_db_schema,
    )

__all__ = [
    "AsyncSessionDB",
    "SessionDB",
    "apply_wal_with_fallback",
    "format_session_db_unavailable",
    "get_last_init_error",
    "is_malformed_db_error",
    "repair_state_db_schema",
]
OTHER_NAMES = frozenset({"DEFAULT_DB_PATH", "SCHEMA_SQL", "SCHEMA_VERSION", "_db_opens_cleanly"})


def __getattr__(name: str) -> Any:
    if name not in __all__ and name not in OTHER_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hermes_compat import store_names  # noqa: PLC0415 - our own code does without

    return getattr(store_names, name)
