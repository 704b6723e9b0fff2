"""JSON text of imported values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from hermes_core.json_values import JsonData


def json_text(value: JsonData) -> str:
    """A value as JSON text, with characters as they are; lone surrogates are escaped."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, default=str)
