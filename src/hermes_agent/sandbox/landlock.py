"""Landlock: file and network rules of a thread, inherited by every process that it starts.

Landlock only grants: "everything except X" becomes rules for the neighbours of X at each
level, so that a folder above X cannot be listed. It has no rule for chmod, chown or times, and
none for UDP and Unix sockets; the seccomp filter denies the sockets.
"""

from __future__ import annotations

import ctypes
import os
import stat
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION_FLAG: Final = 1
_RULE_PATH_BENEATH: Final = 1

_READ: Final = 0b1101  # execute, read a file, read a folder
_WRITE_FILE: Final = 1 << 1
_TRUNCATE: Final = 1 << 14  # since ABI 3
_FIRST_ABI_RIGHTS: Final = (1 << 13) - 1
_REFER: Final = 1 << 13  # since ABI 2
_DEVICE_IOCTL: Final = 1 << 15  # since ABI 5
_FILE_RIGHTS: Final = 0b101 | _WRITE_FILE | _TRUNCATE  # what applies to a file, not to a folder
_TCP: Final = 0b11  # bind and connect, since ABI 4
_SCOPES: Final = 0b11  # abstract Unix sockets and signals, since ABI 6


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathAttributes(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi_version() -> int:
    """The version of the kernel's interface; 0 where Landlock is missing or disabled."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    return max(0, int(version))


class Ruleset:
    """Readable and writable paths; built once, applied to many threads."""

    def __init__(
        self, readable: Iterable[Path], writable: Iterable[Path], *, network: bool
    ) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        abi = abi_version()
        self._handled = _handled_rights(abi)
        attributes = _RulesetAttributes(
            self._handled,
            0 if network or abi < 4 else _TCP,
            _SCOPES if abi >= 6 else 0,
        )
        size = 24 if abi >= 6 else 16 if abi >= 4 else 8
        self._fd = self._call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
        weakref.finalize(self, os.close, self._fd)
        for path in readable:
            self._grant(path, _READ)
        for path in writable:
            self._grant(path, self._handled)

    def restrict_thread(self) -> None:
        """Apply the rules to this thread; it cannot be undone. Needs no_new_privs."""
        self._call(_RESTRICT_SELF, self._fd, 0, 0)

    def _grant(self, path: Path, rights: int) -> None:
        try:
            handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return  # gone, or not reachable for us either
        try:
            mode = os.fstat(handle).st_mode
            if stat.S_ISLNK(mode):
                return  # a rule would be for its target, which may be hidden
            rights &= self._handled
            if not stat.S_ISDIR(mode):
                rights &= _FILE_RIGHTS
            attributes = _PathAttributes(rights, handle)
            self._call(_ADD_RULE, self._fd, _RULE_PATH_BENEATH, ctypes.byref(attributes), 0)
        finally:
            os.close(handle)

    def _call(self, *arguments: object) -> int:
        result = int(self._libc.syscall(*arguments))
        if result < 0:
            raise OSError(ctypes.get_errno(), "landlock")
        return result


def _handled_rights(abi: int) -> int:
    rights = _FIRST_ABI_RIGHTS
    if abi >= 2:
        rights |= _REFER
    if abi >= 3:
        rights |= _TRUNCATE
    if abi >= 5:
        rights |= _DEVICE_IOCTL
    return rights


def paths_around(hidden: Iterable[Path], root: Path = Path("/")) -> Iterator[Path]:
    """The largest paths below *root* that contain none of the hidden ones."""
    secrets = tuple(hidden)
    if root in secrets:
        return
    if not any(secret.is_relative_to(root) for secret in secrets):
        yield root
        return
    try:
        children = sorted(root.iterdir())
    except OSError:
        return
    for child in children:
        yield from paths_around(secrets, child)
