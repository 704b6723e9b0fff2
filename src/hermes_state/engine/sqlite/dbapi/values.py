"""Conversion of Python objects to parameters, and of columns to Python objects."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Final

from hermes_state.engine.sqlite.dbapi.errors import ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Callable

PARSE_DECLTYPES: Final = 1
PARSE_COLNAMES: Final = 2


class PrepareProtocol:
    """The protocol that `__conform__` of an adaptable object is asked for."""


class Conversions:
    """Registered adapters by class, and converters by column type."""

    def __init__(self) -> None:
        self.adapters: dict[type, Callable[[Any], Any]] = {
            datetime.datetime: lambda moment: moment.isoformat(" "),
            datetime.date: lambda day: day.isoformat(),
        }
        self.converters: dict[str, Callable[[bytes], Any]] = {
            "DATE": lambda data: datetime.date.fromisoformat(data.decode()),
            "TIMESTAMP": lambda data: datetime.datetime.fromisoformat(data.decode()),
        }

    def adapt(self, value: Any) -> Any:
        """The SQLite value for an object; ProgrammingError if there is none."""
        adapter = self.adapters.get(type(value))
        if adapter is not None:
            return adapter(value)
        conform = getattr(value, "__conform__", None)
        adapted = None if conform is None else conform(PrepareProtocol)
        if adapted is None:
            raise ProgrammingError(f"type {type(value).__name__!r} is not supported as a parameter")
        return adapted

    def converter(self, name: str, declared_type: str | None, detect_types: int) -> Any:
        """The converter of a column; None if its values stay as they are."""
        found = None
        if detect_types & PARSE_COLNAMES and "[" in name:
            found = self.converters.get(name.partition("[")[2].partition("]")[0].upper())
        if found is None and detect_types & PARSE_DECLTYPES and declared_type:
            words = declared_type.replace("(", " ").split()
            found = self.converters.get(words[0].upper()) if words else None
        return found


# One per process: the DB-API registers adapters and converters for all connections.
CONVERSIONS: Final = Conversions()


def register_adapter(kind: type, adapter: Callable[[Any], Any]) -> None:
    """Convert parameters of class *kind* with *adapter*."""
    CONVERSIONS.adapters[kind] = adapter


def register_converter(name: str, converter: Callable[[bytes], Any]) -> None:
    """Convert columns of the declared type *name* with *converter*."""
    CONVERSIONS.converters[name.upper()] = converter


def adapt(value: Any, _protocol: Any = None, *alternative: Any) -> Any:
    """The SQLite value for an object."""
    try:
        return CONVERSIONS.adapt(value)
    except ProgrammingError:
        if alternative:
            return alternative[0]
        raise
