"""Tables and columns of the opened file, which differ between releases."""

from __future__ import annotations

from typing import NamedTuple

from hermes_state.schema.base import MESSAGE_DEFAULTS, SESSION_DEFAULTS


class Columns(NamedTuple):
    """Tables and columns of a file, read once when it is opened."""

    sessions: tuple[str, ...]
    messages: tuple[str, ...]
    tables: frozenset[str]
    stamps_activity: bool
    has_foreign_writers: bool = True  # another program may write without updating the index
    process_timeout_seconds: float = 120.0  # until a process of another machine counts as dead

    def session_has(self, column: str) -> bool:
        """Whether `sessions` has *column*."""
        return column in self.sessions

    @property
    def hashes_prompts(self) -> bool:
        """Whether system prompts are deduplicated in a separate table."""
        return "system_prompt_hash" in self.sessions and "system_prompts" in self.tables

    def missing(self) -> dict[str, dict[str, str]]:
        """Columns that files of schema 16 have and this one lacks, by table, with defaults."""
        pairs = {
            "sessions": (self.sessions, SESSION_DEFAULTS),
            "messages": (self.messages, MESSAGE_DEFAULTS),
        }
        lacking = {
            table: {name: value for name, value in defaults.items() if name not in present}
            for table, (present, defaults) in pairs.items()
        }
        return {table: names for table, names in lacking.items() if names}

    def missing_names(self) -> list[str]:
        """The missing columns as `table.column`."""
        return [f"{table}.{name}" for table, names in self.missing().items() for name in names]

    def completed(self) -> Columns:
        """The columns of a connection that `add_missing_columns` has completed."""
        missing = self.missing()
        return self._replace(
            sessions=(*self.sessions, *missing.get("sessions", {})),
            messages=(*self.messages, *missing.get("messages", {})),
        )

    @property
    def has_own_tables(self) -> bool:
        """Whether Hermes has opened this file for writing before."""
        return "hermes_layout" in self.tables
