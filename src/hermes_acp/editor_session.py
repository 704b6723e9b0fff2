"""A conversation that an editor has open: its events become updates, its prompts turns."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from acp.helpers import (
    plan_entry,
    update_agent_message_text,
    update_agent_thought_text,
    update_available_commands,
    update_current_mode,
    update_plan,
    update_user_message_text,
)
from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    ConfigOptionUpdate,
    Cost,
    HttpMcpServer,
    McpServerStdio,
    PromptResponse,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfoUpdate,
    SessionMode,
    SessionModeState,
    UnstructuredCommandInput,
    Usage,
    UsageUpdate,
)

from acp import RequestError
from hermes_acp.prompt_content import attached_files, invalid
from hermes_acp.questions import EditorQuestions
from hermes_acp.tool_calls import ShownCalls
from hermes_agent.permissions.approvals import MODES
from hermes_agent.tools.todo import ACTIVE, DONE, PENDING, TODO_TOOL, parse_call
from hermes_conversation.agent_factory import summarize_call
from hermes_conversation.slash_commands import MODE_HELP
from hermes_core.isolate import attempt_async
from hermes_core.json_values import objects_in
from tui_gateway.frames import NO_SESSION, NO_STORED_SESSION, NOTHING_TO_DO, RpcError
from tui_gateway.protocol import (
    ApprovalQuestion,
    ClarifyQuestion,
    CommandResult,
    CommandSummary,
    ConnectionLost,
    GatewayLeaving,
    MessageComplete,
    MessageDelta,
    MessageStart,
    OpenedState,
    QuestionClosed,
    ReasoningText,
    SecretQuestion,
    SessionChanged,
    SessionInfo,
    StatusUpdate,
    ToolComplete,
    ToolStart,
    ToolText,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from acp.helpers import SessionUpdate
    from acp.interfaces import Client
    from acp.schema import (
        AgentPlanUpdate,
        AvailableCommandsUpdate,
        ClientCapabilities,
        PlanEntryStatus,
        StopReason,
    )

    from hermes_acp.daemon_link import DaemonLink, SessionEvents
    from hermes_acp.prompt_content import PromptContent
    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_core.messages import Content, ToolCallDict
    from tui_gateway.protocol import ClientEvent, DisplayedMessage, ModelSummary

    EditorUpdate = SessionUpdate | UsageUpdate | ConfigOptionUpdate
    from collections.abc import Sequence

    from acp.schema import AcpMcpServer, SseMcpServer

    EditorMcpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


INTERNAL_ERROR: Final = -32603
STOPPED_DAEMON: Final = (
    "The Hermes daemon has stopped. The conversation is saved up to here; send your message again "
    "to continue."
)
STOP_REASONS: Final[dict[str, StopReason]] = {
    "length": "max_tokens",
    "filtered": "refusal",
    "step_limit": "max_turn_requests",
}


class PromptTurn:
    """A prompt that waits for the end of its turn.

    It is queued while a turn of another client runs; `has_started` is true once its own runs.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.has_started = False
        self.is_cancelled = False
        self._ended: asyncio.Future[PromptResponse] = asyncio.get_running_loop().create_future()

    async def response(self) -> PromptResponse:
        """The response to the editor, when the turn has ended."""
        return await self._ended

    def end(self, event: MessageComplete) -> None:
        """The turn has ended."""
        if event.status == "error":
            self.fail(event.error or "The turn failed.")
        elif not self._ended.done():
            self._ended.set_result(_response(event))

    def cancel(self) -> None:
        """The turn did not start before it was cancelled."""
        if not self._ended.done():
            self._ended.set_result(PromptResponse(stop_reason="cancelled"))

    def fail(self, message: str) -> None:
        """The turn ended with an error."""
        if not self._ended.done():
            self._ended.set_exception(RequestError(INTERNAL_ERROR, message))


def _response(event: MessageComplete) -> PromptResponse:
    is_stopped = event.status == "interrupted"
    reason = "cancelled" if is_stopped else STOP_REASONS.get(event.problem, "end_turn")
    return PromptResponse(stop_reason=reason, usage=_usage(event.usage))


def _usage(tokens: dict[str, int]) -> Usage | None:
    """The tokens of the turn."""
    if not tokens:
        return None
    names = ("input", "output", "reasoning", "cache_read", "cache_write")
    sent, received, thought, read, written = (tokens.get(name, 0) for name in names)
    return Usage(
        total_tokens=sent + received + read + written,
        input_tokens=sent,
        output_tokens=received,
        thought_tokens=thought,
        cached_read_tokens=read,
        cached_write_tokens=written,
    )


