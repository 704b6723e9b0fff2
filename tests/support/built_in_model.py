"""The built-in model for tests; it is downloaded once by `make models`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_agent.local.built_in import MODEL_NAME, BuiltIn

ROOT = Path(__file__).resolve().parents[2]
# A folder with `smollm2`; by default the one that `make models` creates.
CONFIGURED = os.environ.get("HERMES_TEST_MODELS")
MODELS = Path(CONFIGURED) if CONFIGURED else ROOT / ".models" / "models"


def built_in_model() -> BuiltIn:
    """Return the model; skip the test with a reason if it is not installed."""
    model = BuiltIn(MODELS / MODEL_NAME)
    if not model.is_installed:
        pytest.skip(f"the built-in model is not in {MODELS}: `make models` fetches it")
    return model
