"""Payloads that no author of a platform's double thought of, made from ordinary ones."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ODD_VALUES: tuple[Any, ...] = (
    None, "", "\ud83d", "x" * 5000, -1, 2**70, 1.5, True, [], [None], {}, {"unknown": [1]},
)  # fmt: skip


def odd_variants(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The payload with each field replaced by odd values, left out, or joined by unknown ones."""
    for number, path in enumerate(_paths(payload)):
        yield _changed(payload, path, lambda parent, key: parent.pop(key))
        for offset in range(3):  # each field gets some of them, all of them occur
            odd = ODD_VALUES[(number * 3 + offset) % len(ODD_VALUES)]
            yield _changed(payload, path, lambda parent, key, odd=odd: parent.update({key: odd}))
    yield {**copy.deepcopy(payload), "field_of_tomorrow": {"a": [1, None]}, "\ud83d": "\udc00"}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields of a payload."""
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        if isinstance(key, str):
            yield (*path, key)
        yield from _paths(item, (*path, key))


def _changed(payload: dict[str, Any], path: tuple[Any, ...], change: Any) -> dict[str, Any]:
    result = copy.deepcopy(payload)
    parent: Any = result
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    return result
