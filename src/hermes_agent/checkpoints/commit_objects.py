"""Writes a commit into a repository as `git commit-tree` does, without a process."""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from typing import TYPE_CHECKING, Final

from hermes_core.paths import private_folder

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY: Final = "Hermes <hermes@localhost>"
OBJECT_MODE: Final = 0o444


def write_commit(git_folder: Path, tree: str, parent: str, message: bytes) -> str:
    """Store a commit, without a parent if that is empty; returns its ID."""
    signed = f"{IDENTITY} {int(time.time())} +0000"
    head = f"tree {tree}\n" + (f"parent {parent}\n" if parent else "")
    head += f"author {signed}\ncommitter {signed}\n\n"
    body = head.encode() + message
    stored = b"commit %d\0" % len(body) + body
    object_id = hashlib.sha1(stored, usedforsecurity=False).hexdigest()
    _write_object(git_folder / "objects", object_id, zlib.compress(stored, 1))
    return object_id


def _write_object(objects: Path, object_id: str, data: bytes) -> None:
    """Write a loose object in one step; a leftover of a killed process is named as git's."""
    path = private_folder(objects / object_id[:2]) / object_id[2:]
    temporary = objects / f"tmp_obj_{os.getpid()}_{object_id}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, OBJECT_MODE), "wb") as file:
        file.write(data)
    temporary.replace(path)
