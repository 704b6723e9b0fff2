"""Fields of a request that Hermes cannot honour: rejected, never ignored.

Sampling parameters such as `temperature` are ignored, because the agent chooses its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway.platforms.api_server.errors import RequestError

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

CODE: Final = "unsupported_parameter"
TOOLS_TEXT: Final = (
    "Hermes runs tools itself and cannot return tool calls to a client. Remove `{name}`."
)
RESULT_TEXT: Final = (
    "Hermes runs tools itself and cannot continue with results of a client's tools. "
    "The last message must be from the user."
)
FORMAT_TEXT: Final = "Only text is supported as the output format. Remove `{name}`."
LAST_TEXT: Final = "The last message must be from the user; answers cannot be continued."
TOOL_ROLES: Final = frozenset({"tool", "function"})
TOOL_ITEMS: Final = frozenset({"function_call_output", "function_call", "item_reference"})
NO_CHOICE: Final = (None, "none", "auto")


def reject_unsupported(body: JsonObject) -> None:
    """RequestError for the first field that would have to be ignored."""
    _reject_tools(body)
    _reject_formats(body)
    if body.get("n") not in {None, 1}:
        raise RequestError("`n` must be 1.", "unsupported_value", param="n")
    for name in ("logprobs", "top_logprobs", "audio", "background", "conversation", "prompt"):
        if body.get(name):
            raise RequestError(f"`{name}` is not supported.", CODE, param=name)


def _reject_tools(body: JsonObject) -> None:
    choice = body.get("tool_choice")
    names = [name for name in ("tools", "functions") if body.get(name) and choice != "none"]
    if choice not in NO_CHOICE:
        names.append("tool_choice")
    if body.get("function_call") not in NO_CHOICE:
        names.append("function_call")
    for name in names:
        raise RequestError(TOOLS_TEXT.format(name=name), CODE, param=name)


def _reject_formats(body: JsonObject) -> None:
    if _format_type(body.get("response_format")) != "text":
        name = "response_format"
        raise RequestError(FORMAT_TEXT.format(name=name), CODE, param=name)
    options = body.get("text")
    if isinstance(options, dict) and _format_type(options.get("format")) != "text":
        raise RequestError(FORMAT_TEXT.format(name="text.format"), CODE, param="text.format")
    if any(item != "text" for item in _list(body.get("modalities"))):
        raise RequestError(FORMAT_TEXT.format(name="modalities"), CODE, param="modalities")


def _format_type(value: Any) -> Any:
    return value.get("type", "text") if isinstance(value, dict) else value or "text"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def reject_trailing(items: list[JsonObject], name: str) -> None:
    """RequestError if the messages end with something else than words of the user."""
    for item in reversed(items):
        role, kind = item.get("role"), item.get("type")
        if role in TOOL_ROLES or kind in TOOL_ITEMS:
            raise RequestError(RESULT_TEXT, "unsupported_value", param=name)
        if role == "assistant":
            raise RequestError(LAST_TEXT, "unsupported_value", param=name)
        if role == "user":
            return
