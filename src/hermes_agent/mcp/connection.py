"""One MCP server's connection: made when it is needed, and made again when it was lost.

A task of its own holds the connection, since the SDK wants it opened and closed by the same
task. Everything here runs in the event loop of `servers`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.tools import process_groups
from hermes_agent.tools.arguments import ToolError
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    from typing import TextIO

    from mcp import Client
    from mcp.types import CallToolResult, Tool

    from hermes_agent.mcp.config import McpServerConfig
    from hermes_agent.tools.watchdog import Watchdog

SDK: Final = Library(
    "mcp", "MCP", "mcp", Path(__file__).with_name("requirements.lock"), download_mb=12, disk_mb=44
)
CLOSE_SECONDS: Final = 7.0  # the SDK asks, waits two seconds, ends, waits two, kills
POLITE_SECONDS: Final = 0.5  # for a program to end by itself when its input does
GRACE_SECONDS: Final = 1.0
SILENT_SECONDS: Final = 300.0
SAID_CHARACTERS: Final = 400
# The SDK tells nobody which process it has started; so the process does.
TELLS_ITS_ID: Final = 'echo $$ > "$0" && exec "$@"'


class Connected(NamedTuple):
    """A connection that works, and the tools that were found at its other end."""

    client: Client
    tools: dict[str, Tool]


class McpConnection:
    """The way to one server."""

    def __init__(self, server: McpServerConfig, cwd: Path, watchdog: Watchdog) -> None:
        self.server = server
        self._cwd = cwd
        self._watchdog = watchdog
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Connected] | None = None
        self._leave = asyncio.Event()
        self._group: int | None = None
        self._told: Path | None = None  # where the program tells its process id
        self._said = ""

    async def connected(self) -> Connected:
        """The connection, made now if there is none."""
        if self._is_lost():
            await self.close()
        if self._task is None or self._ready is None:
            self._leave, self._said = asyncio.Event(), ""
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._hold(self._ready))
        task, ready = self._task, self._ready
        seconds = self.server.connect_seconds
        both: set[asyncio.Future[Any]] = {task, ready}
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not task.done():
            return ready.result()
        reason = _why_it_ended(task) if task.done() else f"no answer within {seconds:g} s"
        await self.close(task)
        said = f" It said: {self._said}" if self._said else ""
        raise ToolError(f"The MCP server {self.server.name} is unavailable: {reason}.{said}")

    def _is_lost(self) -> bool:
        is_over = self._task is not None and self._task.done()
        return is_over or (self._group is not None and not process_groups.is_alive(self._group))

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool; a server that is lost meanwhile is connected again by the next call."""
        client = (await self.connected()).client
        held = self._task
        work = asyncio.create_task(client.call_tool(tool, arguments))
        try:
            await asyncio.wait({work}, timeout=self.server.call_seconds)
        finally:
            is_done = work.done()
            work.cancel()
        name = self.server.name
        if not is_done:
            await asyncio.wait({work}, timeout=GRACE_SECONDS)
            raise ToolError(f"{name} did not answer within {self.server.call_seconds:g} s.")
        error = work.exception()
        if error is None:
            return work.result()
        if _is_an_answer(error):
            raise ToolError(f"{name} returned an error: {_described(error)}")
        await self.close(held)
        raise ToolError(
            f"The connection to {name} was lost during the call: {_described(error)}. It is "
            "unknown whether it took effect. The next call reconnects."
        )

    async def close(self, task: asyncio.Task[None] | None = None) -> None:
        """End the connection, if it is still the one that *task* holds, and its processes."""
        if self._task is None or (task is not None and task is not self._task):
            return
        task, self._task = self._task, None
        self._leave.set()
        if self._ready is None or not self._ready.done():
            task.cancel()
        if not (await asyncio.wait({task}, timeout=POLITE_SECONDS))[0]:
            self._hurry()
        if not (await asyncio.wait({task}, timeout=CLOSE_SECONDS))[0]:
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()  # looked at, or the loop complains

    async def _hold(self, ready: asyncio.Future[Connected]) -> None:
        async with AsyncExitStack() as stack:
            if self.server.url:
                client = await self._to_address(stack)
            else:
                client = await self._to_program(stack)
            tools = await _all_tools(client)
            ready.set_result(Connected(client, {tool.name: tool for tool in tools}))
            await self._leave.wait()

    async def _to_address(self, stack: AsyncExitStack) -> Client:
        import httpx2  # noqa: PLC0415 - loaded only when a server is asked
        from mcp import Client  # noqa: PLC0415 - takes most of a second, and is an extra
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - as above

        # The calls have a limit of their own; this one is for a peer that fell silent.
        silence = max(SILENT_SECONDS, self.server.call_seconds)
        timeout = httpx2.Timeout(self.server.connect_seconds, read=silence)
        http = httpx2.AsyncClient(headers=dict(self.server.headers), timeout=timeout)
        await stack.enter_async_context(http)
        transport = streamable_http_client(self.server.url, http_client=http)
        return await stack.enter_async_context(Client(transport))

    async def _to_program(self, stack: AsyncExitStack) -> Client:
        from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415 - as above

        program, *arguments = self.server.command
        environment = dict(self.server.env)
        found = shutil.which(program, path=environment.get("PATH"))
        if found is None:
            raise ToolError(f"program not found: {program}")
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hermes-mcp-")))
        log = (folder / "stderr").open("w+", encoding="utf-8", errors="replace")
        said = stack.enter_context(log)
        stack.callback(self._listen, said)
        self._told = folder / "pid"
        stack.push_async_callback(self._end_group, folder / "pid")
        parameters = StdioServerParameters(
            command="/bin/sh",
            args=["-c", TELLS_ITS_ID, str(folder / "pid"), found, *arguments],
            env=environment,
            cwd=self.server.cwd or self._cwd,
        )
        client = await stack.enter_async_context(Client(stdio_client(parameters, errlog=said)))
        self._group = _number(folder / "pid")
        if self._group is not None:
            self._watchdog.guard(self._group)
        return client

    def _hurry(self) -> None:
        """Tell a program that goes on without its input to end; nobody waits for it gladly."""
        group = None if self._told is None else _number(self._told)
        if group is not None:
            process_groups.send(group, signal.SIGTERM)

    def _listen(self, said: TextIO) -> None:
        """Keep the last words of a program, for whoever asks why it failed."""
        said.seek(max(0, said.seek(0, os.SEEK_END) - SAID_CHARACTERS))
        self._said = said.read().strip()

    async def _end_group(self, path: Path) -> None:
        """End whatever the program has left behind in its group."""
        group = _number(path)
        if self._told == path:  # else another connection is there already
            self._group = self._told = None
        if group is not None:
            await asyncio.to_thread(process_groups.end, [group], GRACE_SECONDS)
            self._watchdog.release(group)


def load_sdk() -> str:
    """Import the SDK; empty when that worked, else what to do."""
    if not SDK.is_usable():
        return "MCP servers need a library that is not installed. Run: hermes mcp add"
    try:
        importlib.import_module("mcp")
    except ImportError as error:
        return f"the MCP library cannot be imported: {error}"
    return ""


async def _all_tools(client: Client) -> list[Tool]:
    found: list[Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            return found


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdigit() else None


def _why_it_ended(task: asyncio.Task[None]) -> str:
    error = None if task.cancelled() else task.exception()
    return "it was stopped" if error is None else _described(error)


def _described(error: BaseException) -> str:
    """The first cause in words; groups of errors hold one that says something."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolError):
        return str(error)
    words = str(getattr(error, "message", "") or error).strip().rstrip(".")
    return words or type(error).__name__


def _is_an_answer(error: BaseException) -> bool:
    """Whether the server itself has said no, over a connection that still stands."""
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - as above
    from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR  # noqa: PLC0415 - as above

    # An HTTP server that was restarted does not know our session: an invalid request.
    is_lost = {CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR}
    return isinstance(error, MCPError) and error.code not in is_lost
