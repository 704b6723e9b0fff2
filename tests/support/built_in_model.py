"""The built-in model, fetched once for all tests, where it could be fetched at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_agent.local.built_in import MODEL_NAME, BuiltIn

ROOT = Path(__file__).resolve().parents[2]
# A folder that has `smollm2` in it; `make models` makes the other one.
CHOSEN = os.environ.get("HERMES_TEST_MODELS")
MODELS = Path(CHOSEN) if CHOSEN else ROOT / ".models" / "models"


def built_in_model() -> BuiltIn:
    """The model; without it the test is skipped and says why."""
    model = BuiltIn(MODELS / MODEL_NAME)
    if not model.is_installed:
        pytest.skip(f"the built-in model is not in {MODELS}: `make models` fetches it")
    return model
