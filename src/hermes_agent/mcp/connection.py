"""The connection to one MCP server, opened on demand and reopened after a loss.

A dedicated task holds the connection, because the SDK requires that one task opens and
closes it. Everything here runs in the event loop of `server_pool`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.sandbox.runner import limited_command
from hermes_agent.tools import process_groups
from hermes_agent.tools.base import ToolError
from hermes_core.package_installer import Library
from hermes_core.system_programs import program_on_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from mcp import Client
    from mcp.types import CallToolResult, Tool

    from hermes_agent.mcp.config import McpServerConfig
    from hermes_agent.sandbox.policy import SandboxPolicy
    from hermes_agent.tools.process_groups import Watchdog
    from hermes_core.json_values import JsonObject

    # The limits of a server's program in a folder; None for none.
    LimitServer = Callable[[McpServerConfig, Path], SandboxPolicy | None]

SDK: Final = Library(
    "mcp", "MCP", "mcp", Path(__file__).with_name("requirements.lock"), download_mb=12, disk_mb=44
)
CLOSE_SECONDS: Final = 7.0  # the SDK asks, waits two seconds, ends, waits two, kills
EXIT_WAIT_SECONDS: Final = 0.5  # for a program to exit after its input is closed
KILL_WAIT_SECONDS: Final = 1.0
MIN_READ_TIMEOUT_SECONDS: Final = 300.0
STDERR_CHARACTERS: Final = 400
# The SDK does not expose the process it starts, so the process writes its ID.
WRITE_PID_SCRIPT: Final = 'echo $$ > "$0" && exec "$@"'


class OpenConnection(NamedTuple):
    """A working connection and the server's tools."""

    client: Client
    tools: dict[str, Tool]