STATUSES: Final[dict[str, PlanEntryStatus]] = {
    PENDING: "pending",
    ACTIVE: "in_progress",
    DONE: "completed",
}


def plan_of(call: ToolStart) -> AgentPlanUpdate | None:
    """The plan that a call sets; None for other calls and invalid ones."""
    items = parse_call(call.args_text) if call.name == TODO_TOOL else None
    if items is None:
        return None
    return update_plan(plan_entry(item.text, status=STATUSES[item.status]) for item in items)


LOST_RESULT: Final = '{"error": "Interrupted before it could finish."}'


def replay(opened: OpenedState, calls: ShownCalls) -> Iterator[SessionUpdate]:
    """The messages of a conversation, then the output of its running turn."""
    for message in opened.messages:
        if message["role"] == "user":
            yield update_user_message_text(text_of(message["content"]))
        elif message["role"] == "summary":
            yield update_agent_thought_text(text_of(message["content"]))
        elif message["role"] == "assistant":
            yield from _answer(message)
            yield from (plan_of(call) or calls.start(call) for call in calls_of(message))
        elif message["role"] == "tool":
            name, call_id = message["tool_name"] or "", message["tool_call_id"] or ""
            if calls.is_running(call_id):
                text = text_of(message["content"])
                yield calls.finish(ToolComplete(call_id, name, text, 0.0))
    running = () if opened.inflight is None else opened.inflight.tools
    running_ids = {tool.tool_id for tool in running}
    for call in calls.running():
        if call.tool_id not in running_ids:
            yield calls.finish(ToolComplete(call.tool_id, call.name, LOST_RESULT, 0.0))
    yield from _inflight(opened, calls)


def _inflight(opened: OpenedState, calls: ShownCalls) -> Iterator[SessionUpdate]:
    turn = opened.inflight
    if turn is None:
        return
    if turn.asked:
        yield update_user_message_text(turn.asked)
    if turn.text:
        yield update_agent_message_text(turn.text)
    for tool in turn.tools:
        if not calls.is_running(tool.tool_id) and plan_of(tool) is None:
            yield calls.start(tool)


def _answer(message: DisplayedMessage) -> Iterator[SessionUpdate]:
    if message["reasoning"]:
        yield update_agent_thought_text(message["reasoning"])
    text = text_of(message["content"])
    if text:
        yield update_agent_message_text(text)


def calls_of(message: DisplayedMessage) -> list[ToolStart]:
    """The tool calls of a stored answer."""
    calls = message["tool_calls"]
    return [_started(call) for call in calls] if isinstance(calls, list) else []


def _started(call: ToolCallDict) -> ToolStart:
    function = call.get("function")
    name, arguments = (function["name"], function["arguments"]) if function else ("", "")
    tool_id = call.get("id") or call.get("call_id") or ""
    return ToolStart(tool_id, name, summarize_call(name, arguments), arguments)


