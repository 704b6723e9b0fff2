"""Every metric, value and endpoint of achievements is in the reference."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from hermes_achievements.catalogue import ACHIEVEMENT_FIELDS, ACHIEVEMENT_KINDS, DERIVED_VALUES
from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "achievements.md").read_text()
API = ROOT / "plugins" / "hermes-achievements" / "dashboard" / "plugin_api.py"
METRICS = {**COUNTS, **PEAKS, **VARIETY}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_documented_with_its_own_words(name: str) -> None:
    said = inspect.getdoc(METRICS[name])
    assert said
    sentence = " ".join(said.split("\n\n")[0].split())
    assert f"| `{name}` | {sentence} |" in PAGE


def test_every_derived_value_kind_and_field_is_documented() -> None:
    for name in (*DERIVED_VALUES, *ACHIEVEMENT_KINDS, *ACHIEVEMENT_FIELDS):
        assert f"`{name}`" in PAGE, name


def test_every_endpoint_is_documented_and_every_documented_one_exists() -> None:
    spec = importlib.util.spec_from_file_location("documented_plugin_api", API)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    offered = {
        f"{method} {route.path}" for route in module.router.routes for method in route.methods
    }
    documented = set(re.findall(r"^\| `((?:GET|POST) /[^`]*)`", PAGE, flags=re.MULTILINE))
    assert documented == offered