class McpConnection:
    """Opens, uses and closes the connection to one server."""

    def __init__(
        self,
        server: McpServerConfig,
        cwd: Path,
        watchdog: Watchdog,
        limit: LimitServer = lambda _server, _cwd: None,
    ) -> None:
        self.server = server
        self._cwd = server.cwd or cwd
        self._limit = limit
        self._policy: SandboxPolicy | None = None  # of the running program
        self._watchdog = watchdog
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[OpenConnection] | None = None
        self._close_requested = asyncio.Event()
        self._group: int | None = None
        self._pid_file: Path | None = None  # file with the process ID
        self._stderr = ""

    async def connected(self) -> OpenConnection:
        """The connection, opened if necessary."""
        if self._is_lost():
            await self.close()
        if self._task is None or self._ready is None:
            self._close_requested, self._stderr = asyncio.Event(), ""
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._ready))
        task, ready = self._task, self._ready
        seconds = self.server.connect_seconds
        futures: set[asyncio.Future[Any]] = {task, ready}
        await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not task.done():
            return ready.result()
        reason = _end_reason(task) if task.done() else f"no answer within {seconds:g} s"
        await self.close(task)
        stderr = f" Its error output: {self._stderr}" if self._stderr else ""
        raise ToolError(f"The MCP server {self.server.name} is unavailable: {reason}.{stderr}")

    def _is_lost(self) -> bool:
        """Whether the program ended, or runs under limits that no longer apply."""
        is_over = self._task is not None and self._task.done()
        if self._group is not None and self._has_other_limits():
            return True
        return is_over or (self._group is not None and not process_groups.is_alive(self._group))

    def _has_other_limits(self) -> bool:
        """Whether another mode was chosen since the program was started."""
        now, before = self._limit(self.server, self._cwd), self._policy
        if now is None or before is None:
            return now is not before
        return (now.is_limited, now.has_network, now.writable) != (
            before.is_limited,
            before.has_network,
            before.writable,
        )

    async def call(self, tool: str, arguments: JsonObject) -> CallToolResult:
        """Call a tool; after a lost connection the next call reconnects."""
        client = (await self.connected()).client
        task = self._task
        call = asyncio.create_task(client.call_tool(tool, arguments))
        try:
            await asyncio.wait({call}, timeout=self.server.call_seconds)
        finally:
            is_done = call.done()
            call.cancel()
        name = self.server.name
        if not is_done:
            await asyncio.wait({call}, timeout=KILL_WAIT_SECONDS)
            raise ToolError(f"{name} did not answer within {self.server.call_seconds:g} s.")
        error = call.exception()
        if error is None:
            return call.result()
        if _is_server_error(error):
            raise ToolError(f"{name} returned an error: {_describe(error)}")
        await self.close(task)
        raise ToolError(
            f"The connection to {name} was lost during the call: {_describe(error)}. It is "
            "unknown whether it took effect. The next call reconnects."
        )

    async def close(self, task: asyncio.Task[None] | None = None) -> None:
        """Close the connection and its processes, if *task* still holds it."""
        if self._task is None or (task is not None and task is not self._task):
            return
        task, self._task = self._task, None
        self._close_requested.set()
        if self._ready is None or not self._ready.done():
            task.cancel()
        if not (await asyncio.wait({task}, timeout=EXIT_WAIT_SECONDS))[0]:
            self._terminate()
        if not (await asyncio.wait({task}, timeout=CLOSE_SECONDS))[0]:
            task.cancel()
            await asyncio.wait({task}, timeout=KILL_WAIT_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()  # retrieved, to avoid a warning of the loop

    async def _run(self, ready: asyncio.Future[OpenConnection]) -> None:
        async with AsyncExitStack() as stack:
            if self.server.url:
                client = await self._connect_http(stack)
            else:
                client = await self._connect_stdio(stack)
            tools = await _all_tools(client)
            ready.set_result(OpenConnection(client, {tool.name: tool for tool in tools}))
            await self._close_requested.wait()

    async def _connect_http(self, stack: AsyncExitStack) -> Client:
        import httpx2  # noqa: PLC0415 - loaded only when a server is used
        from mcp import Client  # noqa: PLC0415 - slow to import, and optional
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - as above

        # Calls have their own timeout; this one detects a silent peer.
        read_seconds = max(MIN_READ_TIMEOUT_SECONDS, self.server.call_seconds)
        timeout = httpx2.Timeout(self.server.connect_seconds, read=read_seconds)
        http = httpx2.AsyncClient(headers=dict(self.server.headers), timeout=timeout)
        await stack.enter_async_context(http)
        transport = streamable_http_client(self.server.url, http_client=http)
        return await stack.enter_async_context(Client(transport))

    async def _connect_stdio(self, stack: AsyncExitStack) -> Client:
        from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415 - as above

        program, *arguments = self.server.command
        environment = dict(self.server.env)
        executable = program_on_path(program, path=environment.get("PATH"))
        if executable is None:
            raise ToolError(f"program not found: {program}")
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hermes-mcp-")))
        log = (folder / "stderr").open("w+", encoding="utf-8", errors="replace")
        stderr = stack.enter_context(log)
        stack.callback(self._read_stderr, stderr)
        self._pid_file = folder / "pid"
        stack.push_async_callback(self._end_group, folder / "pid")
        self._policy = self._limit(self.server, self._cwd)
        command = limited_command([executable, *arguments], self._cwd, self._policy)
        parameters = StdioServerParameters(
            command="/bin/sh",
            args=["-c", WRITE_PID_SCRIPT, str(folder / "pid"), *command],
            env=environment,
            cwd=self._cwd,
        )
        client = await stack.enter_async_context(Client(stdio_client(parameters, errlog=stderr)))
        self._group = _read_pid(folder / "pid")
        if self._group is not None:
            self._watchdog.guard(self._group)
        return client

    def _terminate(self) -> None:
        """Terminate a program that does not exit after its input is closed."""
        group = None if self._pid_file is None else _read_pid(self._pid_file)
        if group is not None:
            process_groups.send(group, signal.SIGTERM)

    def _read_stderr(self, stderr: TextIO) -> None:
        """Keep the end of a program's error output for error messages."""
        stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - STDERR_CHARACTERS))
        self._stderr = stderr.read().strip()

    async def _end_group(self, path: Path) -> None:
        """End the remaining processes of the program's group."""
        group = _read_pid(path)
        if self._pid_file == path:  # otherwise a newer connection exists
            self._group = self._pid_file = None
        if group is not None:
            await asyncio.to_thread(process_groups.end, [group], KILL_WAIT_SECONDS)
            self._watchdog.release(group)


def load_sdk() -> str:
    """Import the SDK; returns an error message or an empty text."""
    if not SDK.is_usable():
        return "MCP servers need a library that is not installed. Run `hermes mcp add`."
    try:
        importlib.import_module("mcp")
    except ImportError as error:
        return f"The MCP library cannot be imported: {error}"
    return ""


async def _all_tools(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            return tools


def _read_pid(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdigit() else None


def _end_reason(task: asyncio.Task[None]) -> str:
    error = None if task.cancelled() else task.exception()
    return "it was stopped" if error is None else _describe(error)


def _describe(error: BaseException) -> str:
    """The message of the first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolError):
        return str(error)
    message = str(getattr(error, "message", "") or error).strip().rstrip(".")
    return message or type(error).__name__


def _is_server_error(error: BaseException) -> bool:
    """Whether the server returned an error over a working connection."""
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - as above
    from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR  # noqa: PLC0415 - as above

    # A restarted HTTP server reports an unknown session as an invalid request.
    is_lost = {CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR}
    return isinstance(error, MCPError) and error.code not in is_lost
