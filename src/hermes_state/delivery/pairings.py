"""Who may talk to the agent: people who were let in, and codes of those who ask to be.

A code is kept only as a salted hash, lives an hour, and is taken by one approval, whichever
process it comes from. Wrong guesses lock a platform for a while.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.part import StorePart

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike
LENGTH: Final = 8
LIFE_SECONDS: Final = 3600.0
PAUSE_SECONDS: Final = 600.0  # between two codes for one person
MAX_PENDING: Final = 3  # on a platform
MAX_GUESSES: Final = 5
LOCK_SECONDS: Final = 3600.0

FORGET = "DELETE FROM hermes_pairing WHERE created_at < ?"
PENDING = "SELECT count(*) FROM hermes_pairing WHERE platform = ?"
LATEST = "SELECT max(created_at) FROM hermes_pairing WHERE platform = ? AND user_id = ?"
INSERT_PAIRING = """
    INSERT INTO hermes_pairing (platform, user_id, user_name, salt, digest, created_at)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (platform, user_id) DO UPDATE SET user_name = excluded.user_name,
        salt = excluded.salt, digest = excluded.digest, created_at = excluded.created_at
"""
OF_PLATFORM = "SELECT * FROM hermes_pairing WHERE platform = ? AND created_at >= ?"
TAKE = "DELETE FROM hermes_pairing WHERE platform = ? AND user_id = ?"
ALLOW = """
    INSERT INTO hermes_allowed (platform, user_id, user_name, allowed_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (platform, user_id) DO UPDATE SET user_name = excluded.user_name
"""
REVOKE = "DELETE FROM hermes_allowed WHERE platform = ? AND user_id = ?"
IS_ALLOWED = "SELECT 1 FROM hermes_allowed WHERE platform = ? AND user_id = ?"
ALLOWED = "SELECT platform, user_id, user_name, allowed_at FROM hermes_allowed ORDER BY allowed_at"
ASKING = """
    SELECT platform, user_id, user_name, created_at FROM hermes_pairing
    WHERE created_at >= ? ORDER BY created_at
"""
GUESS = "INSERT INTO hermes_guess (platform, guessed_at) VALUES (?, ?)"
GUESSES = "SELECT count(*) FROM hermes_guess WHERE platform = ? AND guessed_at >= ?"
FORGET_GUESSES = "DELETE FROM hermes_guess WHERE platform = ?"


class Approved(NamedTuple):
    """Somebody who was let in."""

    platform: str
    user_id: str
    user_name: str


class PairingPart(StorePart):
    """Letting people in."""

    def ask_to_pair(self, platform: str, user_id: str, user_name: str = "") -> str | None:
        """Create a pairing code for a user.

        None if one was created recently, or if too many are pending.
        """
        import secrets  # noqa: PLC0415 - slow to load, and strangers are rare

        code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        salt = os.urandom(16)

        def ask(tx: Tx) -> bool:
            now = tx.clock.now()
            tx.run(FORGET, (now - LIFE_SECONDS,))
            latest = tx.value(LATEST, (platform, user_id))
            if latest is not None and now - latest < PAUSE_SECONDS:
                return False
            if latest is None and tx.value(PENDING, (platform,)) >= MAX_PENDING:
                return False
            tx.run(INSERT_PAIRING, (platform, user_id, user_name, salt, _digest(salt, code), now))
            return True

        return code if self.engine.write(ask) else None

    def approve_pairing(self, platform: str, code: str) -> Approved | None:
        """Approve the user with this code.

        None if the code is unknown, or after too many wrong codes.
        """
        import hmac  # noqa: PLC0415 - as above

        wanted = code.strip().upper()

        def approve(tx: Tx) -> Approved | None:
            now = tx.clock.now()
            if tx.value(GUESSES, (platform, now - LOCK_SECONDS)) >= MAX_GUESSES:
                return None
            for row in tx.dicts(OF_PLATFORM, (platform, now - LIFE_SECONDS)):
                if hmac.compare_digest(_digest(row["salt"], wanted), row["digest"]):
                    tx.run(TAKE, (platform, row["user_id"]))
                    tx.run(ALLOW, (platform, row["user_id"], row["user_name"], now))
                    tx.run(FORGET_GUESSES, (platform,))
                    return Approved(platform, row["user_id"], row["user_name"])
            tx.run(GUESS, (platform, now))
            return None

        return self.engine.write(approve)

    def is_pairing_locked(self, platform: str) -> bool:
        """Whether the platform is locked after too many wrong codes."""
        since = self.clock.now() - LOCK_SECONDS
        guesses = self.engine.read(lambda reader: reader.value(GUESSES, (platform, since)))
        return int(guesses) >= MAX_GUESSES

    def allow_user(self, platform: str, user_id: str, user_name: str = "") -> None:
        """Approve a user without a code."""
        row = (platform, user_id, user_name, self.clock.now())
        self.engine.write(lambda tx: tx.run(ALLOW, row))

    def revoke_user(self, platform: str, user_id: str) -> bool:
        """Revoke a user's access; returns whether the user had access."""
        return self.engine.write(lambda tx: tx.execute(REVOKE, (platform, user_id)).rowcount > 0)

    def is_user_allowed(self, platform: str, user_id: str) -> bool:
        """Whether a user is approved."""
        row = self.engine.read(lambda reader: reader.row(IS_ALLOWED, (platform, user_id)))
        return row is not None

    def allowed_users(self) -> list[dict[str, Any]]:
        """All approved users."""
        return self.engine.read(lambda reader: reader.dicts(ALLOWED))

    def asking_users(self) -> list[dict[str, Any]]:
        """Users with pending codes."""
        since = self.clock.now() - LIFE_SECONDS
        return self.engine.read(lambda reader: reader.dicts(ASKING, (since,)))


def _digest(salt: bytes, code: str) -> bytes:
    import hashlib  # noqa: PLC0415 - as above

    return hashlib.blake2b(code.encode(), key=bytes(salt), digest_size=32).digest()
