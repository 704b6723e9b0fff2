"""The dashboard's password, stored as a scrypt hash in its own file."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import write_atomically
from hermes_core.errors import UsageError
from hermes_dashboard.caches import CachedFile

if TYPE_CHECKING:
    from pathlib import Path

ALGORITHM: Final = "scrypt"
SCRYPT_COST: Final = 2**15
SCRYPT_BLOCK: Final = 8
SCRYPT_PARALLEL: Final = 1
MEMORY_BYTES: Final = 64 * 1024 * 1024
SALT_BYTES: Final = 16
KEY_BYTES: Final = 32
MIN_PASSWORD_CHARACTERS: Final = 8
MAX_PASSWORD_CHARACTERS: Final = 1024
PASSWORD_FILE_NAME: Final = "dashboard-password"  # noqa: S105 - a file name


class PasswordHash(NamedTuple):
    """A scrypt hash with its parameters."""

    cost: int
    block: int
    parallel: int
    salt: bytes
    key: bytes


class PasswordFile:
    """The password of a Hermes folder, if set."""

    def __init__(self, home: Path) -> None:
        self.path = home / PASSWORD_FILE_NAME
        self._file: CachedFile[PasswordHash | None] = CachedFile(self.path, _read, None)

    @property
    def is_set(self) -> bool:
        """Whether a password is set."""
        return self._file.value() is not None

    @property
    def stamp(self) -> str:
        """A value that changes with the password and reveals nothing about it."""
        stored = self._file.value()
        return "" if stored is None else hashlib.sha256(b"stamp" + stored.salt).hexdigest()[:32]

    def set(self, password: str) -> None:
        """Set a new password; all sign-ins become invalid."""
        if not MIN_PASSWORD_CHARACTERS <= len(password) <= MAX_PASSWORD_CHARACTERS:
            raise UsageError(
                f"The password must have {MIN_PASSWORD_CHARACTERS} to {MAX_PASSWORD_CHARACTERS} "
                "characters."
            )
        salt = secrets.token_bytes(SALT_BYTES)
        stored = PasswordHash(SCRYPT_COST, SCRYPT_BLOCK, SCRYPT_PARALLEL, salt, b"")
        parts = (
            ALGORITHM,
            SCRYPT_COST,
            SCRYPT_BLOCK,
            SCRYPT_PARALLEL,
            _text(salt),
            _text(_key(password, stored)),
        )
        write_atomically(self.path, "$".join(map(str, parts)) + "\n")

    def remove(self) -> bool:
        """Remove the password; whether there was one."""
        existed = self.path.exists()
        self.path.unlink(missing_ok=True)
        return existed

    def matches(self, password: str) -> bool:
        """Whether the password is right; slow, as scrypt is meant to be."""
        stored = self._file.value()
        if stored is None or len(password) > MAX_PASSWORD_CHARACTERS:
            return False
        return hmac.compare_digest(_key(password, stored), stored.key)


def _key(password: str, stored: PasswordHash) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=stored.salt,
        n=stored.cost,
        r=stored.block,
        p=stored.parallel,
        maxmem=MEMORY_BYTES,
        dklen=KEY_BYTES,
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read(data: bytes) -> PasswordHash | None:
    try:
        kind, cost, block, parallel, salt, key = data.decode().strip().split("$")
        stored = PasswordHash(
            int(cost), int(block), int(parallel), base64.b64decode(salt), base64.b64decode(key)
        )
    except ValueError:
        return None
    return stored if kind == ALGORITHM and len(stored.key) == KEY_BYTES else None
