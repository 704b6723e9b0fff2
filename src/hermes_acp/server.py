"""The agent side of the Agent Client Protocol, on standard input and output."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.schema import (
    AgentCapabilities,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
)

from acp import PROTOCOL_VERSION, RequestError, run_agent
from hermes_acp.daemon_link import DaemonLink
from hermes_acp.editor_session import (
    INTERNAL_ERROR,
    MODE_OPTION,
    MODEL_OPTION,
    Editor,
    EditorSession,
    SessionRequest,
    mode_state,
    servers_json,
)
from hermes_acp.prompt_content import INVALID_PARAMS, invalid, parse_prompt
from hermes_core import __version__
from hermes_core.command_name import with_command_name
from hermes_core.errors import UsageError
from hermes_core.isolate import attempt_async
from hermes_core.json_values import objects_in, text_in
from tui_gateway.frames import NO_SESSION, NO_STORED_SESSION, NOTHING_TO_DO, RpcError
from tui_gateway.protocol import ConversationSummary, ModelSummary, parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from typing import TypeVar

    from acp.interfaces import Client
    from acp.schema import ClientCapabilities, PromptResponse

    from hermes_acp.editor_session import EditorMcpServer
    from hermes_acp.prompt_content import PromptBlock
    from tui_gateway.protocol import OpenedState

    T = TypeVar("T")

NOT_FOUND: Final = -32002
PAGE_SIZE: Final = 50
TITLE_CHARACTERS: Final = 80
ERROR_CODES: Final = {
    NO_SESSION: NOT_FOUND,
    NO_STORED_SESSION: NOT_FOUND,
    NOTHING_TO_DO: INVALID_PARAMS,
}


class EditorAgent:
    """Hermes as an agent of an editor; the conversations run in the daemon."""

    def __init__(self) -> None:
        self._link = DaemonLink()
        self._client: Client | None = None
        self._capabilities: ClientCapabilities | None = None
        self._sessions: dict[str, EditorSession] = {}
        self._models: list[ModelSummary] = []
        self._tasks: set[asyncio.Task[object]] = set()

    def on_connect(self, conn: Client) -> None:
        """The editor is connected."""
        self._client = conn

    async def close(self) -> None:
        """The editor is gone; running turns continue in the daemon."""
        for session in self._sessions.values():
            session.leave()
        for task in self._tasks:
            task.cancel()
        await self._link.close()

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **kwargs: Any,
    ) -> InitializeResponse:
        """Agree on the version, and declare what is supported."""
        del protocol_version, client_info, kwargs  # there is one version so far
        self._capabilities = client_capabilities
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="hermes", title="Hermes", version=__version__),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    fork=SessionForkCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> None:
        """Nothing to do: the daemon has the keys."""
        del method_id, kwargs

    # Conversations

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: Sequence[EditorMcpServer] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        """Start a conversation."""
        del additional_directories, kwargs
        session = self._session(cwd, mcp_servers)
        self._show(session, await _reported(session.open()))
        return NewSessionResponse(
            session_id=session.id,
            modes=mode_state(session.mode()),
            config_options=list(session.options()),
        )

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Sequence[EditorMcpServer] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> LoadSessionResponse:
        """Open a stored conversation and show its history."""
        del additional_directories, kwargs
        session = self._session(cwd, mcp_servers, session_id)
        opened = await _reported(session.open())
        await session.replay(opened)
        self._show(session, opened)
        return LoadSessionResponse(
            modes=mode_state(session.mode()), config_options=list(session.options())
        )

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: Sequence[EditorMcpServer] | None = None,
        **kwargs: Any,
    ) -> ResumeSessionResponse:
        """Open a stored conversation without showing its history."""
        del additional_directories, kwargs
        session = self._session(cwd, mcp_servers, session_id)
        self._show(session, await _reported(session.open()))
        return ResumeSessionResponse(
            modes=mode_state(session.mode()), config_options=list(session.options())
        )

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: Sequence[EditorMcpServer] | None = None,
        **kwargs: Any,
    ) -> ForkSessionResponse:
        """Open a copy of a conversation; the original stays open where it was."""
        del additional_directories, kwargs
        origin = self._sessions.get(session_id)
        opened_here = None if origin is not None else self._session(cwd, None, session_id)
        parent = origin or opened_here
        assert parent is not None  # noqa: S101 - one of both is
        branch = await _reported(parent.call("session.branch", stay=True))
        session = self._session(cwd, mcp_servers, text_in(branch, "stored_session_id"))
        self._show(session, await _reported(session.open()))
        if opened_here is not None:
            await _reported(opened_here.close())
        return ForkSessionResponse(
            session_id=session.id,
            modes=mode_state(session.mode()),
            config_options=list(session.options()),
        )

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        """The stored conversations, the latest first; of one folder if it is given."""
        del kwargs
        offset = _offset(cursor)
        found: list[SessionInfo] = []
        while len(found) < PAGE_SIZE:
            answer = await _reported(
                self._link.call("session.list", limit=PAGE_SIZE, offset=offset, cwd=cwd or "")
            )
            rows = [parse(ConversationSummary, row) for row in objects_in(answer, "sessions")]
            for row in rows:
                offset += 1
                if cwd is None or row.cwd == cwd:
                    found.append(_listed(row))
                if len(found) == PAGE_SIZE:
                    break
            if len(rows) < PAGE_SIZE:
                return ListSessionsResponse(sessions=found)
        return ListSessionsResponse(sessions=found, next_cursor=str(offset))

    async def close_session(self, session_id: str, **kwargs: Any) -> None:
        """Close a conversation; its turn is interrupted."""
        del kwargs
        session = self._open_session(session_id)
        await _reported(session.close())
        del self._sessions[session_id]

    # Turns

    async def prompt(
        self, session_id: str, prompt: Sequence[PromptBlock], **kwargs: Any
    ) -> PromptResponse:
        """Run a turn; the response when it has ended."""
        del kwargs
        session = self._open_session(session_id)
        return await _reported(session.prompt(parse_prompt(prompt, session.cwd())))

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """Interrupt the turn."""
        del kwargs
        await _reported(self._open_session(session_id).cancel())

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> None:
        """Change the permission mode."""
        del kwargs
        await _reported(self._open_session(session_id).set_mode(mode_id))

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> SetSessionConfigOptionResponse:
        """Change the permission mode or the model."""
        del kwargs
        session = self._open_session(session_id)
        if config_id == MODE_OPTION:
            await _reported(session.set_mode(str(value)))
        elif config_id == MODEL_OPTION:
            await _reported(session.set_model(str(value)))
        else:
            raise invalid(f"Unknown option {config_id!r}. Use {MODE_OPTION} or {MODEL_OPTION}.")
        await _reported(session.refresh())
        return SetSessionConfigOptionResponse(config_options=list(session.options()))

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """No extensions of the protocol."""
        del params
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """No extensions of the protocol."""

    # Parts

    def _session(
        self, cwd: str, servers: Sequence[EditorMcpServer] | None, session_id: str = ""
    ) -> EditorSession:
        if self._client is None:
            raise RequestError(INTERNAL_ERROR, "The connection is not initialized.")
        request = SessionRequest(valid_folder(cwd), servers_json(servers), session_id)
        return EditorSession(Editor(self._client, self._capabilities), self._link, request)

    def _open_session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError(NOT_FOUND, f"Session {session_id} is not open. Load it first.")
        return session

    def _show(self, session: EditorSession, opened: OpenedState) -> None:
        """Send the events of a conversation after the response that names it."""
        before = self._sessions.get(session.id)
        if before is not None:
            before.leave()
        self._sessions[session.id] = session
        session.models = self._models
        session.follow(opened)
        if not self._models:
            task = asyncio.create_task(attempt_async("list models", self._offer_models(session)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _offer_models(self, session: EditorSession) -> None:
        answer = await self._link.call("model.list")
        self._models = [parse(ModelSummary, item) for item in objects_in(answer, "models")]
        await session.offer_models(self._models)


def valid_folder(cwd: str) -> str:
    """The working folder of a conversation; RequestError if it cannot be one."""
    path = Path(cwd)
    if not path.is_absolute():
        raise invalid(f"cwd must be an absolute path: {cwd!r}")
    if not path.is_dir():
        raise invalid(f"cwd is not a folder: {cwd}")
    resolved = path.resolve()
    if resolved == Path(resolved.anchor):
        raise invalid(f"{resolved} cannot be a workspace. Open a project folder in the editor.")
    return str(resolved)


def _offset(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not cursor.isascii() or not cursor.isdigit():
        raise invalid(f"Invalid cursor: {cursor!r}")
    return int(cursor)


def _listed(row: ConversationSummary) -> SessionInfo:
    title = " ".join((row.title or row.preview).split())[:TITLE_CHARACTERS]
    updated = datetime.fromtimestamp(row.last_active, UTC).isoformat(timespec="seconds")
    # Conversations of chats have no folder; the protocol requires one.
    return SessionInfo(
        session_id=row.id, cwd=row.cwd or str(Path.home()), title=title or None, updated_at=updated
    )


async def _reported(work: Awaitable[T]) -> T:
    """Await *work*; an error of the daemon becomes one of the protocol, with its text."""
    try:
        return await work
    except RpcError as error:
        code = ERROR_CODES.get(error.code, INTERNAL_ERROR)
        raise RequestError(code, with_command_name(str(error))) from error


def require_pipes(*handles: int) -> None:
    """Raise UsageError for files: the protocol is a conversation in both directions."""
    if any(stat.S_ISREG(os.fstat(handle).st_mode) for handle in handles):
        raise UsageError(
            "`hermes acp` needs pipes as standard input and output, not files. Editors start it."
        )


def serve() -> None:
    """Serve until the editor closes standard input.

    Standard output carries only the protocol; what programs print goes to standard error.
    """
    require_pipes(sys.stdin.fileno(), sys.stdout.fileno())
    frames_out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    asyncio.run(_serve(frames_out))


async def _serve(frames_out: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=DEFAULT_STDIO_BUFFER_LIMIT_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(frames_out, "wb")
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    agent = EditorAgent()
    try:
        await run_agent(agent, writer, reader, use_unstable_protocol=True)
    finally:
        await agent.close()
