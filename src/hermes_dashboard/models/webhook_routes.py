"""Models of webhook routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from hermes_dashboard.models.text import Text

ChatMode = Literal["per-delivery", "fixed"]
Prompt = Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)]
Variable = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
Url = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]
Secret = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]


class WebhookRouteItem(BaseModel):
    """A route; secrets and the password of the URL are not shown."""

    name: Text
    path: Text = Field(description="the path of the gateway's HTTP server that programs post to")
    prompt: Text
    secret_env: Text = Field(description="the variable with the secret that signs deliveries")
    has_secret: bool
    deliver_url: Text = Field(description="where answers are posted; empty: nowhere")
    chat: Text
    needs_timestamp: bool
    per_minute: int
    problem: Text = Field(description="why it cannot be used as written; empty if it can")


class WebhookRouteList(BaseModel):
    """The routes of config.yaml."""

    items: list[WebhookRouteItem]


class WebhookRouteChange(BaseModel):
    """The options of a route; those that are null stay as they are."""

    prompt: Prompt | None = None
    secret_env: Variable | None = None
    secret: Secret | None = Field(None, description="a new value of the variable `secret_env`")
    deliver_url: Url | None = None
    chat: ChatMode | None = None
    needs_timestamp: bool | None = None
    per_minute: int | None = None


class NewWebhookRoute(WebhookRouteChange):
    """A route that does not exist yet."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]
