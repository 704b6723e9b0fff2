"""Generates a realistic history of a given size: python benchmarks/make_history.py OUT.db …"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from history import PRESETS, Size, make, size_in_bytes


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT.db")
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small")
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--messages", type=int)
    parser.add_argument("--kind", choices=("native", "schema16", "schema26"))
    parser.add_argument("--fts", action="store_true", help="with the search tables of hermes-agent")
    parser.add_argument("--bytes", type=size_in_bytes, help="approximate size, e.g. 1.3GB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--progress", action="store_true")
    return parser.parse_args(arguments)


def size_of(options: argparse.Namespace) -> Size:
    """The preset, changed by the options of the command line."""
    size = PRESETS[options.preset]
    if options.sessions or options.messages:
        sessions = options.sessions or max(1, options.messages // 52)
        size = Size(sessions, options.messages or 52 * sessions)
    if options.kind:
        size = replace(size, kind=options.kind)
    if options.bytes:
        size = replace(size, total_bytes=options.bytes)
    return replace(size, has_search=size.has_search or options.fts)


def main() -> None:
    """Generate the history."""
    options = parse()
    started = time.perf_counter()

    def report(text: str) -> None:
        if options.progress:
            print(f"\r\x1b[K{' '.join(text.split())[:100]}", end="", file=sys.stderr, flush=True)

    history = make(options.out, size_of(options), options.seed, report)
    seconds = time.perf_counter() - started
    report("")
    print(
        f"{history.path}: {history.sessions:,} sessions, {history.messages:,} messages,"
        f" {history.total_bytes / 1e9:.2f} GB in {seconds:.0f} s"
        f" ({history.messages / seconds:,.0f} messages/s)"
    )


if __name__ == "__main__":
    main()
