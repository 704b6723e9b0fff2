"""Models of permissions."""

from __future__ import annotations

from pydantic import BaseModel

from hermes_dashboard.models.text import Text


class PermissionState(BaseModel):
    """What the agent may do without asking in new conversations."""

    mode: Text
    sandbox: Text
    is_sandbox_available: bool
    problem: Text | None
    rules: list[Text]
