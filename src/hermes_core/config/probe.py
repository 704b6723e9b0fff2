"""A cheap test whether a setting may be set, without parsing.

Parsing YAML takes longer than listing conversations. A setting that occurs neither in the
environment nor in the text of config.yaml has its default.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from hermes_core.paths import config_path


def may_be_set(*names: str) -> bool:
    """Whether any of these settings occurs in the environment or in the text of config.yaml."""
    if any(os.environ.get(f"HERMES_{name.replace('.', '_').upper()}") for name in names):
        return True
    path = config_path()
    try:
        status = path.stat()
        text = _read(str(path), status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:  # no file, or an unreadable one, which `config check` reports
        return False
    return any(name.rpartition(".")[2].encode() in text for name in names)


@functools.lru_cache(maxsize=4)
def _read(path: str, *_version: int) -> bytes:
    """The content of a file, which is read again after a change."""
    return Path(path).read_bytes()
