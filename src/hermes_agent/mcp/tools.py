"""`find_tools` and `call_tool`: two tools for all tools of the servers.

The model searches for tools and gets only the matching descriptions, so that the tool list
in every request stays small and constant.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hermes_agent.permissions.command_review import CommandReview
from hermes_agent.permissions.verdicts import Refuse, RiskFinding
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    failure,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

    from hermes_agent.mcp.server_pool import McpServers, McpServerTool
    from hermes_agent.tools.base import ToolContext
    from hermes_core.json_values import JsonData, JsonObject

MAX_CHARACTERS: Final = 60_000


def result_text(result: CallToolResult) -> str:
    """The text of a result; other content is described."""
    parts = [_block(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = "\n".join(parts)
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[… {len(text) - MAX_CHARACTERS:,} characters cut …]"


def _block(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource_link":
        return f"[link to {block.uri}: {block.name}]"
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        kind = block.resource.mime_type or "data"
        return str(text) if text is not None else f"[{kind} at {block.resource.uri}]"
    return f"[{block.type}, {block.mime_type}, {_bytes(block.data):,} bytes]"


def _bytes(data: str) -> int:
    """The number of bytes of a Base64 text."""
    return len(data) * 3 // 4 - data.count("=", -2)


FIND_TOOL: Final = "find_tools"
CALL: Final = "call_tool"
MAX_DESCRIBED_TOOLS: Final = 10  # with their parameters, per result
MAX_FOUND_CHARACTERS: Final = 20_000
DESCRIPTION_CHARACTERS: Final = 600
NAMES_CHARACTERS: Final = 200


def mcp_tools(servers: McpServers) -> list[Tool]:
    """The two tools."""
    names = ", ".join(servers.names())[:NAMES_CHARACTERS]
    return [
        Tool(
            FIND_TOOL,
            f"Find tools of MCP servers ({names}) by keyword; an empty query lists all names.",
            schema("query", query=parameter("string")),
            reporting_errors(lambda arguments, context: _find(servers, arguments, context)),
        ),
        Tool(
            CALL,
            "Call a tool that find_tools has found.",
            schema("name arguments", name=parameter("string"), arguments=parameter("object")),
            reporting_errors(lambda arguments, context: _call(servers, arguments, context)),
        ),
    ]


def assess_call(
    servers: McpServers, arguments: JsonObject, context: ToolContext
) -> tuple[str, CommandReview] | Refuse:
    """The findings for the approval of a call of `call_tool`.

    An impossible call is refused here, without asking the user.
    """
    try:
        name, call_arguments = _parse_call(arguments)
        tool = servers.tool(name, context.cancel)
    except ToolError as error:
        return Refuse(str(error))
    shown = f"{CALL} {name} {json.dumps(call_arguments, ensure_ascii=False)}"
    if tool.only_reads:
        return shown, CommandReview((), True)
    finding = RiskFinding(
        servers.rule_key(name), f"calls {name}, which may change things elsewhere"
    )
    return shown, CommandReview((finding,), False)


def _find(servers: McpServers, arguments: JsonObject, context: ToolContext) -> str:
    query = text(arguments, "query", "")
    catalog = servers.catalog(context.cancel)
    fields: dict[str, JsonData] = {}
    if not query.strip():
        fields["names"] = [tool.name for tool in catalog.tools]
    else:
        matches = _matching(catalog.tools, query)
        described = _descriptions(matches[:MAX_DESCRIBED_TOOLS])
        fields["tools"] = described
        more = matches[len(described) :]
        if more:
            fields["more"] = [tool.name for tool in more]
    if catalog.problems:
        fields["unavailable"] = catalog.problems
    return success(**fields)


def _matching(tools: list[McpServerTool], query: str) -> list[McpServerTool]:
    """The tools that match any word, best matches first."""
    words = query.lower().split()

    def score(tool: McpServerTool) -> int:
        name, description = tool.name.lower(), tool.description.lower()
        return sum(2 * (word in name) + (word in description) for word in words)

    matches = [tool for tool in tools if score(tool)]
    return sorted(matches, key=lambda tool: -score(tool))


def _descriptions(tools: list[McpServerTool]) -> list[JsonObject]:
    """As many descriptions as fit into a result, at least one."""
    descriptions: list[JsonObject] = []
    budget = MAX_FOUND_CHARACTERS
    for tool in tools:
        fields = _tool_fields(tool)
        budget -= len(json.dumps(fields))
        if descriptions and budget < 0:
            break
        descriptions.append(fields)
    return descriptions


def _tool_fields(tool: McpServerTool) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description[:DESCRIPTION_CHARACTERS],
        "parameters": tool.parameters,
    }


def _call(servers: McpServers, arguments: JsonObject, context: ToolContext) -> str:
    name, call_arguments = _parse_call(arguments)
    result = servers.call(name, call_arguments, context.cancel)
    result_body = result_text(result)
    return (
        failure(result_body or "The tool failed without a message.")
        if result.is_error
        else success(result=result_body)
    )


def _parse_call(arguments: JsonObject) -> tuple[str, JsonObject]:
    """The name and the arguments, which models sometimes send as JSON text."""
    call_arguments = arguments.get("arguments")
    if isinstance(call_arguments, str):
        try:
            call_arguments = json.loads(call_arguments or "{}")
        except ValueError:
            raise ToolError("`arguments` is not valid JSON.") from None
    if call_arguments is None:
        call_arguments = {}
    if not isinstance(call_arguments, dict):
        raise ToolError("`arguments` must be an object.")
    return text(arguments, "name").strip(), call_arguments
