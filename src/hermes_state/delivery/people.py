"""Approved users and pairing codes, roles that differ from the default, keys for the API platform.

A key is stored only as a hash. It has 256 random bits, so the hash needs no salt. A pairing code is
stored only as a salted hash, is valid for an hour, and can be used once, in any process. Wrong
codes lock a platform for a while.
"""

from __future__ import annotations

import os
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


CODE_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # without similar characters
CODE_LENGTH: Final = 8
CODE_LIFETIME_SECONDS: Final = 3600.0
CODE_INTERVAL_SECONDS: Final = 600.0  # between two codes for a user
MAX_PENDING_CODES: Final = 1000  # per platform; a new one replaces the oldest
MAX_GUESSES: Final = 5
LOCK_SECONDS: Final = 3600.0

DELETE_EXPIRED = "DELETE FROM hermes_pairing WHERE created_at < ?"
COUNT_PENDING = "SELECT count(*) FROM hermes_pairing WHERE platform = ?"
OLDEST_PENDING = """
    SELECT user_id FROM hermes_pairing WHERE platform = ? ORDER BY created_at, user_id LIMIT 1
"""
LATEST_CODE = "SELECT max(created_at) FROM hermes_pairing WHERE platform = ? AND user_id = ?"
INSERT_PAIRING = """
    INSERT INTO hermes_pairing (platform, user_id, user_name, salt, digest, created_at)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (platform, user_id) DO UPDATE SET user_name = excluded.user_name,
        salt = excluded.salt, digest = excluded.digest, created_at = excluded.created_at
"""
OF_PLATFORM = """
    SELECT user_id, user_name, salt, digest FROM hermes_pairing
    WHERE platform = ? AND created_at >= ?
"""
DELETE_PAIRING = "DELETE FROM hermes_pairing WHERE platform = ? AND user_id = ?"
UPSERT_ALLOWED = """
    INSERT INTO hermes_allowed (platform, user_id, user_name, allowed_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (platform, user_id) DO UPDATE SET user_name = excluded.user_name
"""
INSERT_ALLOWED = """
    INSERT INTO hermes_allowed (platform, user_id, user_name, allowed_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (platform, user_id) DO NOTHING
"""
REVOKE = "DELETE FROM hermes_allowed WHERE platform = ? AND user_id = ?"
IS_ALLOWED = "SELECT 1 FROM hermes_allowed WHERE platform = ? AND user_id = ?"
SELECT_ALLOWED = (
    "SELECT platform, user_id, user_name, allowed_at FROM hermes_allowed ORDER BY allowed_at"
)
SELECT_PENDING = """
    SELECT platform, user_id, user_name, created_at FROM hermes_pairing
    WHERE created_at >= ? ORDER BY created_at
"""
INSERT_GUESS = "INSERT INTO hermes_guess (platform, guessed_at) VALUES (?, ?)"
COUNT_GUESSES = "SELECT count(*) FROM hermes_guess WHERE platform = ? AND guessed_at >= ?"
DELETE_GUESSES = "DELETE FROM hermes_guess WHERE platform = ?"


class ApprovedUser(NamedTuple):
    """An approved user."""

    platform: str
    user_id: str
    user_name: str


class AllowedUser(NamedTuple):
    """A user with access."""

    platform: str
    user_id: str
    user_name: str
    allowed_at: float


class PendingPairing(NamedTuple):
    """A user with a pairing code that was not used yet."""

    platform: str
    user_id: str
    user_name: str
    created_at: float


