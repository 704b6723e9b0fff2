"""The gateway, hooks, settings, plugins and health as the dashboard tells of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from hermes_dashboard.models.text import Named, NotedMoment, Words

Choosable = bool | int | float | str | list[str]


class PlatformView(BaseModel):
    """A chat platform, and how it is doing."""

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
    """A place, and the conversation it is having."""

    key: Words
    platform: Words
    name: Words
    kind: Words
    session_id: Words
    title: Words | None
    last_active: NotedMoment


class LoggedError(BaseModel):
    """Something that went wrong."""

    at: float
    level: Words
    logger: Words
    message: Words


class Unsent(BaseModel):
    """A reply that was given up, or of which nobody knows whether it arrived."""

    id: int
    platform: Words
    target: Words
    state: Words
    error: Words | None
    attempts: int
    created_at: float


class Asking(BaseModel):
    """Somebody whose code waits for an approval."""

    platform: Words
    user_id: Words
    user_name: Words
    asked_at: float


class Allowed(BaseModel):
    """Somebody who was let in."""

    platform: Words
    user_id: Words
    user_name: Words
    since: float


class GatewayState(BaseModel):
    """The chat gateway: whether it runs, what waits, who may talk."""

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
    """A code that somebody was given in a chat."""

    platform: Named
    code: Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Paired(BaseModel):
    """Who was let in."""

    user_id: Words
    user_name: Words


class Hook(BaseModel):
    """A hook, and who listens."""

    name: str
    help: str
    listeners: list[Words]
    last_error: Words | None


class Hooks(BaseModel):
    """Every hook, and how many boundary events are yet to be delivered."""

    hooks: list[Hook]
    pending: int


class Boundary(BaseModel):
    """The boundary of a session, and whether plugins have heard of it."""

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
    """A setting: what it is, and what it may be. The value of a secret is never told."""

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
    only_by_hand: bool = Field(description="It is set in a terminal; here it is only shown.")
    is_set: bool
    origin: Literal["default", "file", "environment"]
    variable: str
    problem: Words | None = Field(description="Why what is written cannot be used.")


class SettingList(BaseModel):
    """Every setting, and where they are written."""

    path: Words
    items: list[SettingItem]


class NewValue(BaseModel):
    """What a setting shall be."""

    value: (
        bool
        | int
        | Annotated[float, Field(allow_inf_nan=False)]
        | Annotated[str, StringConstraints(max_length=20_000)]
        | Annotated[list[Annotated[str, StringConstraints(max_length=1000)]], Field(max_length=500)]
    )


class PluginItem(BaseModel):
    """A plugin, and what became of it."""

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
    """Every plugin that is there."""

    items: list[PluginItem]


class Checked(BaseModel):
    """What one check found."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: Words


class Health(BaseModel):
    """Whether everything is sound, as far as a quick look can tell."""

    status: Literal["ok", "attention"]
    checks: list[Checked]
