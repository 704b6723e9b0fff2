"""All MCP servers of one conversation, in one thread with its own event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from hermes_agent.mcp.connection import CLOSE_SECONDS, McpConnection, load_sdk
from hermes_agent.tools.base import ToolError
from hermes_agent.tools.process_groups import Watchdog

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from mcp.types import CallToolResult, Tool

    from hermes_agent.mcp.config import McpServerConfig
    from hermes_agent.mcp.connection import LimitServer
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonObject

Result = TypeVar("Result")
START_SECONDS: Final = 10.0


class McpServerTool(NamedTuple):
    """A tool of a server, named `server/tool`."""

    name: str
    description: str
    parameters: JsonObject
    only_reads: bool


class McpToolCatalog(NamedTuple):
    """The tools of all servers, and the reasons why servers are unavailable."""

    tools: list[McpServerTool]
    problems: dict[str, str]


class McpServers:
    """The servers; started on demand, all ended by `close`.

    `close` may be called at any time, repeatedly, and from a signal handler: it takes no
    lock of this object, and starting the thread checks afterwards whether it was called.
    """

    def __init__(self, servers: list[McpServerConfig], cwd: Path) -> None:
        # Set before the first connection; without it, programs run without limits.
        self.limit: LimitServer = lambda _server, _cwd: None
        self._servers = {server.name: server for server in servers}
        self._cwd = cwd
        self._watchdog = Watchdog()
        self._connections: dict[str, McpConnection] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._is_closed = False

    def names(self) -> list[str]:
        """The servers' names."""
        return list(self._servers)

    def catalog(self, cancel: Cancel | None = None) -> McpToolCatalog:
        """List the tools of all servers, in parallel."""
        missing = load_sdk()
        if missing:
            return McpToolCatalog([], dict.fromkeys(self._servers, missing))
        return self._wait_for(self._catalog(), cancel)

    def tool(self, name: str, cancel: Cancel | None = None) -> McpServerTool:
        """The tool called *name*; ToolError if it is unknown or its server is unavailable."""
        server, tool = self._split_name(name)
        tools = self._wait_for(self._tools(server), cancel)
        if tool not in tools:
            known = ", ".join(tools) or "none"
            raise ToolError(f"{server} has no tool {tool!r}; it has: {known}.")
        return _server_tool(server, tools[tool])

    def rule_key(self, name: str) -> str:
        """The key of a tool in permission rules."""
        server, tool = self._split_name(name)
        return f"mcp:{self._servers[server].rule_name or server}/{tool}"

    def call(
        self, name: str, arguments: JsonObject, cancel: Cancel | None = None
    ) -> CallToolResult:
        """Call the tool called *name*."""
        server, tool = self._split_name(name)
        return self._wait_for(self._call(server, tool, arguments), cancel)

    def close(self) -> None:
        """End every connection and every process."""
        self._is_closed = True
        thread, loop, stop = self._thread, self._loop, self._stop
        if thread is not None and loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(stop.set)
            thread.join(2 * CLOSE_SECONDS)
        self._watchdog.close()

    def _split_name(self, name: str) -> tuple[str, str]:
        server, _slash, tool = name.partition("/")
        if server not in self._servers or not tool:
            known = ", ".join(self._servers)
            raise ToolError(
                f"{name!r} is not a tool name; expected server/tool with a server of {known}."
            )
        return server, tool

    # In the caller's thread

    def _wait_for(self, work: Coroutine[Any, Any, Result], cancel: Cancel | None) -> Result:
        try:
            loop = self._running_loop()
        except ToolError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        if self._is_closed:
            future.cancel()
        unregister = cancel.on_request(future.cancel) if cancel is not None else None
        try:
            return future.result()
        except (concurrent.futures.CancelledError, asyncio.CancelledError):
            reason = (cancel.reason if cancel is not None else "") or "Hermes is shutting down"
            raise ToolError(f"Stopped: {reason}.") from None
        finally:
            if unregister is not None:
                unregister()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        missing = load_sdk()  # before the loop, so that it does not count as connect time
        if missing:
            raise ToolError(missing)
        with self._lock:
            if self._is_closed:
                raise ToolError("Hermes is shutting down; no new work is started.")
            if self._loop is None:
                started = threading.Event()
                self._thread = threading.Thread(
                    target=lambda: asyncio.run(self._run_loop(started)),
                    name="hermes-mcp",
                    daemon=True,
                )
                self._thread.start()
                started.wait(START_SECONDS)
            if self._loop is None:
                raise ToolError("The MCP server thread did not start.")
            return self._loop

    # In the servers' thread

    async def _run_loop(self, started: threading.Event) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._connections = {
            name: McpConnection(server, self._cwd, self._watchdog, self.limit)
            for name, server in self._servers.items()
            if not server.problem
        }
        started.set()
        if not self._is_closed:
            await self._stop.wait()
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    async def _tools(self, server: str) -> dict[str, Tool]:
        return (await self._connection(server).connected()).tools

    async def _call(self, server: str, tool: str, arguments: JsonObject) -> CallToolResult:
        return await self._connection(server).call(tool, arguments)

    async def _catalog(self) -> McpToolCatalog:
        names = list(self._servers)
        work = (self._tools(name) for name in names)
        results = await asyncio.gather(*work, return_exceptions=True)
        catalog = McpToolCatalog([], {})
        for name, result in zip(names, results, strict=True):
            if isinstance(result, ToolError):
                catalog.problems[name] = str(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                catalog.tools.extend(_server_tool(name, tool) for tool in result.values())
        return catalog

    def _connection(self, server: str) -> McpConnection:
        connection = self._connections.get(server)
        if connection is None:
            raise ToolError(self._servers[server].problem)
        return connection


def _server_tool(server: str, tool: Tool) -> McpServerTool:
    hints = tool.annotations
    return McpServerTool(
        f"{server}/{tool.name}",
        " ".join((tool.description or "").split()),
        tool.input_schema,
        hints is not None and hints.read_only_hint is True,
    )
