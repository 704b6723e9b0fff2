"""The gateway, hooks, settings, plugins and health as the dashboard tells of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from hermes_dashboard.models.text import Named, NotedMoment, Words

Choosable = bool | int | float | str | list[str]


class PlatformView(BaseModel):
    """A chat platform and its state."""

    name: Words
    state: Words
    detail: Words = ""
    account: Words | None = None
    since: NotedMoment = None


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

    key: Words
    platform: Words
    name: Words
    kind: Words
    session_id: Words
    title: Words | None
    last_active: NotedMoment


class LoggedError(BaseModel):
    """An error."""

    at: float
    level: Words
    logger: Words
    message: Words


class Unsent(BaseModel):
    """A reply that failed permanently, or that may have arrived."""

    id: int
    platform: Words
    target: Words
    state: Words
    error: Words | None
    attempts: int
    created_at: float


class Asking(BaseModel):
    """A user with a pending code."""

    platform: Words
    user_id: Words
    user_name: Words
    asked_at: float


class Allowed(BaseModel):
    """An approved user."""

    platform: Words
    user_id: Words
    user_name: Words
    since: float


class GatewayState(BaseModel):
    """The gateway: state, pending messages, users."""

    is_running: bool
    pid: int | None
    started_at: NotedMoment
    version: Words | None
    platforms: list[PlatformView]
    queue: Queue
    chats: list[Chat]
    errors: list[LoggedError]
    unsent: list[Unsent]
    asking: list[Asking]
    allowed: list[Allowed]


class Pairing(BaseModel):
    """A pairing code that a user received in a chat."""

    platform: Named
    code: Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Paired(BaseModel):
    """The approved user."""

    user_id: Words
    user_name: Words


class Hook(BaseModel):
    """A hook and its plugins."""

    name: str
    help: str
    listeners: list[Words]
    last_error: Words | None


class Hooks(BaseModel):
    """Every hook, and how many boundary events are yet to be delivered."""

    hooks: list[Hook]
    pending: int


class Boundary(BaseModel):
    """A session boundary and its delivery to plugins."""

    event_id: Words
    sequence: int
    session_id: Words
    session_title: Words | None
    kind: Words
    reason: Words
    old_session_id: Words | None
    new_session_id: Words | None
    platform: Words
    at: float
    state: Words
    attempts: int
    error: Words | None


class Boundaries(BaseModel):
    """A page of the boundary log, newest first."""

    items: list[Boundary]
    has_more: bool


class Replayed(BaseModel):
    """The event that is being delivered again."""

    event_id: Words


class SettingItem(BaseModel):
    """A setting with its value and allowed values. Values of secrets are never included."""

    name: str
    section: str
    kind: Literal["bool", "int", "float", "str", "list", "choice"]
    value: Choosable | None
    default: Choosable | None
    help: str
    choices: list[str]
    minimum: float | None
    maximum: float | None
    is_secret: bool
    only_by_hand: bool = Field(description="Read-only here; change it in a terminal.")
    is_set: bool
    origin: Literal["default", "file", "environment"]
    variable: str
    problem: Words | None = Field(description="Why the stored value is invalid.")


class SettingList(BaseModel):
    """All settings and the path of their file."""

    path: Words
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


class PluginItem(BaseModel):
    """A plugin and its state."""

    key: Words
    name: Words
    version: Words
    description: Words
    source: Words
    is_enabled: bool
    is_loaded: bool
    error: Words | None
    hooks: list[str]
    has_dashboard: bool


class PluginList(BaseModel):
    """All plugins."""

    items: list[PluginItem]


class Checked(BaseModel):
    """Result of a check."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: Words


class Health(BaseModel):
    """Result of the quick checks."""

    status: Literal["ok", "attention"]
    checks: list[Checked]