def text_of(content: Content) -> str:
    """The text of a message; pictures are named."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(str(text) for text in texts if text)
    return str(content or "")


class TypedCommand(NamedTuple):
    """A command that was typed; whether editors have it is for the daemon to say."""

    name: str
    argument: str


async def available(link: DaemonLink, cwd: Path) -> AvailableCommandsUpdate:
    """The commands that an editor offers."""
    return update_available_commands(
        AvailableCommand(
            name=command.name.removeprefix("/"),
            description=command.help,
            input=_input(command.hint),
        )
        for command in await _catalog(link, cwd, "editor")
    )


def _input(hint: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(UnstructuredCommandInput(hint=hint)) if hint else None


async def find(link: DaemonLink, text: str, cwd: Path) -> TypedCommand | None:
    """The command in a prompt; None for other texts, such as paths."""
    if not text.startswith("/"):
        return None
    word, _, argument = text.partition(" ")
    for command in await _catalog(link, cwd, "screen"):
        if word.lower() in {command.name, *command.aliases}:
            name = command.name.removeprefix("/")
            return TypedCommand(name, argument.strip())
    return None


async def _catalog(link: DaemonLink, cwd: Path, surface: str) -> list[CommandSummary]:
    answer = await link.call("commands.catalog", cwd=str(cwd), surface=surface)
    return [parse(CommandSummary, item) for item in objects_in(answer, "commands")]


SOURCE: Final = "acp"
CHANGED_ELSEWHERE: Final = (
    "The history was changed in another window. Load the conversation again to see it.\n"
)
RETURNED_INPUT: Final = "These messages were not sent, because the turn before them ended:\n\n{}"


class Editor(NamedTuple):
    """The editor at the other end."""

    client: Client
    capabilities: ClientCapabilities | None


class SessionRequest(NamedTuple):
    """The conversation that an editor wants to open."""

    cwd: str
    mcp_servers: str  # as JSON
    session_id: str = ""  # empty for a new one


class EditorSession:
    """One open conversation of the editor."""

    def __init__(self, editor: Editor, link: DaemonLink, request: SessionRequest) -> None:
        self.id = request.session_id
        self.models: list[ModelSummary] = []
        self._editor = editor
        self._link = link
        self._request = request
        self._is_new = not request.session_id
        self._live_id = ""
        self._info: SessionInfo | None = None
        self._shown_usage: UsageUpdate | None = None
        self._chosen_model = ""
        self._calls = ShownCalls(Path(request.cwd))
        self._questions = EditorQuestions(editor, self)
        self._turns: list[PromptTurn] = []
        self._is_leaving = False
        self._opening = asyncio.Lock()
        self._follower: asyncio.Task[None] | None = None

    # Opening

    async def open(self) -> OpenedState:
        """Open the conversation in the daemon; its events are kept until `follow`."""
        params: dict[str, JsonValue] = {
            "cwd": self._request.cwd,
            "source": SOURCE,
            "mcp_servers": self._request.mcp_servers,
        }
        opened = OpenedState.read(await self._opened(params))
        self.id = self.id or opened.stored_session_id
        self._live_id, self._info, self._is_leaving = opened.session_id, opened.info, False
        self._calls = ShownCalls(Path(opened.info.cwd))
        return opened

    async def _opened(self, params: dict[str, JsonValue]) -> JsonObject:
        if not self.id:
            return await self._link.call("session.create", **params)
        try:
            return await self._link.call("session.resume", session_id=self.id, **params)
        except RpcError as error:
            if error.code != NO_STORED_SESSION or not self._is_new:
                raise
        # It has no message yet, and the daemon was restarted.
        return await self._link.call("session.create", session_id=self.id, **params)

    async def replay(self, opened: OpenedState) -> None:
        """Show the history, and what the running turn has shown."""
        for update in replay(opened, self._calls):
            await self.show(update)

    def follow(self, opened: OpenedState) -> None:
        """Show events from now on; to be called when the editor knows the conversation."""
        queue = self._link.events(self._live_id)
        self._follower = asyncio.create_task(self._follow(queue, opened))

    async def _follow(self, queue: SessionEvents, opened: OpenedState) -> None:
        await attempt_async("show the state", self._show_state(opened))
        while True:
            event = await queue.get()
            await attempt_async(f"show {event.kind}", self._handle(event))
            if isinstance(event, ConnectionLost):
                return

    async def _show_state(self, opened: OpenedState) -> None:
        """Show what is not in the history: commands, tokens, pending questions."""
        await self.show(await available(self._link, self.cwd()))
        await self._show_info(opened.info)
        if opened.unread:
            await self.show_text(RETURNED_INPUT.format(opened.unread))
        for question in opened.inflight.open_questions() if opened.inflight else ():
            await self._handle(question)

    async def _require_open(self) -> None:
        """Open the conversation again if the daemon was restarted."""
        async with self._opening:
            if not self._live_id:
                self.follow(await self.open())

    def leave(self) -> None:
        """Stop showing the conversation; it stays open in the daemon."""
        if self._follower is not None:
            self._follower.cancel()
        self._questions.cancel_all()
        for turn in self._turns:
            turn.cancel()
        self._link.forget(self._live_id)

    async def close(self) -> None:
        """Close the conversation: its turn is interrupted."""
        if self._live_id:
            await self._link.call("session.close", session_id=self._live_id)
        self.leave()

    async def call(self, method: str, **params: JsonValue) -> JsonObject:
        """Call a method of this conversation, which may have been closed elsewhere."""
        await self._require_open()
        try:
            return await self._link.call(method, session_id=self._live_id, **params)
        except RpcError as error:
            if error.code != NO_SESSION:
                raise
        self._live_id = ""
        await self._require_open()
        return await self._link.call(method, session_id=self._live_id, **params)

    # Prompts

    async def prompt(self, content: PromptContent) -> PromptResponse:
        """Run a turn, or a slash command; the response when it has ended."""
        await self._require_open()
        command = await find(self._link, content.text, self.cwd())
        if command is not None:
            return await self._run_command(command)
        with attached_files(content.images) as paths:
            for path in paths:
                await self.call("image.attach", path=path)
        return await self._run_turn(content.text)

    async def _run_turn(self, text: str) -> PromptResponse:
        turn = PromptTurn(text)
        self._turns.append(turn)
        try:
            await self.call("session.queue", text=text)
            if turn.is_cancelled:  # before the daemon knew the turn
                await self.call("session.interrupt")
            return await turn.response()
        finally:
            self._turns.remove(turn)

    async def _run_command(self, command: TypedCommand) -> PromptResponse:
        try:
            answer = await self.call(
                "command.dispatch", name=command.name, arg=command.argument, surface="editor"
            )
        except RpcError as error:
            if error.code != NOTHING_TO_DO:
                raise
            await self.show_text(str(error))  # the command cannot be used as it was typed
            return PromptResponse(stop_reason="end_turn")
        result = parse(CommandResult, answer)
        if result.output:
            await self.show_text(result.output)
        if result.type == "send":
            return await self._run_turn(result.message)
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self) -> None:
        """Interrupt the running turn."""
        for turn in self._turns:
            turn.is_cancelled = True
        if self._live_id:
            await self._link.call("session.interrupt", session_id=self._live_id)

    # Mode and model

    async def set_mode(self, mode: str) -> None:
        """Change the permission mode."""
        await self.call("session.permissions", mode=mode)

    async def set_model(self, name: str) -> None:
        """Change the model."""
        await self.call("command.dispatch", name="model", arg=name, surface="editor")
        self._chosen_model = name

    async def refresh(self) -> None:
        """Read and show the current state."""
        await self._show_info(SessionInfo.read(await self.call("session.status")))

    def cwd(self) -> Path:
        """The working folder."""
        return Path(self._info.cwd if self._info is not None else self._request.cwd)

    def mode(self) -> str:
        """The permission mode."""
        return self._info.mode if self._info is not None else ""

    def options(self) -> list[SessionConfigOptionSelect]:
        """The options of the conversation."""
        return config_options(self.mode(), self._model(), self.models)

    def _model(self) -> str:
        """The current model by the name that was chosen: it may contain the URL of a server."""
        current = self._info.model if self._info is not None else ""
        is_chosen = self._chosen_model.endswith(current) and bool(current)
        return self._chosen_model if is_chosen else current

    async def offer_models(self, models: list[ModelSummary]) -> None:
        """Show the models that can be chosen."""
        self.models = models
        await self._show_options()

    # Events

    async def show(self, update: EditorUpdate) -> None:
        """Send an update to the editor."""
        await self._editor.client.session_update(self.id, update)

    async def show_text(self, text: str) -> None:
        """Show a text of Hermes as an answer."""
        await self.show(update_agent_message_text(text))

    async def _handle(self, event: ClientEvent) -> None:
        match event:
            case MessageDelta():
                await self.show(update_agent_message_text(event.text))
            case ReasoningText():
                await self.show(update_agent_thought_text(event.text))
            case StatusUpdate():
                if event.drops_text:  # an editor keeps what was shown
                    await self.show_text("\n\n")
                await self.show(update_agent_thought_text(f"{event.text}\n"))
            case SessionChanged():
                await self.show(update_agent_thought_text(CHANGED_ELSEWHERE))
            case ToolStart() | ToolText() | ToolComplete():
                await self._handle_call(event)
            case ApprovalQuestion() | ClarifyQuestion() | SecretQuestion():
                self._questions.ask(event, self._calls)
            case QuestionClosed():
                self._questions.cancel(event.request_id)
            case SessionInfo():
                await self._show_info(event)
            case _:
                await self._handle_turn(event)

    async def _handle_call(self, event: ToolStart | ToolText | ToolComplete) -> None:
        if isinstance(event, ToolStart):
            await self.show(plan_of(event) or self._calls.start(event))
        elif isinstance(event, ToolComplete):
            if self._calls.is_running(event.tool_id):
                await self.show(self._calls.finish(event))
        else:
            update = self._calls.add_output(event)
            if update is not None:
                await self.show(update)

    async def _handle_turn(self, event: ClientEvent) -> None:
        """The start and the end of turns, and of the daemon."""
        if isinstance(event, MessageStart):
            await self._start_turn(event)
        elif isinstance(event, MessageComplete):
            await self._end_turn(event)
        elif isinstance(event, GatewayLeaving):
            self._is_leaving = True
        elif isinstance(event, ConnectionLost):
            self._live_id = ""
            self._questions.cancel_all()
            for turn in self._turns:
                turn.fail(STOPPED_DAEMON)

    async def _start_turn(self, event: MessageStart) -> None:
        waiting = (turn for turn in self._turns if not turn.has_started)
        own = next((turn for turn in waiting if turn.text == event.text), None)
        if own is not None:
            own.has_started = True
        else:  # of another client
            await self.show(update_user_message_text(event.text))

    async def _end_turn(self, event: MessageComplete) -> None:
        if event.notice:
            await self.show_text(f"\n\n{event.notice}")
        if not self._is_leaving:
            await attempt_async("show the state", self.refresh())
        for turn in self._turns:
            if self._is_leaving:
                turn.fail(STOPPED_DAEMON)
            elif turn.has_started:
                turn.end(event)
            elif turn.text in event.unread:
                turn.cancel()

    async def _show_info(self, info: SessionInfo) -> None:
        before, self._info = self._info, info
        if before is None or before.title != info.title:
            await self.show(
                SessionInfoUpdate(session_update="session_info_update", title=info.title)
            )
        if before is not None and before.mode != info.mode:
            await self.show(update_current_mode(info.mode))
        if before is not None and (before.mode, before.model) != (info.mode, info.model):
            await self._show_options()
        await self._show_usage(info)

    async def _show_usage(self, info: SessionInfo) -> None:
        cost = info.usage.cost_usd
        update = UsageUpdate(
            session_update="usage_update",
            used=info.context_tokens,
            size=info.window,
            cost=None if cost is None else Cost(amount=cost, currency="USD"),
        )
        if info.context_tokens and update != self._shown_usage:
            self._shown_usage = update
            await self.show(update)

    async def _show_options(self) -> None:
        update = ConfigOptionUpdate(
            session_update="config_option_update", config_options=list(self.options())
        )
        await self.show(update)


MODE_OPTION: Final = "mode"
MODEL_OPTION: Final = "model"


def mode_state(mode: str) -> SessionModeState:
    """The modes, and the current one."""
    modes = [
        SessionMode(id=name, name=name.capitalize(), description=MODE_HELP[name]) for name in MODES
    ]
    return SessionModeState(current_mode_id=mode, available_modes=modes)


def config_options(
    mode: str, model: str, models: Sequence[ModelSummary]
) -> list[SessionConfigOptionSelect]:
    """The mode and the model as options."""
    mode_values = [
        SessionConfigSelectOption(value=name, name=name.capitalize(), description=MODE_HELP[name])
        for name in MODES
    ]
    known = [
        SessionConfigSelectOption(value=item.name, name=shown_name(item), description=item.provider)
        for item in models
    ]
    if model not in {item.name for item in models}:
        known.insert(0, SessionConfigSelectOption(value=model, name=model))
    return [
        SessionConfigOptionSelect(
            id=MODE_OPTION, name="Permissions", category="mode", type="select",
            current_value=mode, options=mode_values,
        ),
        SessionConfigOptionSelect(
            id=MODEL_OPTION, name="Model", category="model", type="select",
            current_value=model, options=known,
        ),
    ]  # fmt: skip


def shown_name(model: ModelSummary) -> str:
    """The name of a model without the URL of its server."""
    return model.name.rpartition("#")[2]


def servers_json(servers: Sequence[EditorMcpServer] | None) -> str:
    """The servers as the daemon reads them; empty for none."""
    return json.dumps([_server(server) for server in servers]) if servers else ""


def _server(server: EditorMcpServer) -> JsonObject:
    if isinstance(server, McpServerStdio):
        return {
            "name": server.name,
            "command": server.command,
            "args": list(server.args),
            "env": {variable.name: variable.value for variable in server.env},
        }
    if isinstance(server, HttpMcpServer):
        headers: JsonObject = {header.name: header.value for header in server.headers}
        return {"name": server.name, "url": server.url, "headers": headers}
    raise invalid(f"The MCP server {server.name} has an unsupported transport; use stdio or HTTP.")
