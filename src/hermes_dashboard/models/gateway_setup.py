"""Models of the gateway's platforms and people."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from hermes_dashboard.models.system import SettingItem
from hermes_dashboard.models.text import Identifier, Text

RoleName = Literal["owner", "member", "guest"]


class PlatformFormView(BaseModel):
    """A platform: its state, and the form of its credentials and options."""

    name: str
    title: str
    help: str
    is_enabled: bool
    missing: Text = Field(description="what it lacks; empty if nothing")
    library_command: Text = Field(description="installs its library, if that is missing")
    can_test: bool
    fields: list[SettingItem]


class PlatformFormList(BaseModel):
    """The platforms of the gateway."""

    items: list[PlatformFormView]


class PlatformTestView(BaseModel):
    """The result of a connection test."""

    is_ok: bool
    detail: Text


class PersonView(BaseModel):
    """A person or program with access."""

    platform: Text
    user_id: Text
    name: Text
    role: Text
    is_paired: bool
    is_configured: bool = Field(description="named in config.yaml or the environment")
    last_seen: float | None


class PersonList(BaseModel):
    """The people that the gateway knows."""

    items: list[PersonView]


class RoleChange(BaseModel):
    """The new role of a person."""

    role: RoleName


class Pairing(BaseModel):
    """A pairing code that a user received in a chat, and the role to give."""

    platform: Identifier
    code: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    role: Literal["owner", "member"] = "member"
