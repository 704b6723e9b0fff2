"""The type of parsed JSON whose structure is not known, and checked access to it."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"
# JSON to be written: its parts are not changed, so their exact types do not matter.
JsonData: TypeAlias = (
    "str | int | float | bool | Sequence[JsonData] | Mapping[str, JsonData] | None"
)


def parse_object(text: str) -> JsonObject | None:
    """The object in a JSON text; None if it is something else or cannot be parsed."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_in(value: JsonObject, name: str, default: str = "") -> str:
    """The text in a field; *default* if it has none."""
    field = value.get(name)
    return field if isinstance(field, str) else default


def number_in(value: JsonObject, name: str, default: int = 0) -> int:
    """The whole number in a field; *default* if it has none."""
    field = value.get(name)
    if type(field) is int:
        return field
    return int(field) if isinstance(field, float) and isfinite(field) else default


def object_in(value: JsonObject, name: str) -> JsonObject:
    """The object in a field; an empty one if it has none."""
    field = value.get(name)
    return field if isinstance(field, dict) else {}


def list_in(value: JsonObject, name: str) -> list[JsonValue]:
    """The list in a field; an empty one if it has none."""
    field = value.get(name)
    return field if isinstance(field, list) else []


def objects_in(value: JsonObject, name: str) -> list[JsonObject]:
    """The objects of a list in a field; other elements are omitted."""
    return [item for item in list_in(value, name) if isinstance(item, dict)]


def whole_characters(text: str) -> str:
    """A text in which both halves of a character are one, and a lone half is U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class CharacterJoiner:
    """Texts of a stream that may be cut within a character."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        """The next text, with the half that the one before ended with."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return text if text.isascii() else whole_characters(text)

    def end(self) -> str:
        """What is left at the end of the stream."""
        rest, self._half = whole_characters(self._half), ""
        return rest


def without_lone_surrogates(value: JsonValue) -> JsonValue:
    """A value whose texts can be encoded: halves of a character are joined or replaced."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list):
        return [without_lone_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            str(without_lone_surrogates(key)): without_lone_surrogates(item)
            for key, item in value.items()
        }
    return value
