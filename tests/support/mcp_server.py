"""An MCP server of the library as a separate process: over stdio, or over HTTP on loopback.

python mcp_server.py stdio|http [--port N]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("shop", log_level="ERROR")
READS = ToolAnnotations(read_only_hint=True)
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(22)


@server.tool(annotations=READS)
def price(item: str) -> str:
    """Look up what an item costs."""
    return f"{item} costs 3"


@server.tool()
def order(item: str, count: int = 1) -> str:
    """Order an item; it will be delivered."""
    return f"ordered {count} {item}"


@server.tool(annotations=READS)
def fail() -> str:
    """Fail on purpose."""
    raise ToolError("out of stock")


@server.tool(annotations=READS)
def picture() -> Image:
    """Show the shop."""
    return Image(data=PIXEL, format="png")


@server.tool(annotations=READS)
async def sleep(seconds: float) -> str:
    """Take a while."""
    await anyio.sleep(seconds)
    return "slept"


@server.tool(annotations=READS)
def die() -> str:
    """End the server in the middle of a call."""
    os._exit(3)


@server.tool(annotations=READS)
def environment() -> dict[str, str]:
    """Report the server's process IDs, directory and environment."""
    return {
        "pid": str(os.getpid()),
        "parent": str(os.getppid()),
        "cwd": str(Path.cwd()),
        **os.environ,
    }


@server.tool(annotations=READS)
def headers(ctx: Context) -> dict[str, str]:
    """Report the headers of the request."""
    request = ctx.request_context.request
    return dict(request.headers) if request is not None else {}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if options.transport == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=options.port)


if __name__ == "__main__":
    sys.exit(main())