class PairingRepository(Repository):
    """Pairing and approval of users."""

    def request(self, platform: str, user_id: str, user_name: str = "") -> str | None:
        """Create a pairing code for a user.

        None if one was created recently. A new code replaces the oldest of very many, so that
        unknown users cannot keep others from getting one.
        """
        import secrets  # noqa: PLC0415 - slow to load, rarely needed

        code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))
        salt = os.urandom(16)

        def create(tx: Tx) -> bool:
            now = tx.clock.now()
            tx.run(DELETE_EXPIRED, (now - CODE_LIFETIME_SECONDS,))
            latest = tx.value(LATEST_CODE, (platform, user_id))
            if latest is not None and now - latest < CODE_INTERVAL_SECONDS:
                return False
            if latest is None and tx.value(COUNT_PENDING, (platform,)) >= MAX_PENDING_CODES:
                tx.run(DELETE_PAIRING, (platform, tx.value(OLDEST_PENDING, (platform,))))
            tx.run(
                INSERT_PAIRING, (platform, user_id, user_name, salt, _code_digest(salt, code), now)
            )
            return True

        return code if self.engine.write(create) else None

    def approve(self, platform: str, code: str, role: str | None = None) -> ApprovedUser | None:
        """Approve the user with this code, with a role other than the default.

        None if the code is unknown, or after too many wrong codes.
        """

        def approve(tx: Tx) -> ApprovedUser | None:
            found = _find(tx, platform, code)
            if found is not None:
                now = tx.clock.now()
                tx.run(DELETE_PAIRING, (platform, found.user_id))
                tx.run(UPSERT_ALLOWED, (*found, now))
                if role is not None:
                    tx.run(UPSERT_ROLE, (platform, found.user_id, role, now))
            return found

        return self.engine.write(approve)

    def find(self, platform: str, code: str) -> ApprovedUser | None:
        """The user with this code, who is not approved yet; a wrong code counts as a guess."""
        return self.engine.write(lambda tx: _find(tx, platform, code))

    def add(
        self, platform: str, user_id: str, user_name: str = "", allowed_at: float = 0.0
    ) -> bool:
        """Approve a user whom another program has approved; whether the user had no access."""
        row = (platform, user_id, user_name, allowed_at or self.clock.now())
        return self.engine.write(lambda tx: tx.execute(INSERT_ALLOWED, row).rowcount > 0)

    def is_locked(self, platform: str) -> bool:
        """Whether the platform is locked after too many wrong codes."""
        since = self.clock.now() - LOCK_SECONDS
        guesses = self.engine.read(lambda reader: reader.value(COUNT_GUESSES, (platform, since)))
        return int(guesses) >= MAX_GUESSES

    def revoke(self, platform: str, user_id: str) -> bool:
        """Revoke a user's access and role; returns whether the user had access."""

        def revoke(tx: Tx) -> bool:
            tx.run(DELETE_ROLE, (platform, user_id))
            return tx.execute(REVOKE, (platform, user_id)).rowcount > 0

        return self.engine.write(revoke)

    def is_allowed(self, platform: str, user_id: str) -> bool:
        """Whether a user is approved."""
        row = self.engine.read(lambda reader: reader.row(IS_ALLOWED, (platform, user_id)))
        return row is not None

    def allowed(self) -> list[AllowedUser]:
        """All approved users."""
        rows = self.engine.read(lambda reader: reader.rows(SELECT_ALLOWED))
        return [AllowedUser._make(row) for row in rows]

    def pending(self) -> list[PendingPairing]:
        """Users with pending codes."""
        since = self.clock.now() - CODE_LIFETIME_SECONDS
        rows = self.engine.read(lambda reader: reader.rows(SELECT_PENDING, (since,)))
        return [PendingPairing._make(row) for row in rows]


def _find(tx: Tx, platform: str, code: str) -> ApprovedUser | None:
    """The user with a code; None if it is unknown, or after too many wrong codes."""
    import hmac  # noqa: PLC0415 - as above

    now = tx.clock.now()
    if tx.value(COUNT_GUESSES, (platform, now - LOCK_SECONDS)) >= MAX_GUESSES:
        return None
    entered = code.strip().upper()
    for user_id, user_name, salt, digest in tx.rows(
        OF_PLATFORM, (platform, now - CODE_LIFETIME_SECONDS)
    ):
        if hmac.compare_digest(_code_digest(salt, entered), digest):
            tx.run(DELETE_GUESSES, (platform,))
            return ApprovedUser(platform, user_id, user_name)
    tx.run(INSERT_GUESS, (platform, now))
    return None


def _code_digest(salt: bytes, code: str) -> bytes:
    import hashlib  # noqa: PLC0415 - as above

    return hashlib.blake2b(code.encode(), key=bytes(salt), digest_size=32).digest()
