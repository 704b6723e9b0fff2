"""The benchmarks run through; what they measure is nobody's business here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from figures import Figure
from run import BENCHMARKS
from support.command_line import Finished
from support.fork_server import ForkServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def run() -> Iterator[Callable[..., Finished]]:
    """Runs benchmarks, each as a process; what all of them import is imported once."""
    server = ForkServer(ROOT / "benchmarks")

    def run_benchmarks(*arguments: str | Path) -> Finished:
        code, out, err = server.run([*map(str, arguments)], dict(os.environ), 280, "run")
        return Finished(code, out.decode(), err.decode())

    yield run_benchmarks
    server.close()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The histories, made when a benchmark first needs them."""
    return tmp_path_factory.mktemp("benchmark-data")


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_quick_run_measures_and_keeps_it_where_told(
    name: str, run: Callable[..., Finished], data: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    done = run("--quick", "--only", name, "--data", data, "--results", results)
    # 1 means that a target was missed, which a busy machine may do.
    assert done.code in {0, 1}, done.err
    (path,) = results.glob("*.json")
    assert path.stem.split("-")[-1] == name
    result = json.loads(path.read_text("utf-8"))
    assert set(result["machine"]) == {"cpu_count", "python", "sqlite", "fsync_p50_ms"}
    assert result["figures"]
    for figure in result["figures"]:
        assert figure["name"] in done.out
        is_difference = any(text in figure["name"] for text in ("over the command", "less the"))
        assert figure["value"] >= 0 or is_difference


def test_every_module_with_figures_is_run() -> None:
    folder = ROOT / "benchmarks"
    measuring = {path.stem for path in folder.glob("*.py") if "\ndef measure(" in path.read_text()}
    assert {module.__name__ for module in BENCHMARKS.values()} == measuring


@pytest.mark.parametrize(
    ("figure", "is_met"),
    [
        (Figure("f", 9.0, "ms", 1.0, 10), True),
        (Figure("f", 11.0, "ms", 1.0, 10), False),
        (Figure("f", 3.0, "ms", 2.0, 1.5, "ratio"), True),
        (Figure("f", 3.0, "ms", 2.0, 1.4, "ratio"), False),
        (Figure("f", 3.0, "ms", 2.0, 1.4, "ratio", measured_ratio=1.3), True),
        (Figure("f", 3.0, "ms"), None),
    ],
)
def test_a_target_is_met_or_missed(figure: Figure, is_met: bool | None) -> None:
    assert figure.is_met is is_met
