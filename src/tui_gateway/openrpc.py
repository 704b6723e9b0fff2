"""The methods and events as an OpenRPC document, for programs that write clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes_core.json_values import JsonObject
    from tui_gateway.methods import Event, Method, Param

VERSION: Final = "1.3.2"
TYPES: Final = {"text": "string", "number": "integer", "yes or no": "boolean"}


def openrpc(methods: Mapping[str, Method], events: Mapping[str, Event]) -> JsonObject:
    """The document; it has no release version, so it changes only with the methods."""
    return {
        "openrpc": VERSION,
        "info": {
            "title": "Hermes, conversations",
            "version": "1",
            "description": "JSON-RPC 2.0 on lines of standard input and output, or on a WebSocket.",
        },
        "methods": [_method(method) for method in methods.values()],
        "x-events": [_event(event) for event in events.values()],
    }


def _method(method: Method) -> JsonObject:
    return {
        "name": method.name,
        "summary": method.help,
        "paramStructure": "by-name",
        "params": [_param(param) for param in method.params],
        "result": {"name": "result", "schema": _object(method.returns)},
    }


def _param(param: Param) -> JsonObject:
    return {
        "name": param.name,
        "required": param.required,
        "schema": {"type": TYPES[param.kind]},
    }


def _event(event: Event) -> JsonObject:
    return {"name": event.name, "summary": event.help, "payload": _object(event.payload)}


def _object(names: Iterable[str]) -> JsonObject:
    return {"type": "object", "properties": {name: {} for name in names}}
