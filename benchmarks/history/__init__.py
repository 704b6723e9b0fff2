"""Made-up histories of any size that look like those of people who use Hermes every day.

texts      what is said, in several scripts
plan       how many sessions of which length, and when they begin
rows       one session played through, row by row
layouts    the tables of each kind of file
making     all of it put into a file, fast
"""

from __future__ import annotations

from history.layouts import Kind
from history.making import Made, make
from history.plan import PRESETS, Size, size_in_bytes

__all__ = ["PRESETS", "Kind", "Made", "Size", "make", "size_in_bytes"]
