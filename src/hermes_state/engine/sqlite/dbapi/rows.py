"""Rows with column names, and the tracers that make them from apsw's tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_state.engine.sqlite.dbapi.values import CONVERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import apsw

    Tracer = Callable[[apsw.Cursor, tuple[Any, ...]], Any]


class Row:
    """A row whose values are read by index or by column name, ignoring case."""

    __slots__ = ("_names", "_values")

    def __init__(self, cursor: Any, values: tuple[Any, ...]) -> None:
        self._values = values
        self._names = tuple(column[0] for column in cursor.description)

    def keys(self) -> list[str]:
        """The column names."""
        return list(self._names)

    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            return self._values[self._index(key)]
        return self._values[key]

    def _index(self, key: str) -> int:
        wanted = key.lower()
        for index, name in enumerate(self._names):
            if name.lower() == wanted:
                return index
        raise IndexError("No item with that key")

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self._names == other._names and self._values == other._values

    def __hash__(self) -> int:
        return hash((self._names, self._values))

    def __repr__(self) -> str:
        return f"<Row {dict(zip(self._names, self._values, strict=True))!r}>"


def row_tracer(row_factory: Any, detect_types: int) -> Tracer | None:
    """The function that apsw calls for every row; None if rows stay tuples."""
    if not detect_types:
        return None if row_factory is None else _factory_tracer(row_factory)

    def convert(cursor: apsw.Cursor, row: tuple[Any, ...]) -> Any:
        columns = cursor.get_description()
        converted = tuple(
            _converted(value, CONVERSIONS.converter(name, declared, detect_types))
            for value, (name, declared) in zip(row, columns, strict=True)
        )
        return converted if row_factory is None else row_factory(cursor, converted)

    return convert


def _factory_tracer(row_factory: Any) -> Tracer:
    def make(cursor: apsw.Cursor, row: tuple[Any, ...]) -> Any:
        return row_factory(cursor, row)

    return make


def _converted(value: Any, converter: Any) -> Any:
    if converter is None or value is None:
        return value
    return converter(value if isinstance(value, bytes) else str(value).encode())
