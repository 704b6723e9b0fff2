"""Key-value notes of the store, in the shared table `state_meta`."""

from __future__ import annotations

from hermes_state.repository import Repository

GET_META = "SELECT value FROM state_meta WHERE key = ?"
UPSERT_META = """
    INSERT INTO state_meta (key, value) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""
DELETE_META = "DELETE FROM state_meta WHERE key = ?"


class MetaRepository(Repository):
    """Key-value notes."""

    def get_meta(self, key: str) -> str | None:
        """Value of a note, or None."""
        value: str | None = self.engine.read(lambda reader: reader.value(GET_META, (key,)))
        return value

    def set_meta(self, key: str, value: str) -> None:
        """Set a note."""
        self.engine.write(lambda tx: tx.run(UPSERT_META, (key, value)))

    def delete(self, key: str) -> None:
        """Delete a note."""
        self.engine.write(lambda tx: tx.run(DELETE_META, (key,)))
