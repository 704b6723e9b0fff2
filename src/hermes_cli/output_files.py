"""Writes output files atomically, without overwriting others by accident."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core import human_format
from hermes_core.atomic_files import sync_folder
from hermes_core.errors import UsageError
from hermes_core.paths import FILE_MODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes_cli.output import CommandOutput

PROGRESS_DELAY_SECONDS = 1.0


def dated_name(prefix: str, suffix: str) -> str:
    """A name with a timestamp: 'hermes-backup-20260301-101500.zip'."""
    return f"{prefix}-{time.strftime('%Y%m%d-%H%M%S')}{suffix}"


def is_folder(target: str) -> bool:
    """Whether *target* is a folder: it exists as one, or it ends with a slash."""
    return target.endswith("/") or Path(target).is_dir()


def unused_path(folder: Path, name: str) -> Path:
    """*name* in *folder*, with a number if the name is in use."""
    path, number = folder / name, 2
    while path.exists():
        path = folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
        number += 1
    return path


def make_folder(folder: Path) -> None:
    """Create *folder* and its missing parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot create {folder}: {error.strerror or error}.") from error


def write(path: Path, pieces: Iterable[bytes], *, is_replacing: bool) -> int:
    """Write a private file atomically; return its size."""
    if path.exists() and not is_replacing:
        raise UsageError(f"{path} already exists; use --force to replace it.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    size = 0
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, FILE_MODE), "wb") as file:
            for piece in pieces:
                size += file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):  # a component of the path is not a folder
            temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return size


def with_progress(pieces: Iterable[bytes], out: CommandOutput) -> Iterator[bytes]:
    """Pass the pieces on; show progress after a second."""
    began, size = time.monotonic(), 0
    for piece in pieces:
        size += len(piece)
        if time.monotonic() - began > PROGRESS_DELAY_SECONDS:
            out.progress(f"Writing… {human_format.size(size)}")
        yield piece
    out.progress("")
