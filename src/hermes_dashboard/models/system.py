"""Models of the gateway, hooks, settings, plugins and health."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from hermes_dashboard.models.text import OptionalTimestamp, Text

SettingValue = bool | int | float | str | list[str]


class PlatformView(BaseModel):
    """A chat platform and its state."""

    name: Text
    state: Text
    detail: Text = ""
    account: Text | None = None
    since: OptionalTimestamp = None


class Queue(BaseModel):
    """Messages that are not settled."""

    waiting: int
    handling: int
    owed: int
    ambiguous: int
    failed: int
    oldest_waiting_at: float | None


class Chat(BaseModel):
    """A place and its conversation."""

    key: Text
    platform: Text
    name: Text
    kind: Text
    session_id: Text
    title: Text | None
    last_active: OptionalTimestamp


class LoggedError(BaseModel):
    """An error."""

    at: float
    level: Text
    logger: Text
    message: Text


class Unsent(BaseModel):
    """A reply that failed permanently, or that may have arrived."""

    id: int
    platform: Text
    target: Text
    state: Text
    error: Text | None
    attempts: int
    created_at: float


class Quarantined(BaseModel):
    """A message or update that could not be handled; an update cannot be retried."""

    id: int
    platform: Text
    content: Text
    error: Text | None
    received_at: float
    can_retry: bool


class GatewayChange(BaseModel):
    """The result of starting, stopping or restarting the gateway."""

    message: Text


class Asking(BaseModel):
    """A user with a pending code."""

    platform: Text
    user_id: Text
    user_name: Text
    asked_at: float


class Allowed(BaseModel):
    """An approved user."""

    platform: Text
    user_id: Text
    user_name: Text
    since: float


class GatewayState(BaseModel):
    """The gateway: state, pending messages, users."""

    is_running: bool
    pid: int | None
    started_at: OptionalTimestamp
    version: Text | None
    platforms: list[PlatformView]
    problems: list[Text]
    queue: Queue
    chats: list[Chat]
    errors: list[LoggedError]
    unsent: list[Unsent]
    quarantined: list[Quarantined]
    asking: list[Asking]
    allowed: list[Allowed]


class NodeView(BaseModel):
    """A process that uses the history, on this or another machine."""

    name: Text
    pid: int
    is_alive: bool
    platforms: list[Text]
    turns: int
    claims: int
    seconds_since_seen: float


class Hook(BaseModel):
    """A hook and its plugins."""

    name: str
    help: str
    listeners: list[Text]
    last_error: Text | None


class Hooks(BaseModel):
    """Every hook, and how many boundary events are yet to be delivered."""

    hooks: list[Hook]
    pending: int


class Boundary(BaseModel):
    """A session boundary and its delivery to plugins."""

    event_id: Text
    sequence: int
    session_id: Text
    session_title: Text | None
    kind: Text
    reason: Text
    old_session_id: Text | None
    new_session_id: Text | None
    platform: Text
    at: float
    state: Text
    attempts: int
    error: Text | None


class Boundaries(BaseModel):
    """A page of the boundary log, newest first."""

    items: list[Boundary]
    has_more: bool


class Replayed(BaseModel):
    """The event that is being delivered again."""

    event_id: Text


class SettingItem(BaseModel):
    """A setting with its value and allowed values. Values of secrets are never included."""

    name: str
    section: str
    kind: Literal["bool", "int", "float", "str", "list", "choice"]
    value: SettingValue | None
    default: SettingValue | None
    help: str
    choices: list[str]
    minimum: float | None
    maximum: float | None
    is_secret: bool
    only_by_hand: bool = Field(
        description="A change takes effect after `hermes dashboard confirm CODE` in a terminal."
    )
    is_set: bool
    origin: Literal["default", "file", "environment"]
    variable: str
    problem: Text | None = Field(description="Why the stored value is invalid.")


class SettingList(BaseModel):
    """All settings and the path of their file."""

    path: Text
    items: list[SettingItem]


class NewValue(BaseModel):
    """The new value of a setting."""

    value: (
        bool
        | int
        | Annotated[float, Field(allow_inf_nan=False)]
        | Annotated[str, StringConstraints(max_length=20_000)]
        | Annotated[list[Annotated[str, StringConstraints(max_length=1000)]], Field(max_length=500)]
    )


class PendingChangeItem(BaseModel):
    """A change that takes effect after its command was run in a terminal."""

    code: str
    kind: Literal[
        "setting", "plugin", "job", "platform", "pairing", "role", "mcp_server", "webhook_route"
    ]
    name: Text
    old: Text = Field(description="The current value; of a secret, whether it is set.")
    new: Text
    command: Text
    state: Literal["pending", "applied"]
    expires_at: float


class PendingChangeList(BaseModel):
    """Changes that wait for a confirmation, and those confirmed a short time ago."""

    items: list[PendingChangeItem]
    command: Text = Field(description="The command that confirms all pending changes, or empty.")


class PluginItem(BaseModel):
    """A plugin and its state."""

    key: Text
    name: Text
    version: Text
    description: Text
    source: Text
    is_enabled: bool
    is_loaded: bool
    error: Text | None
    hooks: list[str]
    has_dashboard: bool


class PluginList(BaseModel):
    """All plugins."""

    items: list[PluginItem]


class Checked(BaseModel):
    """Result of a check."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: Text


class Health(BaseModel):
    """Result of the quick checks."""

    status: Literal["ok", "attention"]
    checks: list[Checked]
