"""Models of histories of other agents and their import."""

from __future__ import annotations

from pydantic import BaseModel, Field

from hermes_dashboard.models.text import Text


class AgentHistory(BaseModel):
    """The history of an agent on this machine."""

    agent: Text
    label: Text
    places: list[Text]
    conversations: int
    size_bytes: int
    new: int = Field(description="conversations that are new or have changed since the import")
    imported: int = Field(description="conversations that were imported")
    imported_at: float | None


class ImportProgress(BaseModel):
    """How far the running import is."""

    agent: Text
    units: int
    of_units: int
    read_bytes: int
    of_bytes: int


class ImportResult(BaseModel):
    """What the last import has stored from one agent."""

    agent: Text
    new: int
    extended: int
    messages: int
    copies: int
    deleted: int
    taken: int
    unknown: dict[Text, int]
    failures: dict[Text, Text]


class FollowerState(BaseModel):
    """The process that imports new messages while other agents work."""

    is_running: bool
    failing: dict[Text, Text] = Field(description="agents whose files cannot be imported, and why")


class ImportState(BaseModel):
    """The histories of other agents, and the import that is running or was the last."""

    items: list[AgentHistory]
    is_following: bool = Field(description="whether the setting `import.follow` is on")
    follower: FollowerState
    is_running: bool
    progress: ImportProgress | None
    results: list[ImportResult]


class ImportRequest(BaseModel):
    """The agents to import from; all if the list is empty."""

    agents: list[Text] = Field(default_factory=list, max_length=100)
