"""A cheap test whether a setting may be set, without parsing.

Parsing YAML takes longer than listing conversations. A setting that occurs neither in the
environment nor in the text of config.yaml has its default.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from hermes_core.paths import config_path

if TYPE_CHECKING:
    from pathlib import Path


def may_be_set(*names: str) -> bool:
    """Whether any of these settings occurs in the environment or in the text of config.yaml."""
    if any(map(os.environ.get, _variables(names))):
        return True
    path = config_path()
    try:
        status = path.stat()
        return _occurs(names, path, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:  # no file, or an unreadable one, which `config check` reports
        return False


@functools.lru_cache(maxsize=64)
def _variables(names: tuple[str, ...]) -> tuple[str, ...]:
    """The environment variables of settings."""
    return tuple(f"HERMES_{name.replace('.', '_').upper()}" for name in names)


@functools.lru_cache(maxsize=64)
def _occurs(names: tuple[str, ...], path: Path, *_version: int) -> bool:
    """Whether a name occurs in a file, which is read again after a change."""
    text = path.read_bytes()
    return any(name.rpartition(".")[2].encode() in text for name in names)
