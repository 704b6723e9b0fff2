"""The data of RPC requests, results and events, as the server sends and clients read them.

The reference and the types of the page are generated from these classes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypedDict, TypeVar, get_args

from hermes_core.messages import Content, ToolCallDict  # noqa: TC001 - read by openrpc

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

T = TypeVar("T")


def parse(kind: type[T], fields: JsonObject) -> T:
    """An object from JSON; fields of a newer server are ignored."""
    names = {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in fields.items() if name in names})


def fields_of(value: object) -> dict[str, Any]:
    """The fields of an object of this module by name; nested objects stay objects."""
    names = [item.name for item in dataclasses.fields(value)]  # type: ignore[arg-type]
    return {name: getattr(value, name) for name in names}


def to_json(value: object) -> object:
    """What JSON has instead of an object of this module; others become text."""
    return fields_of(value) if dataclasses.is_dataclass(value) else str(value)


@dataclass(frozen=True, slots=True)
class AnswerUsageInfo:
    """What an answer took; the cost in dollars is None if no price is known."""

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    cost_status: str
    seconds: float


class DisplayedMessage(TypedDict):
    """A stored message for display; the role `hook` is feedback of a hook to the model."""

    id: int
    role: str
    content: Content
    reasoning: str | None
    tool_name: str | None
    tool_calls: list[ToolCallDict] | str | None
    tool_call_id: str | None
    tool_status: str | None  # of a result: done, failed, denied, or the exit code in words
    timestamp: float
    finish_reason: str | None
    usage: AnswerUsageInfo | None


@dataclass(frozen=True, slots=True)
class UsageView:
    """The tokens of a conversation, and their cost in dollars if known."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The conversation's metadata has changed."""

    kind: ClassVar[str] = "session.info"

    model: str
    window: int
    context_tokens: int
    cwd: str
    mode: str
    sandbox: str
    title: str | None
    running: bool
    stored_session_id: str
    message_count: int
    usage: UsageView

    @classmethod
    def read(cls, fields: JsonObject) -> SessionInfo:
        """The metadata from JSON."""
        usage = fields.get("usage")
        info = parse(cls, fields)
        parsed = parse(UsageView, usage) if isinstance(usage, dict) else UsageView()
        return dataclasses.replace(info, usage=parsed)


@dataclass(frozen=True, slots=True)
class SessionStatus(SessionInfo):
    """An open conversation, and what it does; `session_id` is empty if the client named it."""

    status: str
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A turn starts with this message; `images` are the files of its pictures."""

    kind: ClassVar[str] = "message.start"

    text: str
    images: list[str] = field(default_factory=list)  # the files of its pictures


@dataclass(frozen=True, slots=True)
class MessageAttached:
    """What is attached to the message that has started the turn."""

    kind: ClassVar[str] = "message.attached"

    items: list[str]


@dataclass(frozen=True, slots=True)
class MessageDelta:
    """More of the answer."""

    kind: ClassVar[str] = "message.delta"

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningText:
    """More of the model's reasoning."""

    kind: ClassVar[str] = "reasoning.delta"

    text: str


@dataclass(frozen=True, slots=True)
class MessageComplete:
    """The turn is over and stored; `status` is complete, interrupted or error, `unread` is pending
    input of this client that is returned, `unread_images` are the files of its images; `problem`
    is length, empty, filtered, step_limit, repeated_calls or nothing, `notice` its text.
    """

    kind: ClassVar[str] = "message.complete"

    text: str
    status: str
    error: str | None
    usage: dict[str, int]
    unread: str = ""
    unread_images: list[str] = field(default_factory=list)  # the files of its pictures
    problem: str = ""  # length, empty, filtered, step_limit or repeated_calls
    notice: str = ""  # about the problem


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of the turn is stored; `role` is user, assistant or tool; `usage` is what an answer
    took: tokens, cost and seconds.
    """

    kind: ClassVar[str] = "message.stored"

    message_id: int
    role: str
    usage: AnswerUsageInfo | None = None


@dataclass(frozen=True, slots=True)
class SteerRead:
    """The agent has read the steering input, as one message."""

    kind: ClassVar[str] = "steer.read"

    text: str = ""


@dataclass(frozen=True, slots=True)
class InputWaiting:
    """The input of all clients that waits for the turn has changed."""

    kind: ClassVar[str] = "input.waiting"

    texts: list[str]


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A tool runs."""

    kind: ClassVar[str] = "tool.start"

    tool_id: str
    name: str
    context: str
    args_text: str
    before: str | None = None  # the text that `write_file` replaces


