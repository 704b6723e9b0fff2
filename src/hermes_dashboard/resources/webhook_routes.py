"""Webhook routes: list, add, change, remove.

What lets a program do more than before (a new route, another prompt, secret or receiver) is only
requested here; it takes effect after `hermes dashboard confirm CODE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import HTTPException
from pydantic import BaseModel, Field, StringConstraints

from hermes_core.config.file import ConfigFile
from hermes_core.config.webhook_routes import (
    DEFAULT_SECRET_VARIABLE,
    WebhookRouteOptions,
    check_request,
    check_variable,
    parse_options,
    route_entries,
    without_password,
    write_route,
)
from hermes_core.errors import FieldError
from hermes_dashboard.models.text import Identifier, Text, problems
from hermes_dashboard.pending_changes import RequestedRoute
from hermes_dashboard.resources.pending_changes import (
    NEEDS_CONFIRMATION,
    PendingChangeItem,
    request_change,
)
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.errors import PlainJson

ChatMode = Literal["per-delivery", "fixed"]
Prompt = Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)]
Variable = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
Url = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]
Secret = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]


MIN_SECRET_CHARACTERS: Final = 16


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


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of webhook routes."""
    routes = ResourceRouter("/api/gateway/webhook-routes", tag="gateway")

    def request(name: str, options: WebhookRouteOptions, secret: str) -> PlainJson:
        text = RequestedRoute(options, secret).to_text()
        return request_change(context.home, "webhook_route", name, text)

    @routes.get("", responses=problems(400))
    def list_routes() -> WebhookRouteList:
        """The webhook routes of config.yaml, without their secrets."""
        config = ConfigFile.of_home()
        entries = route_entries(config).items()
        return WebhookRouteList(items=[_item(name, entry, config) for name, entry in entries])

    @routes.post("", status_code=202, response_model=PendingChangeItem, responses=problems(400))
    def request_route(route: NewWebhookRoute) -> Any:
        """Request a route; it is written into config.yaml after a confirmation."""
        options = _changed(WebhookRouteOptions(prompt=""), route)
        check_request(route.name, options, None)
        if route.name in route_entries(ConfigFile.of_home()):
            raise FieldError("name", f"A route {route.name} already exists. Edit it instead.")
        return request(route.name, options, _checked_secret(route, options))

    @routes.put(
        "/{name}",
        response_model=WebhookRouteItem,
        responses=NEEDS_CONFIRMATION | problems(400, 404),
    )
    def change_route(name: Identifier, change: WebhookRouteChange) -> Any:
        """Change a route, after a confirmation if that grants something."""
        config = ConfigFile.of_home()
        old = _existing(name, _entry(config, name))
        new = _changed(old, change)
        check_request(name, new, old)
        secret = _checked_secret(change, new)
        if secret or new.grants_beyond(old):
            return request(name, new, secret)
        write_route(config, name, new)
        return _item(name, new.fields(), config)

    @routes.remove("/{name}", 400, 404)
    def remove_route(name: Identifier) -> None:
        """Remove a route; deliveries to it are refused after a restart of the gateway."""
        config = ConfigFile.of_home()
        _entry(config, name)
        write_route(config, name, None)

    return routes


def _entry(config: ConfigFile, name: str) -> object:
    entries = route_entries(config)
    if name not in entries:
        raise HTTPException(404, f"No webhook route {name!r}.")
    return entries[name]


def _existing(name: str, entry: object) -> WebhookRouteOptions:
    try:
        return parse_options(entry)
    except FieldError as error:
        reason = f"The route {name} in config.yaml is invalid: {error} Edit the file, or remove it."
        raise FieldError("", reason) from error


def _changed(old: WebhookRouteOptions, change: WebhookRouteChange) -> WebhookRouteOptions:
    given = change.model_dump(exclude_none=True, exclude={"name", "secret"})
    options = old._replace(**given)
    return options._replace(secret_env=options.secret_env or DEFAULT_SECRET_VARIABLE)


def _checked_secret(change: WebhookRouteChange, options: WebhookRouteOptions) -> str:
    """The new value of the route's variable; empty if it stays as it is."""
    secret = change.secret or ""
    if secret:
        check_variable(options.secret_env)
    if secret and (len(secret) < MIN_SECRET_CHARACTERS or not secret.isprintable()):
        raise FieldError("secret", f"A secret has at least {MIN_SECRET_CHARACTERS} characters.")
    return secret


def _item(name: str, entry: object, config: ConfigFile) -> WebhookRouteItem:
    problem = ""
    try:
        options = parse_options(entry)
    except FieldError as error:
        options, problem = WebhookRouteOptions(prompt=""), str(error)
    return WebhookRouteItem(
        name=name,
        path=f"/webhooks/{name}",
        **options._replace(deliver_url=without_password(options.deliver_url))._asdict(),
        has_secret=bool(config.variables().get(options.secret_env)),
        problem=problem,
    )
