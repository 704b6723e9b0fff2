"""Whether a tool call went well: read from its result's structure, not from its words.

An exit code decides where there is one. Without one, an `error` that says something,
`success: false` and an error status mean failure, and so does a traceback at the start of
a line in what a program printed. The word "error" anywhere else means nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from hermes_achievements.classification.tool_kinds import RUNNING_OPERATIONS, SHELL

FINE: Final = 0
ERROR: Final = 256  # an error without an exit code; below it, the exit code itself
TRACEBACK: Final = 512  # added to the others

EXIT_KEYS: Final = ("exit_code", "returncode", "return_code", "exitCode", "exit_status")
BAD_STATUS: Final = frozenset({"error", "failed", "failure", "timeout", "timed_out"})
EXIT_LINE: Final = re.compile(
    rb"^\W{0,3}(?:process )?exit(?:ed)?(?: with)?(?: code| status)?[ :=]+(-?\d{1,5})\W{0,3}$",
    re.MULTILINE | re.IGNORECASE,
)
TRACE_WORDS: Final = b"Traceback (most recent call last)"
TRACE_LINE: Final = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)
NEAR_THE_EDGE: Final = 160


def outcome(content: bytes | None, operation: str) -> int:
    """How the call went whose result is *content*."""
    if not content:
        return FINE
    if content[:1].isspace():
        content = content.lstrip()
    if content[:1] == b"{":
        result = parsed(content)
        if isinstance(result, dict):
            return _of_dict(result, content, operation)
    return _of_text(content, operation)


def parsed(text: bytes | str) -> Any:
    """JSON as Python reads it; None when it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass  # stricter than most writers: lone surrogates, NaN
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_failure(code: int) -> bool:
    """Whether an outcome means that the call failed."""
    return code % TRACEBACK != FINE


def _of_dict(result: dict[str, Any], content: bytes, operation: str) -> int:
    code = _exit_code(result)
    trace = 0
    if TRACE_WORDS in content and operation in RUNNING_OPERATIONS and _has_trace(result):
        trace = TRACEBACK
    if code is not None:
        return _as_code(code) + trace
    if (
        _says_something(result.get("error"))
        or result.get("success") is False
        or _is_bad(result.get("status"))
    ):
        return ERROR + trace
    return ERROR + TRACEBACK if trace else FINE


def _exit_code(result: dict[str, Any]) -> int | None:
    for key in EXIT_KEYS:
        value = result.get(key)
        if type(value) is int or (type(value) is float and value.is_integer()):
            return int(value)
    return None


def _as_code(code: int) -> int:
    """Exit codes as shells see them: 1 to 255, also for numbers of signals."""
    if code == 0:
        return FINE
    return (128 - code if -128 < code < 0 else code) & 255 or 1


def _says_something(error: Any) -> bool:
    return error is not None and error is not False and error not in ("", 0, [], {})


def _is_bad(status: Any) -> bool:
    return isinstance(status, str) and status.lower() in BAD_STATUS


def _has_trace(value: Any) -> bool:
    if isinstance(value, str):
        return TRACE_LINE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_trace(item) for item in value.values())
    return isinstance(value, list) and any(_has_trace(item) for item in value)


def _of_text(content: bytes, operation: str) -> int:
    if operation not in RUNNING_OPERATIONS:
        return FINE
    trace = 0
    if TRACE_WORDS in content and TRACE_LINE.search(content.decode(errors="replace")):
        trace = TRACEBACK
    if operation == SHELL:
        match = EXIT_LINE.search(_edges(content))
        if match is not None:
            return _as_code(int(match.group(1))) + trace
    return ERROR + TRACEBACK if trace else FINE


def _edges(content: bytes) -> bytes:
    """The whole lines near both ends, where tools say how a command ended."""
    if len(content) <= 2 * NEAR_THE_EDGE:
        return content
    head = content[:NEAR_THE_EDGE].rpartition(b"\n")[0]
    tail = content[-NEAR_THE_EDGE:].partition(b"\n")[2]
    return head + b"\n" + tail