@dataclass(frozen=True, slots=True)
class ToolText:
    """Output of the running tool."""

    kind: ClassVar[str] = "tool.output"

    tool_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolComplete:
    """The result of the tool."""

    kind: ClassVar[str] = "tool.complete"

    tool_id: str
    name: str
    result: str
    duration_s: float
    status: str = "done"  # or failed, denied, or the exit code in words


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """A status message; `kind` is status, retrying, review or continued (another answer of the turn
    follows), `seconds` the time to the next attempt; with `drops_text`, what was streamed of the
    current answer is not part of it.
    """

    kind: ClassVar[str] = "status.update"

    topic: str
    text: str
    seconds: float = 0.0
    drops_text: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """A command needs approval."""

    kind: ClassVar[str] = "approval.request"

    command: str
    description: str
    allow_permanent: bool = False
    folder: str = ""
    rules: list[str] = field(default_factory=list)
    risky_lines: list[int] = field(default_factory=list)
    diff: str = ""
    tool_id: str = ""  # of the call that asks
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class ClarifyQuestion:
    """A question of the agent."""

    kind: ClassVar[str] = "clarify.request"

    question: str
    choices: list[str] = field(default_factory=list)
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class SecretQuestion:
    """A key or a password is needed."""

    kind: ClassVar[str] = "secret.request"

    prompt: str
    env_var: str
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class QuestionClosed:
    """A question was answered or is no longer open."""

    kind: ClassVar[str] = "question.closed"

    request_id: str


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """Another client changed the history; reload it."""

    kind: ClassVar[str] = "session.changed"


@dataclass(frozen=True, slots=True)
class GatewayReady:
    """The first frame."""

    kind: ClassVar[str] = "gateway.ready"

    version: str
    methods: list[str]


@dataclass(frozen=True, slots=True)
class GatewayLeaving:
    """The server is shutting down."""

    kind: ClassVar[str] = "gateway.leaving"


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection to the server is lost; only clients make it."""

    kind: ClassVar[str] = "gateway.gone"


AgentQuestion = ApprovalQuestion | ClarifyQuestion | SecretQuestion
ClientEvent = (
    MessageStart
    | MessageAttached
    | MessageDelta
    | ReasoningText
    | MessageComplete
    | StoredMessage
    | SteerRead
    | InputWaiting
    | ToolStart
    | ToolText
    | ToolComplete
    | StatusUpdate
    | AgentQuestion
    | QuestionClosed
    | SessionInfo
    | SessionChanged
    | GatewayReady
    | GatewayLeaving
    | ConnectionLost
)
EVENT_TYPES: Final[dict[str, type[ClientEvent]]] = {
    kind.kind: kind for kind in get_args(ClientEvent)
}
WIRE_NAMES: Final = {"topic": "kind"}


def payload_of(event: ClientEvent) -> dict[str, object]:
    """The payload of an event on the wire."""
    return {WIRE_NAMES.get(name, name): value for name, value in fields_of(event).items()}


def parse_event(kind: str, payload: JsonObject) -> ClientEvent | None:
    """An event from the wire; None for an unknown kind."""
    if kind == SessionInfo.kind:
        return SessionInfo.read(payload)
    if kind == StatusUpdate.kind:
        topic, drops_text = str(payload.get("kind")), payload.get("drops_text") is True
        seconds = payload.get("seconds")
        pause = float(seconds) if isinstance(seconds, int | float) else 0.0
        return StatusUpdate(topic, str(payload.get("text")), pause, drops_text)
    event_type = EVENT_TYPES.get(kind)
    return None if event_type is None else parse(event_type, payload)


class OpenedQuestion(TypedDict):
    """A pending question, for clients that attach later."""

    type: str
    payload: dict[str, object]


@dataclass(frozen=True, slots=True)
class InflightTurn:
    """The output of a running turn that is not stored yet, and its pending input."""

    asked: str
    text: str
    tools: list[ToolStart]
    questions: list[OpenedQuestion] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, fields: JsonObject) -> InflightTurn:
        """The turn from JSON."""
        turn = parse(cls, fields)
        tools = fields.get("tools")
        items = tools if isinstance(tools, list) else []
        parsed = [parse(ToolStart, tool) for tool in items if isinstance(tool, dict)]
        return dataclasses.replace(turn, tools=parsed)

    def open_questions(self) -> list[ClientEvent]:
        """The pending questions as events."""
        found = (parse_event(item["type"], item["payload"]) for item in self.questions)  # type: ignore[arg-type]
        return [event for event in found if event is not None]


@dataclass(frozen=True, slots=True)
class OpenedState:
    """The state of a conversation when a client attaches to it."""

    session_id: str
    stored_session_id: str
    message_count: int
    messages: list[DisplayedMessage]
    info: SessionInfo
    running: bool
    started_at: float
    inflight: InflightTurn | None
    unread: str
    unread_images: list[str] = field(default_factory=list)
    notice: str = ""  # of a new conversation: a model that was found and not chosen
    resumed: str = ""  # the stored session that was asked for

    @classmethod
    def read(cls, fields: JsonObject) -> OpenedState:
        """The state from JSON."""
        state, info, inflight = parse(cls, fields), fields.get("info"), fields.get("inflight")
        return dataclasses.replace(
            state,
            info=SessionInfo.read(info if isinstance(info, dict) else {}),
            inflight=InflightTurn.read(inflight) if isinstance(inflight, dict) else None,
        )


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A stored conversation in a list."""

    id: str
    title: str | None
    preview: str
    started_at: float
    last_active: float
    message_count: int
    source: str
    cwd: str | None


