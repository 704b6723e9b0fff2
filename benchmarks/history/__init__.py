"""Generated histories of any size that resemble those of daily use.

texts      message texts in several writing systems
plan       number, lengths and start times of sessions
rows       the rows of a session
layouts    the tables of each file format
making     bulk writing of a history to a file
"""

from __future__ import annotations

from history.layouts import Kind
from history.making import GeneratedHistory, make
from history.plan import PRESETS, Size, size_in_bytes

__all__ = ["PRESETS", "GeneratedHistory", "Kind", "Size", "make", "size_in_bytes"]
