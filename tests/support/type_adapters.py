"""Builds the validators of the dashboard's routes once per test process.

A dashboard builds one for each parameter and result of its routes, two thirds of the CPU time of
its start, and hundreds of tests start one. A validator has no state; equal ones are shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi._compat import v2
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Hashable


class SharedTypeAdapters:
    """Takes the place of `TypeAdapter` in FastAPI."""

    def __init__(self) -> None:
        self._built: Final[dict[Hashable, TypeAdapter[Any]]] = {}

    def install(self) -> None:
        """Let FastAPI use the shared validators in this process."""
        v2.TypeAdapter = self  # type: ignore[assignment,misc]

    def __call__(self, type_: Any, *, config: Any = None) -> TypeAdapter[Any]:
        """The validator of an annotated type."""
        key = (type_.__origin__, repr(type_.__metadata__), repr(config))
        if key not in self._built:
            self._built[key] = TypeAdapter(type_, config=config)
        return self._built[key]
