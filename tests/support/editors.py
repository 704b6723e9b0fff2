"""An editor: the client side of the Agent Client Protocol, connected to a real `hermes acp`."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    RequestPermissionResponse,
)

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, text_block
from support.command_line import ACP_MODULES, command, start_program
from support.waiting import PATIENCE_SECONDS, async_wait_until
from tui_gateway import daemon

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from acp.client.connection import ClientSideConnection
    from acp.schema import PromptResponse

    from support.command_line import Process

LIMIT_BYTES = 50_000_000
STDERR = 2


class Editor:
    """Records updates and answers questions; `choices` are the answers to permission requests.

    Without a choice a request waits until the test calls `decide`.
    """

    def __init__(self) -> None:
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.choices: list[str] = []
        self.form_answer = ""
        self.forms: list[str] = []
        self.stdout_lines: list[bytes] = []
        self.agent: ClientSideConnection
        self.process: Process
        self._decision: asyncio.Future[str] | None = None

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, dump(update)))

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        offered = {option.option_id: option.name for option in options}
        self.requests.append({"session": session_id, "call": dump(tool_call), "options": offered})
        if self.choices:
            choice = self.choices.pop(0)
        else:
            self._decision = asyncio.get_running_loop().create_future()
            choice = await self._decision
        if choice not in offered:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=choice)
        return RequestPermissionResponse(outcome=outcome)

    def decide(self, choice: str) -> None:
        assert self._decision is not None
        self._decision.set_result(choice)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append(message)
        return AcceptElicitationResponse(action="accept", content={"answer": self.form_answer})

    # What the tests ask

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [update for _, update in self.updates if update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"].get("text", "") for update in self.of_kind(kind))

    async def text_until(self, part: str, kind: str = "agent_message_chunk") -> None:
        await async_wait_until(lambda: part in self.text(kind))

    async def new(self, folder: Path, **params: Any) -> str:
        return (await self.agent.new_session(cwd=str(folder), mcp_servers=[], **params)).session_id

    async def ask(self, session_id: str, text: str) -> PromptResponse:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.agent.prompt(session_id=session_id, prompt=[text_block(text)])

    async def error(self, work: Any) -> RequestError:
        try:
            await work
        except RequestError as error:
            return error
        raise AssertionError("the request did not fail")

    def kill(self) -> None:
        """End the agent's process as kill -9 does."""
        self.process.kill()


def dump(model: Any) -> dict[str, Any]:
    result: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return result


async def start_agent(
    **environment: str,
) -> tuple[Process, asyncio.StreamWriter, asyncio.StreamReader]:
    """`hermes acp` and its standard streams."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    try:
        streams = (out_write, STDERR)
        process = start_program(
            "hermes_cli", "acp", streams=streams, stdin=in_read, preloaded=ACP_MODULES,
            **environment,
        )  # fmt: skip
    finally:
        os.close(in_read)
        os.close(out_write)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LIMIT_BYTES)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out_read, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(in_write, "wb", 0)
    )
    return process, asyncio.StreamWriter(transport, protocol, None, loop), reader


@asynccontextmanager
async def open_editor(
    capabilities: ClientCapabilities | None = None, **environment: str
) -> AsyncIterator[Editor]:
    """An editor that has started `hermes acp` and initialized the connection.

    The agent finds a running daemon; in the tests with acpx it starts one.
    """
    await asyncio.to_thread(daemon.ensure_running)
    editor = Editor()
    editor.process, stdin, stdout = await start_agent(**environment)
    connection = connect_to_agent(
        editor,  # type: ignore[arg-type]  # it has no files and terminals
        stdin,
        stdout,
        use_unstable_protocol=True,
    )
    try:
        await connection.initialize(
            protocol_version=PROTOCOL_VERSION, client_capabilities=capabilities
        )
        yield editor
    finally:
        await connection.close()
        stdin.close()
        await asyncio.to_thread(editor.process.wait, PATIENCE_SECONDS)


async def raw_exchange(lines: list[dict[str, Any]]) -> tuple[int, list[Any], bytes]:
    """Exit code, parsed lines of stdout and stderr of an agent that gets *lines*."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command("acp"), stdin=pipe, stdout=pipe, stderr=pipe
    )
    data = b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines)
    out, err = await asyncio.wait_for(process.communicate(data), PATIENCE_SECONDS)
    assert process.returncode is not None
    return process.returncode, [json.loads(line) for line in out.splitlines()], err
