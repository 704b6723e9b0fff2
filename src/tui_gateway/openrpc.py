"""The methods and events as an OpenRPC document, for programs that write clients.

Types are read from the handlers and from the classes of `protocol`.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import hermes_core.messages
from hermes_core import json_values
from tui_gateway import protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.json_values import JsonObject
    from tui_gateway.methods import Method, Param
    from tui_gateway.protocol import ClientEvent

VERSION: Final = "1.3.2"
JSON_TYPES: Final[dict[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
PARAM_TYPES: Final = {"str": "string", "int": "integer", "bool": "boolean"}
NAMES: Final = {**vars(json_values), **vars(hermes_core.messages), **vars(protocol)}
# Those that a server sends: clients make the others.
EVENTS: Final[dict[str, type[ClientEvent]]] = {
    name: kind for name, kind in protocol.EVENT_TYPES.items() if name != "gateway.gone"
}


class Schemas:
    """JSON schemas of types; classes are described once and referred to."""

    def __init__(self) -> None:
        self.components: dict[str, JsonObject] = {}

    def of(self, kind: Any) -> JsonObject:
        """The schema of a type."""
        if kind in JSON_TYPES:
            return {"type": JSON_TYPES[kind]}
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in {list, tuple}:
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if origin in {types.UnionType, Union}:
            return {"anyOf": [self.of(item) for item in arguments]}
        if dataclasses.is_dataclass(kind) or is_typeddict(kind):
            return self._reference(kind)
        return {}

    def _reference(self, kind: Any) -> JsonObject:
        name = kind.__name__
        if name not in self.components:
            self.components[name] = {}  # it may contain itself
            hints = fields_of_type(kind)
            self.components[name] = {
                "type": "object",
                "description": inspect.cleandoc(kind.__doc__ or ""),
                "properties": {field: self.of(hint) for field, hint in hints.items()},
                "required": sorted(getattr(kind, "__required_keys__", hints)),
            }
        return {"$ref": f"#/components/schemas/{name}"}


def fields_of_type(kind: Any) -> dict[str, Any]:
    """The fields of a class of `protocol` on the wire, with their types."""
    hints = get_type_hints(kind, NAMES)
    if dataclasses.is_dataclass(kind):
        names = [item.name for item in dataclasses.fields(kind)]
        return {protocol.WIRE_NAMES.get(name, name): hints[name] for name in names}
    return hints


def result_type(method: Method) -> Any:
    """What the handler of a method returns."""
    kind: Any = inspect.signature(method.run).return_annotation
    while isinstance(kind, str):  # an alias is text, too
        kind = eval(kind, dict(NAMES))  # noqa: S307 - our own annotations
    return kind


def result_fields(method: Method) -> set[str]:
    """The fields that a result may have."""
    if method.field:
        return {method.field}
    kind = result_type(method)
    if get_origin(kind) is dict:
        return {"openrpc", "info", "methods", "x-events", "components"}  # of this document
    kinds = get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return {name for item in kinds for name in fields_of_type(item)}


def event_fields(name: str) -> set[str]:
    """The fields of the payload of an event."""
    return set(fields_of_type(EVENTS[name]))


def document(methods: Mapping[str, Method]) -> JsonObject:
    """The document; it has no release version, so it changes only with the methods."""
    schemas = Schemas()
    return {
        "openrpc": VERSION,
        "info": {
            "title": "Hermes, conversations",
            "version": "1",
            "description": "JSON-RPC 2.0 on lines of standard input and output, or on a WebSocket.",
        },
        "methods": [_method(method, schemas) for method in methods.values()],
        "x-events": [
            {
                "name": name,
                "summary": inspect.cleandoc(kind.__doc__ or ""),
                "payload": schemas.of(kind),
            }
            for name, kind in EVENTS.items()
        ],
        "components": {"schemas": dict(sorted(schemas.components.items()))},
    }


def _method(method: Method, schemas: Schemas) -> JsonObject:
    found = schemas.of(result_type(method))
    if method.field:
        found = {"type": "object", "properties": {method.field: found}, "required": [method.field]}
    return {
        "name": method.name,
        "summary": method.help,
        "paramStructure": "by-name",
        "params": [_param(param) for param in method.params],
        "result": {"name": "result", "schema": found},
    }


def _param(param: Param) -> JsonObject:
    return {
        "name": param.name,
        "required": param.is_required,
        "schema": {"type": PARAM_TYPES[param.kind]},
    }
