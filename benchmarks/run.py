"""Runs all benchmarks and prints a table: `make bench`. Exits with 1 if a target is missed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import appends
import backups
import chats
import checkpoints
import dashboard
import databases
import hints
import imports
import lists
import nodes
import opening
import pages
import sandboxes
import scans
import screens
import search
import sessions_in_memory
import space
import startup
import talks
from surroundings import BenchmarkContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from figures import Figure

FOLDER: Final = Path(__file__).resolve().parent
BENCHMARKS: Final = {
    "lists": lists,
    "appends": appends,
    "space": space,
    "backups": backups,
    "databases": databases,
    "nodes": nodes,
    "search": search,
    "hints": hints,
    "achievements": scans,
    "sandbox": sandboxes,
    "checkpoints": checkpoints,
    "startup": startup,
    "talks": talks,
    "chats": chats,
    "dashboard": dashboard,
    "pages": pages,
    "memory": sessions_in_memory,
    "screens": screens,
    "opening": opening,
    "imports": imports,
}
TABLE_HEAD: Final = ("figure", "value", "baseline", "ratio", "target", "")
STATUS_TEXTS: Final = {True: "ok", False: "MISSED", None: ""}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small histories: check that the benchmarks run"
    )
    parser.add_argument("--only", choices=list(BENCHMARKS), action="append")
    parser.add_argument(
        "--data", type=Path, default=FOLDER / ".data", help="where histories are kept"
    )
    parser.add_argument("--results", type=Path, help="where results are written")
    return parser.parse_args(arguments)


def cells(figure: Figure) -> tuple[str, ...]:
    """The cells of a figure's line in the table."""
    baseline = "" if figure.baseline is None else _number(figure.baseline)
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}x"
    value = f"{_number(figure.value)} {figure.unit}"
    return figure.name, value, baseline, ratio, figure.target, STATUS_TEXTS[figure.is_met]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(rows: Sequence[tuple[str, ...]]) -> None:
    """Print lines as a table."""
    for name, value, baseline, ratio, target, status in rows:
        line = f"{name:<42}{value:>14}{baseline:>11}{ratio:>10}   {target:<15}{status}"
        print(line.rstrip(), flush=True)


def write(folder: Path, name: str, machine: dict[str, Any], figures: list[Figure]) -> None:
    """Write the results of a benchmark."""
    folder.mkdir(parents=True, exist_ok=True)
    date = time.strftime("%Y-%m-%d")
    listed = [figure.as_json() for figure in figures]
    results = {"name": name, "date": date, "machine": machine, "figures": listed}
    text = json.dumps(results, indent=2, ensure_ascii=False) + "\n"
    (folder / f"{date}-{name}.json").write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected benchmarks."""
    options = parse(arguments)
    options.data.mkdir(parents=True, exist_ok=True)
    context = BenchmarkContext(options.data.resolve(), options.quick)
    # A quick run only checks that benchmarks run; its figures are not meaningful.
    results = options.results or (None if options.quick else FOLDER / "results")
    machine = context.machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    show([TABLE_HEAD])
    missed = 0
    for name in options.only or BENCHMARKS:
        figures = BENCHMARKS[name].measure(context)
        show([cells(figure) for figure in figures])
        missed += sum(figure.is_met is False for figure in figures)
        if results is not None:
            write(results, name, machine, figures)
    if missed:
        print(f"{missed} missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
