"""The session store. Programs and plugins use `SessionDB`.

Importing this package is cheap: the store itself is loaded at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_core import paths

if TYPE_CHECKING:
    from hermes_state.async_store import AsyncSessionDB
    from hermes_state.compatibility import (
        apply_wal_with_fallback,
        format_session_db_unavailable,
        get_last_init_error,
        is_malformed_db_error,
        repair_state_db_schema,
    )
    from hermes_state.store import SessionDB

__all__ = [
    "AsyncSessionDB",
    "SessionDB",
    "apply_wal_with_fallback",
    "format_session_db_unavailable",
    "get_last_init_error",
    "is_malformed_db_error",
    "repair_state_db_schema",
]


def __getattr__(name: str) -> Any:
    if name == "SessionDB":
        from hermes_state.store import SessionDB  # noqa: PLC0415 - keeps startup light

        return SessionDB
    if name == "AsyncSessionDB":
        from hermes_state.async_store import AsyncSessionDB  # noqa: PLC0415 - as above

        return AsyncSessionDB
    if name in {"SCHEMA_VERSION", "SCHEMA_SQL"}:
        from hermes_state.schema import base  # noqa: PLC0415 - as above

        return base.BASE_VERSION if name == "SCHEMA_VERSION" else base.schema_sql()
    if name == "DEFAULT_DB_PATH":
        return paths.state_db_path()
    if name in __all__ or name == "_db_opens_cleanly":
        from hermes_state import compatibility  # noqa: PLC0415 - keeps startup light

        return getattr(compatibility, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
