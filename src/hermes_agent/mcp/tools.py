"""`find_tools` and `call_tool`: two small tools for however many the servers have.

The model looks for what it needs and is told about that alone; so what is sent with every
request stays small, and the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.permissions.command_review import Judgement
from hermes_agent.permissions.verdicts import Refuse, RiskFinding
from hermes_agent.tools.arguments import ToolError, answering, schema, takes, text
from hermes_agent.tools.base import Tool, answer, failure

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

    from hermes_agent.mcp.server_pool import McpServers, Offer
    from hermes_agent.tools.base import ToolContext

MAX_CHARACTERS: Final = 60_000


def in_words(result: CallToolResult) -> str:
    """The text of a result; what is no text is described."""
    parts = [_block(one) for one in result.content]
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
    """How many bytes a Base64 text stands for."""
    return len(data) * 3 // 4 - data.count("=", -2)


FIND: Final = "find_tools"
CALL: Final = "call_tool"
DESCRIBED: Final = 10  # tools with their parameters in one answer
FOUND_CHARACTERS: Final = 20_000
DESCRIPTION_CHARACTERS: Final = 600
NAMES_CHARACTERS: Final = 200


def mcp_tools(servers: McpServers) -> list[Tool]:
    """The two tools."""
    names = ", ".join(servers.names())[:NAMES_CHARACTERS]
    return [
        Tool(
            FIND,
            f"Find tools of MCP servers ({names}) by keyword; an empty query lists all names.",
            schema("query", query=takes("string")),
            answering(lambda arguments, context: _find(servers, arguments, context)),
        ),
        Tool(
            CALL,
            "Call a tool that find_tools has found.",
            schema("name arguments", name=takes("string"), arguments=takes("object")),
            answering(lambda arguments, context: _call(servers, arguments, context)),
        ),
    ]


def judged(
    servers: McpServers, arguments: dict[str, Any], context: ToolContext
) -> tuple[str, Judgement] | Refuse:
    """What approvals have to know about a call of `call_tool`.

    A call that cannot be made is refused here already: nobody is asked about it.
    """
    try:
        name, given = _wanted(arguments)
        offer = servers.offer(name, context.cancel)
    except ToolError as error:
        return Refuse(str(error))
    shown = f"{CALL} {name} {json.dumps(given, ensure_ascii=False)}"
    if offer.only_reads:
        return shown, Judgement((), True)
    finding = RiskFinding(f"mcp:{name}", f"calls {name}, which may change things elsewhere")
    return shown, Judgement((finding,), False)


def _find(servers: McpServers, arguments: dict[str, Any], context: ToolContext) -> str:
    query = text(arguments, "query", "")
    survey = servers.survey(context.cancel)
    facts: dict[str, Any] = {}
    if not query.strip():
        facts["names"] = [offer.name for offer in survey.offers]
    else:
        found = _matching(survey.offers, query)
        facts["tools"] = _described(found[:DESCRIBED])
        more = found[len(facts["tools"]) :]
        if more:
            facts["more"] = [offer.name for offer in more]
    if survey.problems:
        facts["unavailable"] = survey.problems
    return answer(**facts)


def _matching(offers: list[Offer], query: str) -> list[Offer]:
    """The offers with any of the words, those with most of them first."""
    words = query.lower().split()

    def score(offer: Offer) -> int:
        name, description = offer.name.lower(), offer.description.lower()
        return sum(2 * (word in name) + (word in description) for word in words)

    found = [offer for offer in offers if score(offer)]
    return sorted(found, key=lambda offer: -score(offer))


def _described(offers: list[Offer]) -> list[dict[str, Any]]:
    """As many as an answer has room for, and always the first."""
    found: list[dict[str, Any]] = []
    room = FOUND_CHARACTERS
    for offer in offers:
        facts = _facts(offer)
        room -= len(json.dumps(facts))
        if found and room < 0:
            break
        found.append(facts)
    return found


def _facts(offer: Offer) -> dict[str, Any]:
    return {
        "name": offer.name,
        "description": offer.description[:DESCRIPTION_CHARACTERS],
        "parameters": offer.parameters,
    }


def _call(servers: McpServers, arguments: dict[str, Any], context: ToolContext) -> str:
    name, given = _wanted(arguments)
    result = servers.call(name, given, context.cancel)
    words = in_words(result)
    return (
        failure(words or "It failed without a message.")
        if result.is_error
        else answer(result=words)
    )


def _wanted(arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments; models like to write the latter as a text."""
    given = arguments.get("arguments")
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            raise ToolError("`arguments` is not valid JSON.") from None
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise ToolError("`arguments` must be an object.")
    return text(arguments, "name").strip(), given
