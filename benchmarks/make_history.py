"""Make a realistic history of a given size: python benchmarks/make_history.py OUT.db …"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from history import PRESETS, Size, make, size_in_bytes


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT.db")
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small")
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--messages", type=int)
    parser.add_argument("--kind", choices=("native", "schema16", "schema26"))
    parser.add_argument("--fts", action="store_true", help="with the original's search tables")
    parser.add_argument("--bytes", type=size_in_bytes, help="about how large, e.g. 1.3GB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--progress", action="store_true")
    return parser.parse_args(arguments)


def size_of(wishes: argparse.Namespace) -> Size:
    """The preset, with what the command line says otherwise."""
    size = PRESETS[wishes.preset]
    if wishes.sessions or wishes.messages:
        sessions = wishes.sessions or max(1, wishes.messages // 52)
        size = Size(sessions, wishes.messages or 52 * sessions)
    if wishes.kind:
        size = replace(size, kind=wishes.kind)
    if wishes.bytes:
        size = replace(size, total_bytes=wishes.bytes)
    return replace(size, has_search=size.has_search or wishes.fts)


def main() -> None:
    """Make it."""
    wishes = parse()
    began = time.perf_counter()

    def report(text: str) -> None:
        if wishes.progress:
            print(f"\r\x1b[K{' '.join(text.split())[:100]}", end="", file=sys.stderr, flush=True)

    made = make(wishes.out, size_of(wishes), wishes.seed, report)
    seconds = time.perf_counter() - began
    report("")
    print(
        f"{made.path}: {made.sessions:,} sessions, {made.messages:,} messages,"
        f" {made.total_bytes / 1e9:.2f} GB in {seconds:.0f} s"
        f" ({made.messages / seconds:,.0f} messages/s)"
    )


if __name__ == "__main__":
    main()
