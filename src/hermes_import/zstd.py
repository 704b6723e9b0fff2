"""Zstandard: of the standard library from Python 3.14 on, before that of its backport."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from pathlib import Path


def open_zstd(path: Path) -> zstd.ZstdFile:
    """Open a compressed file for reading."""
    return zstd.open(path, "rb")


def decompress(data: bytes) -> bytes:
    """The content of compressed data."""
    return zstd.decompress(data)
