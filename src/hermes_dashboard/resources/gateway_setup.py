"""The gateway's platforms and people: forms, connection tests, pairing and roles.

What gives a person or a platform more than before is only requested here; it takes effect after
`hermes dashboard confirm CODE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import HTTPException
from pydantic import BaseModel, Field, StringConstraints

from gateway import people
from gateway.platforms.connection_check import check_connection
from gateway.platforms.options import PlatformOptions
from gateway.platforms.registry import PlatformRegistry, explain_missing
from gateway.process.config_loader import Secrets, config_of_home, enabled_platforms
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, UsageError
from hermes_core.roles import Person, Role
from hermes_dashboard.models.text import Identifier, Text, problems
from hermes_dashboard.pending_changes import RequestedRole
from hermes_dashboard.resources.gateway import missing_text
from hermes_dashboard.resources.pending_changes import (
    NEEDS_CONFIRMATION,
    PendingChangeItem,
    request_change,
)
from hermes_dashboard.resources.settings import (
    NewValue,
    SettingItem,
    find_setting,
    setting_fields,
    setting_item,
    text_of,
)
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from gateway.people import KnownPerson
    from hermes_core.config.platform_spec import PlatformSpec
    from hermes_core.config.schema import Setting
    from hermes_dashboard.context import DashboardContext

RoleName = Literal["owner", "member", "guest"]


ROLE_ORDER: Final = tuple(Role)  # the one with most rights first


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


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of platforms and people."""
    routes = ResourceRouter("/api/gateway", tag="gateway")
    _add_platforms(routes, context)
    _add_pairing(routes, context)
    _add_roles(routes, context)
    return routes


def _add_platforms(routes: ResourceRouter, context: DashboardContext) -> None:
    responses = NEEDS_CONFIRMATION | problems(400, 404)

    @routes.get("/platforms", responses=problems(503))
    def list_platforms() -> PlatformFormList:
        """The platforms with their state, credentials and options; secrets are never included."""
        registry, config = PlatformRegistry.of_home(), ConfigFile.of_home()
        enabled = enabled_platforms(config_of_home(), registry, Secrets())
        forms = [spec for spec in registry if spec.options]
        return PlatformFormList(
            items=[_form(spec, config, is_enabled=spec in enabled) for spec in forms]
        )

    @routes.put("/platforms/options/{name}", response_model=SettingItem, responses=responses)
    def set_option(name: Identifier, body: NewValue) -> Any:
        """Change an option of a platform, after a confirmation if that grants something."""
        option, options = _find_option(name), PlatformOptions()
        text = text_of(option, body.value)
        if options.grants(option, text):
            return request_change(context.home, "platform", name, text)
        options.set(option, text)
        return _option_item(PlatformOptions(), option)

    @routes.delete("/platforms/options/{name}", response_model=SettingItem, responses=responses)
    def unset_option(name: Identifier) -> Any:
        """Reset an option of a platform, after a confirmation if that grants something."""
        option, options = _find_option(name), PlatformOptions()
        if options.grants(option, None):
            return request_change(context.home, "platform", name, None)
        options.unset(option)
        return _option_item(PlatformOptions(), option)

    @routes.post("/platforms/{name}/test", responses=problems(400, 503))
    def test_platform(name: Identifier) -> PlatformTestView:
        """Sign in with the stored credentials; nothing is received or sent."""
        entry = PlatformRegistry.of_home().get(name)
        if entry is None:
            raise UsageError(explain_missing(name))
        return PlatformTestView(**check_connection(entry)._asdict())


def _form(form: PlatformSpec, config: ConfigFile, *, is_enabled: bool) -> PlatformFormView:
    options = PlatformOptions(config)
    credentials = [setting_item(config, find_setting(name)) for name in form.credentials]
    fields = [*credentials, *(_option_item(options, option) for option in form.settings)]
    return PlatformFormView(
        name=form.name,
        is_enabled=is_enabled,
        missing=missing_text(form),
        library_command="" if form.is_usable else f"hermes gateway add {form.name}",
        can_test=form.check is not None,
        title=form.title,
        help=form.help,
        fields=fields,
    )


def _find_option(name: str) -> Setting:
    try:
        return PlatformOptions.find(name)
    except ConfigError as error:
        raise HTTPException(404, f"Unknown option: {name}") from error


def _option_item(options: PlatformOptions, option: Setting) -> SettingItem:
    return setting_fields(option, lambda: options.entry(option))


def _person_view(known: KnownPerson) -> PersonView:
    return PersonView(**known._asdict(), **known.person._asdict())


def _add_pairing(routes: ResourceRouter, context: DashboardContext) -> None:
    @routes.get("/people", responses=problems(503))
    def list_people() -> PersonList:
        """People and programs with access, and their roles."""
        known = people.known_people(context.db, config_of_home())
        return PersonList(items=[_person_view(each) for each in known])

    @routes.post(
        "/pairings",
        status_code=202,
        response_model=PendingChangeItem,
        responses=problems(400, 404, 429, 503),
    )
    def approve(pairing: Pairing) -> Any:
        """Request access for the user with this code; it is granted after a confirmation.

        Codes are single-use and expire after an hour.
        """
        platform = pairing.platform.strip().lower()
        found = context.db.pairings.find(platform, pairing.code)
        if found is not None:
            role = RequestedRole("", pairing.role, pairing.code.strip().upper())
            person = f"{platform}:{found.user_id}"
            return request_change(context.home, "pairing", person, role.to_text())
        if context.db.pairings.is_locked(platform):
            raise HTTPException(429, f"Too many wrong codes for {platform}. Try again in an hour.")
        raise HTTPException(
            404,
            f"Unknown or expired code for {platform} "
            "(codes are single-use and expire after an hour).",
        )


def _add_roles(routes: ResourceRouter, context: DashboardContext) -> None:
    @routes.put(
        "/people/{platform}/{user_id:path}",
        response_model=PersonView,
        responses=NEEDS_CONFIRMATION | problems(400, 404, 503),
    )
    def set_role(platform: Identifier, user_id: Identifier, body: RoleChange) -> Any:
        """Set the role of a person; more rights need a confirmation."""
        db, config = context.db, config_of_home()
        person, role = Person(platform, user_id), Role(body.role)
        every = people.known_people(db, config)
        known = next((each for each in every if each.person == person), None)
        if known is None:
            raise HTTPException(404, f"Unknown person: {person}")
        people.require_possible_role(db, config, person, role)
        if ROLE_ORDER.index(role) < ROLE_ORDER.index(known.role):
            change = RequestedRole(known.role, role).to_text()
            return request_change(context.home, "role", str(person), change)
        db.people.set_role(platform, user_id, role)
        return _person_view(known._replace(role=role))

    @routes.remove("/users/{platform}/{user_id:path}", 404, 503)
    def revoke(platform: Identifier, user_id: Identifier) -> None:
        """Revoke a user's access and role."""
        had_role = context.db.people.forget_role(platform.lower(), user_id)
        if not context.db.pairings.revoke(platform.lower(), user_id) and not had_role:
            raise HTTPException(404, f"User {user_id} has no access on {platform}.")
