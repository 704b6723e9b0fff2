"""`send_file` sends a file to the chat that the agent talks in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from hermes_agent.tools import real_paths
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    parameter,
    reporting_errors,
    resolve_path,
    schema,
    success,
    text,
)
from hermes_agent.tools.files import require_regular_file
from hermes_core.errors import UsageError
from hermes_core.media_store import MAX_FILE_BYTES

if TYPE_CHECKING:
    from hermes_agent.tools.base import ToolContext
    from hermes_agent.tools.files import LimitsFiles
    from hermes_core.json_values import JsonObject

SEND_FILE_TOOL: Final = "send_file"


class SendsFiles(Protocol):
    """Sends files to a chat."""

    def __call__(self, key: str, name: str, content: bytes, caption: str) -> None:
        """Store a file for delivery; the same key is sent once."""


def send_file_tool(limits: LimitsFiles, send: SendsFiles) -> Tool:
    """The tool."""

    def run(arguments: JsonObject, context: ToolContext) -> str:
        path = limits.real_path(resolve_path(text(arguments, "path"), context.cwd), context)
        with os.fdopen(real_paths.open_file(path), "rb") as file:
            facts = require_regular_file(path, os.fstat(file.fileno()))
            if facts.st_size > MAX_FILE_BYTES:
                raise ToolError(f"{path} is larger than {MAX_FILE_BYTES // 1024**2} MB.")
            content = file.read()
        caption = text(arguments, "caption", "")
        name = Path(text(arguments, "path")).name
        try:
            send(f"{context.session_id}:{context.call_id}", name, content, caption)
        except UsageError as error:
            raise ToolError(str(error)) from error
        return success(sent=name, bytes=len(content))

    return Tool(
        SEND_FILE_TOOL,
        "Send a file, image or audio file to the user in this chat.",
        schema("path", path=parameter("string"), caption=parameter("string")),
        reporting_errors(run),
    )
