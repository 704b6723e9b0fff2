"""Classifies the outcome of a tool call from the structure of its result.

An exit code decides. Without one, a non-empty `error`, `success: false`, an error status, or
a traceback at the start of an output line mean failure. The word "error" in other places is
ignored.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import orjson

from hermes_achievements.classification.tool_kinds import RUNNING_OPERATIONS, SHELL

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

OUTCOME_OK: Final = 0
OUTCOME_ERROR: Final = 256  # an error without an exit code; smaller codes are exit codes
TRACEBACK_FLAG: Final = 512  # added to the code

EXIT_CODE_KEYS: Final = ("exit_code", "returncode", "return_code", "exitCode", "exit_status")
EXIT_CODE_KEY_SET: Final = frozenset(EXIT_CODE_KEYS)
FAILURE_STATUSES: Final = frozenset({"error", "failed", "failure", "timeout", "timed_out"})
EXIT_LINE: Final = re.compile(
    rb"^\W{0,3}(?:process )?exit(?:ed)?(?: with)?(?: code| status)?[ :=]+(-?\d{1,5})\W{0,3}$",
    re.MULTILINE | re.IGNORECASE,
)
TRACEBACK_BYTES: Final = b"Traceback (most recent call last)"
TRACEBACK_LINE: Final = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)
EXIT_LINE_EDGE_BYTES: Final = 160
# Each starts outside of a string: the quote after a blank cannot be an escaped one.
SUCCESS_ENDINGS: Final = (b', "exit_code": 0, "error": null}', b', "exit_code": 0}')
WHITESPACE_BYTES: Final = b" \t\n\r\x0b\x0c"


def classify_outcome(content: bytes | None, operation: str) -> int:
    """The outcome code of a tool result."""
    if not content:
        return OUTCOME_OK
    if content[0] in WHITESPACE_BYTES:
        content = content.lstrip()
    if not content.startswith(b"{"):
        return _classify_text(content, operation)
    if operation == SHELL and _is_plain_success(content):
        return OUTCOME_OK
    result = parse_json(content)
    if type(result) is not dict:
        return _classify_text(content, operation)
    return _classify_dict(result, content, operation)


def _is_plain_success(content: bytes) -> bool:
    """Whether the result of a shell command is a success, without parsing it.

    In a JSON object that ends like this, the last exit code is 0. In a text that is not JSON,
    an exit code would have to be in a line of its own near one of the ends.
    """
    return (
        content.endswith(SUCCESS_ENDINGS)
        and content.find(TRACEBACK_BYTES) < 0  # faster than `in`
        and content.find(b"\n", 0, EXIT_LINE_EDGE_BYTES) < 0
        and content.find(b"\n", -EXIT_LINE_EDGE_BYTES) < 0
    )


def parse_json(text: bytes | str) -> Any:
    """Parse JSON; None if it is invalid."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass  # orjson rejects lone surrogates and NaN
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_failure(code: int) -> bool:
    """Whether an outcome code is a failure."""
    return code % TRACEBACK_FLAG != OUTCOME_OK


def _classify_dict(result: JsonObject, content: bytes, operation: str) -> int:
    trace = 0
    if operation in RUNNING_OPERATIONS and TRACEBACK_BYTES in content and _has_trace(result):
        trace = TRACEBACK_FLAG
    if not EXIT_CODE_KEY_SET.isdisjoint(result) and (code := _exit_code(result)) is not None:
        return _shell_code(code) + trace
    # An empty error, such as null, "" or [], is none.
    is_error = result.get("error") or result.get("success") is False
    if is_error or ("status" in result and _is_failure_status(result["status"])):
        return OUTCOME_ERROR + trace
    return OUTCOME_ERROR + TRACEBACK_FLAG if trace else OUTCOME_OK


def _exit_code(result: JsonObject) -> int | None:
    for key in EXIT_CODE_KEYS:
        value = result.get(key)
        if type(value) is int or (type(value) is float and value.is_integer()):
            return int(value)
    return None


def _shell_code(code: int) -> int:
    """The exit code as shells report it: 0 to 255; signals are 128 plus their number."""
    if code == 0:
        return OUTCOME_OK
    return (128 - code if -128 < code < 0 else code) & 255 or 1


def _is_failure_status(status: Any) -> bool:
    return isinstance(status, str) and status.lower() in FAILURE_STATUSES


def _has_trace(value: Any) -> bool:
    if isinstance(value, str):
        return TRACEBACK_LINE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_trace(item) for item in value.values())
    return isinstance(value, list) and any(_has_trace(item) for item in value)


def _classify_text(content: bytes, operation: str) -> int:
    if operation not in RUNNING_OPERATIONS:
        return OUTCOME_OK
    trace = 0
    if TRACEBACK_BYTES in content and TRACEBACK_LINE.search(content.decode(errors="replace")):
        trace = TRACEBACK_FLAG
    if operation == SHELL:
        match = EXIT_LINE.search(_edges(content))
        if match is not None:
            return _shell_code(int(match.group(1))) + trace
    return OUTCOME_ERROR + TRACEBACK_FLAG if trace else OUTCOME_OK


def _edges(content: bytes) -> bytes:
    """The complete lines near both ends, where tools print the exit code."""
    if len(content) <= 2 * EXIT_LINE_EDGE_BYTES:
        return content
    head = content[:EXIT_LINE_EDGE_BYTES].rpartition(b"\n")[0]
    tail = content[-EXIT_LINE_EDGE_BYTES:].partition(b"\n")[2]
    return head + b"\n" + tail
