"""The benchmarks run through; what they measure is nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from figures import Figure
from run import BENCHMARKS

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The histories, made when a benchmark first needs them."""
    return tmp_path_factory.mktemp("benchmark-data")


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_quick_run_measures_and_keeps_it_where_told(
    name: str, data: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    done = run("--quick", "--only", name, "--data", data, "--results", results)
    # 1 means that a target was missed, which a busy machine may do.
    assert done.returncode in {0, 1}, done.stderr
    (path,) = results.glob("*.json")
    assert path.stem.split("-")[-1] == name
    result = json.loads(path.read_text("utf-8"))
    assert set(result["machine"]) == {"cpu_count", "python", "sqlite", "fsync_p50_ms"}
    assert result["figures"]
    for figure in result["figures"]:
        assert figure["name"] in done.stdout
        assert figure["value"] >= 0 or "over the command" in figure["name"]


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
