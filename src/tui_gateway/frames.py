"""Frames: one JSON-RPC 2.0 object on a line. Whatever comes in, what goes out is well formed."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
UNKNOWN_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602
CRASHED: Final = -32000
NO_SESSION: Final = 4001
NO_ID: Final = 4006
NO_STORED_SESSION: Final = 4007
BUSY: Final = 4009
NOTHING_TO_DO: Final = 4018
LIVE_SESSION: Final = 4023
NO_AGENT: Final = 5032


class RpcError(Exception):
    """A request cannot be carried out; the text is for the person at the other end."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RpcRequest(NamedTuple):
    """Something asked for; without an id nobody waits for an answer."""

    id: str | int | None
    method: str
    params: dict[str, Any]


def parse(line: bytes) -> RpcRequest:
    """The request on a line; RpcError says what is wrong with it."""
    if len(line) > MAX_FRAME_BYTES:
        raise RpcError(PARSE_ERROR, f"a frame has at most {MAX_FRAME_BYTES} bytes")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, "invalid JSON") from error
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "not a JSON-RPC 2.0 request")
    method, params, request_id = found.get("method"), found.get("params", {}), found.get("id")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "`method` must be a text")
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "`params` must be an object")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int | None):
        raise RpcError(INVALID_REQUEST, "`id` must be a text or a number")
    return RpcRequest(request_id, method, params)


def id_of(line: bytes) -> str | int | None:
    """The id of a request that could not be read otherwise."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    request_id = found.get("id") if isinstance(found, dict) else None
    is_usable = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    return request_id if is_usable else None


def result(request_id: str | int | None, value: Any) -> dict[str, Any]:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(request_id: str | int | None, code: int, message: str) -> dict[str, Any]:
    """The answer to a request that failed."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


def event(kind: str, session_id: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Something that happened, to whoever listens."""
    params = {"type": kind, "session_id": session_id, "payload": payload}
    return {"jsonrpc": "2.0", "method": "event", "params": params}


def encode(frame: dict[str, Any]) -> bytes:
    """A frame as a line; what UTF-8 cannot carry is escaped."""
    return json.dumps(frame, default=str).encode() + b"\n"
