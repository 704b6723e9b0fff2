"""JSON-RPC 2.0 frames, one object per line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from hermes_core.command_name import with_command_name
from tui_gateway.protocol import payload_of, to_json

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject, JsonValue
    from tui_gateway.protocol import ClientEvent

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
UNKNOWN_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602
CRASHED: Final = -32000
NO_SESSION: Final = 4001
NO_STORED_SESSION: Final = 4007
BUSY: Final = 4009
NOTHING_TO_DO: Final = 4018
LIVE_SESSION: Final = 4023
NO_AGENT: Final = 5032


class RpcError(Exception):
    """A request failed; the message is for the user of the client."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RpcRequest(NamedTuple):
    """A request; without an ID it is a notification and gets no response."""

    id: str | int | None
    method: str
    params: JsonObject


class ErrorDetails(TypedDict):
    """Why a request failed."""

    code: int
    message: str


class EventParams(TypedDict):
    """An event of a conversation."""

    type: str
    session_id: str
    payload: dict[str, object]


class Frame(TypedDict, total=False):
    """A response, or the notification of an event."""

    jsonrpc: str
    id: str | int | None
    result: object
    error: ErrorDetails
    method: str
    params: EventParams | dict[str, JsonValue]


class ReceivedFrame(TypedDict, total=False):
    """A response or the notification of an event, as a client receives it."""

    id: int
    result: object
    error: ErrorDetails
    method: str
    params: ReceivedEvent


class ReceivedEvent(TypedDict):
    """An event, as a client receives it."""

    type: str
    session_id: str
    payload: JsonObject


def parse(line: bytes) -> RpcRequest:
    """Parse a request; RpcError if it is invalid."""
    if len(line) > MAX_FRAME_BYTES:
        raise RpcError(PARSE_ERROR, f"a frame has at most {MAX_FRAME_BYTES} bytes")
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, "invalid JSON") from error
    if not isinstance(document, dict) or document.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "not a JSON-RPC 2.0 request")
    method, params, request_id = (
        document.get("method"),
        document.get("params", {}),
        document.get("id"),
    )
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "`method` must be a string")
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "`params` must be an object")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int | None):
        raise RpcError(INVALID_REQUEST, "`id` must be a string or a number")
    return RpcRequest(request_id, method, params)


def id_of(line: bytes) -> str | int | None:
    """The ID of an otherwise invalid request, if it has one."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    request_id = document.get("id") if isinstance(document, dict) else None
    is_usable = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    return request_id if is_usable else None


def result(request_id: str | int | None, value: object) -> Frame:
    """A success response."""
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(request_id: str | int | None, code: int, message: str) -> Frame:
    """An error response; commands in *message* are printed as the user types them."""
    details: ErrorDetails = {"code": code, "message": with_command_name(message)}
    return {"jsonrpc": "2.0", "id": request_id, "error": details}


def event(session_id: str, event: ClientEvent) -> Frame:
    """An event notification."""
    params: EventParams = {
        "type": event.kind,
        "session_id": session_id,
        "payload": payload_of(event),
    }
    return {"jsonrpc": "2.0", "method": "event", "params": params}


def encode(frame: Frame) -> bytes:
    """A frame as a line of ASCII JSON, so lone surrogates are escaped."""
    return json.dumps(frame, default=to_json).encode() + b"\n"