@dataclass(frozen=True, slots=True)
class RecentSession(ConversationSummary):
    """The latest conversation."""

    session_id: str


class NoSession(TypedDict):
    """There is no conversation yet."""

    session_id: None


@dataclass(frozen=True, slots=True)
class RelatedSession:
    """A conversation of a family of branches."""

    id: str
    title: str | None
    parent_session_id: str | None
    started_at: float
    message_count: int
    end_reason: str | None


@dataclass(frozen=True, slots=True)
class PromptSummary:
    """A message of the user."""

    message_id: int
    text: str


@dataclass(frozen=True, slots=True)
class PromptVersionsView:
    """A prompt that has other versions in branches; `selected` is the position of this one."""

    message_id: int
    session_ids: list[str]
    selected: int


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a slash command; `type` is exec, send, prefill, copy or leave."""

    type: str
    output: str
    changed: bool
    session_id: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model of a list; prices are dollars per million tokens."""

    name: str
    provider: str
    window: int = 0
    input_price: float | None = None
    output_price: float | None = None

    @property
    def window_text(self) -> str:
        """The context window in thousands of tokens."""
        return f"{round(self.window / 1000):,}k" if self.window else "-"

    @property
    def price_text(self) -> str:
        """The price of input and output per million tokens."""
        if self.input_price is None or self.output_price is None:
            return "-"
        return f"${self.input_price:g} / ${self.output_price:g}"


@dataclass(frozen=True, slots=True)
class CommandSummary:
    """A slash command."""

    name: str
    hint: str
    help: str
    aliases: list[str] = field(default_factory=list)
    while_busy: bool = False
    choices: list[str] = field(default_factory=list)  # of the first argument, where known


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """What a turn or a restore changed in files; `kind` is turn or restore."""

    number: int
    kind: str
    folder: str
    message_id: int
    started_at: float
    files: int
    about: str


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that a restore would change; with a problem only if `may_force` and forced."""

    path: str
    change: str
    problem: str = ""
    may_force: bool = False


@dataclass(frozen=True, slots=True)
class TodoStep:
    """A step of the agent's list; `status` is pending, active or done."""

    text: str
    status: str


class OpenParams(TypedDict, total=False):
    """Options of a conversation that is created or opened."""

    cwd: str
    model: str
    source: str
    mode: str
    allow: str
    mcp_servers: str
    max_turns: int
    max_output_tokens: int
    effort: str
    close_on_disconnect: bool


class CheckpointChoice(TypedDict, total=False):
    """A checkpoint, a prompt and all later ones, or the last exchanges."""

    number: int
    message_id: int
    count: int
    within_permissions: bool


class RetriedPrompt(TypedDict):
    """A prompt that was sent again."""

    status: str
    text: str


class BranchView(TypedDict):
    """A new branch, and the conversation that it continues."""

    session_id: str
    stored_session_id: str
    parent: str


class CompressionView(TypedDict):
    """Tokens before and after a compression."""

    before: int
    after: int
    summary: str


class DiffView(TypedDict):
    """A unified diff of checkpoints."""

    diff: str
    numbers: list[int]


class RestorePlanView(TypedDict):
    """What a restore would change."""

    files: list[PlannedFile]
    diff: str
    numbers: list[int]


class RestoreOutcome(TypedDict):
    """What a restore has changed; `numbers` are the checkpoints that undo it."""

    restored: list[str]
    refused: list[PlannedFile]
    numbers: list[int]
    output: str


class AttachedImage(TypedDict):
    """An attached image, and how many there are."""

    attached: str
    count: int


class PermissionView(TypedDict):
    """The permission mode, the sandbox and the rules of a conversation."""

    mode: str
    sandbox: str
    problem: str | None
    rules: dict[str, list[str]]


class SlashCompletions(TypedDict):
    """Commands that complete a text from a position on."""

    items: list[str]
    replace_from: int


class ModelsView(TypedDict):
    """Models, and the providers that could not be asked."""

    models: list[ModelSummary]
    problems: list[str]


class SettingView(TypedDict):
    """The value of a setting, and where it comes from."""

    key: str
    value: str
    source: str


class ShellResult(TypedDict):
    """The output of a shell command."""

    stdout: str
    stderr: str
    code: int | None
