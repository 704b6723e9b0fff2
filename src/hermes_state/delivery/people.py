"""Roles of people that differ from the default, and keys for the API platform.

A key is stored only as a hash. It has 256 random bits, so the hash needs no salt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

KEY_BYTES: Final = 32
KEY_PREFIX: Final = "hermes_"

UPSERT_ROLE = """
    INSERT INTO hermes_person_role (platform, user_id, role, set_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (platform, user_id) DO UPDATE SET role = excluded.role, set_at = excluded.set_at
"""
SELECT_ROLE = "SELECT role FROM hermes_person_role WHERE platform = ? AND user_id = ?"
SELECT_ROLES = "SELECT platform, user_id, role, set_at FROM hermes_person_role ORDER BY set_at"
DELETE_ROLE = "DELETE FROM hermes_person_role WHERE platform = ? AND user_id = ?"
INSERT_KEY = "INSERT INTO hermes_api_key (name, role, digest, created_at) VALUES (?, ?, ?, ?)"
SELECT_KEY_NAME = "SELECT 1 FROM hermes_api_key WHERE name = ?"
SELECT_KEY_ROLE = "SELECT role FROM hermes_api_key WHERE name = ?"
FIND_KEY = "SELECT name, role, created_at FROM hermes_api_key WHERE digest = ?"
SELECT_KEYS = "SELECT name, role, created_at FROM hermes_api_key ORDER BY created_at"
DELETE_KEY = "DELETE FROM hermes_api_key WHERE name = ?"


class PersonRole(NamedTuple):
    """A role that was set for a person."""

    platform: str
    user_id: str
    role: str
    set_at: float


class StoredApiKey(NamedTuple):
    """The name and role of an API key."""

    name: str
    role: str
    created_at: float


class PeopleRepository(Repository):
    """Roles of people and of API keys."""

    def set_role(self, platform: str, user_id: str, role: str) -> None:
        """Set the role of a person."""
        row = (platform, user_id, role, self.clock.now())
        self.engine.write(lambda tx: tx.run(UPSERT_ROLE, row))

    def role_of(self, platform: str, user_id: str) -> str | None:
        """The role that was set for a person."""
        row = self.engine.read(lambda reader: reader.row(SELECT_ROLE, (platform, user_id)))
        return None if row is None else str(row[0])

    def roles(self) -> list[PersonRole]:
        """All roles that were set."""
        rows = self.engine.read(lambda reader: reader.rows(SELECT_ROLES))
        return [PersonRole._make(row) for row in rows]

    def forget_role(self, platform: str, user_id: str) -> bool:
        """Return to the default role of a person; whether another one was set."""
        key = (platform, user_id)
        return self.engine.write(lambda tx: tx.execute(DELETE_ROLE, key).rowcount > 0)

    def add_api_key(self, name: str, role: str) -> str | None:
        """Create an API key; it cannot be read again. None if the name is taken."""
        import secrets  # noqa: PLC0415 - slow to load, rarely needed

        key = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)

        def insert(tx: Tx) -> bool:
            if tx.value(SELECT_KEY_NAME, (name,)):
                return False
            tx.run(INSERT_KEY, (name, role, _digest(key), tx.clock.now()))
            return True

        return key if self.engine.write(insert) else None

    def find_api_key(self, key: str) -> StoredApiKey | None:
        """The name and role of an API key."""
        row = self.engine.read(lambda reader: reader.row(FIND_KEY, (_digest(key),)))
        return None if row is None else StoredApiKey._make(row)

    def api_key_role(self, name: str) -> str | None:
        """The role of the API key with a name."""
        row = self.engine.read(lambda reader: reader.row(SELECT_KEY_ROLE, (name,)))
        return None if row is None else str(row[0])

    def api_keys(self) -> list[StoredApiKey]:
        """The names and roles of all API keys."""
        return [StoredApiKey._make(row) for row in self.engine.read(lambda r: r.rows(SELECT_KEYS))]

    def remove_api_key(self, name: str) -> bool:
        """Delete an API key; whether it existed."""
        return self.engine.write(lambda tx: tx.execute(DELETE_KEY, (name,)).rowcount > 0)


def _digest(key: str) -> bytes:
    import hashlib  # noqa: PLC0415 - as above

    return hashlib.sha256(key.encode(errors="replace")).digest()
