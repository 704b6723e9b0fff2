"""The dashboard's password: kept as what scrypt makes of it, in a file of its own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import write_atomically
from hermes_core.errors import UsageError
from hermes_dashboard.small_file import SmallFile

if TYPE_CHECKING:
    from pathlib import Path

KIND: Final = "scrypt"
COST: Final = 2**15
BLOCK: Final = 8
PARALLEL: Final = 1
MEMORY_BYTES: Final = 64 * 1024 * 1024
SALT_BYTES: Final = 16
KEY_BYTES: Final = 32
SHORTEST: Final = 8
MAX_PASSWORD_CHARACTERS: Final = 1024
PASSWORD_FILE_NAME: Final = "dashboard-password"  # noqa: S105 - a file name


class PasswordHash(NamedTuple):
    """What is kept of a password."""

    cost: int
    block: int
    parallel: int
    salt: bytes
    key: bytes


class PasswordFile:
    """The password of a Hermes folder, if one was set."""

    def __init__(self, home: Path) -> None:
        self.path = home / PASSWORD_FILE_NAME
        self._file: SmallFile[PasswordHash | None] = SmallFile(self.path, _read, None)

    @property
    def is_set(self) -> bool:
        """Whether there is one."""
        return self._file.value() is not None

    @property
    def stamp(self) -> str:
        """What changes whenever the password does; says nothing about it."""
        kept = self._file.value()
        return "" if kept is None else hashlib.sha256(b"stamp" + kept.salt).hexdigest()[:32]

    def set(self, password: str) -> None:
        """Keep a new one; whoever was logged in is no longer."""
        if not SHORTEST <= len(password) <= MAX_PASSWORD_CHARACTERS:
            raise UsageError(f"a password has {SHORTEST} to {MAX_PASSWORD_CHARACTERS} characters")
        salt = secrets.token_bytes(SALT_BYTES)
        kept = PasswordHash(COST, BLOCK, PARALLEL, salt, b"")
        fields = (KIND, COST, BLOCK, PARALLEL, _text(salt), _text(_key(password, kept)))
        write_atomically(self.path, "$".join(map(str, fields)) + "\n")

    def remove(self) -> bool:
        """Have none; whether there was one."""
        had = self.path.exists()
        self.path.unlink(missing_ok=True)
        return had

    def fits(self, password: str) -> bool:
        """Whether this is it; takes its time, as scrypt is meant to."""
        kept = self._file.value()
        if kept is None or len(password) > MAX_PASSWORD_CHARACTERS:
            return False
        return hmac.compare_digest(_key(password, kept), kept.key)


def _key(password: str, kept: PasswordHash) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=kept.salt,
        n=kept.cost,
        r=kept.block,
        p=kept.parallel,
        maxmem=MEMORY_BYTES,
        dklen=KEY_BYTES,
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read(data: bytes) -> PasswordHash | None:
    try:
        kind, cost, block, parallel, salt, key = data.decode().strip().split("$")
        kept = PasswordHash(
            int(cost), int(block), int(parallel), base64.b64decode(salt), base64.b64decode(key)
        )
    except ValueError:
        return None
    return kept if kind == KIND and len(kept.key) == KEY_BYTES else None
