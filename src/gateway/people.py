"""The people and programs that the gateway knows, with their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.config import Platform, find_platform
from gateway.inbound.access_control import ANY_USER, TRUSTED_PLATFORMS, AccessControl
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError
from hermes_core.roles import Person, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.config import GatewayConfig
    from hermes_core.json_values import JsonObject
    from hermes_state.store import SessionDB

NOTICE_KEY: Final = "gateway_roles_notice"
NOTICE: Final = (
    "People now have roles. Owner: the local user, API_SERVER_KEY{owners}. Members: {members}. "
    "Guests: group members who are not paired, webhooks{guests}. Members have conversations, "
    "notes and files of their own; guests only talk. List people with `hermes people`, change a "
    "role with `hermes people set PERSON --role owner|member|guest`; "
    "API keys with fewer rights: `hermes api-keys add NAME --role member|guest`."
)


class KnownPerson(NamedTuple):
    """A person or program with access, and its role."""

    person: Person
    name: str
    role: Role
    is_paired: bool
    is_configured: bool  # named in config.yaml or the environment
    last_seen: float | None

    def facts(self) -> JsonObject:
        """The JSON form."""
        return {
            "person": str(self.person),
            "platform": self.person.platform,
            "user_id": self.person.user_id,
            "user_name": self.name,
            "role": str(self.role),
            "paired": self.is_paired,
            "configured": self.is_configured,
            "last_seen": self.last_seen,
        }


def known_people(db: SessionDB, config: GatewayConfig) -> list[KnownPerson]:
    """Paired and configured people, webhook routes, and all whose role was set."""
    access = AccessControl(db, config)
    paired = {Person(user.platform, user.user_id): user.user_name for user in db.pairings.allowed()}
    configured = set(_configured(access, config))
    with_role = {Person(row.platform, row.user_id) for row in db.people.roles()}
    seen = _last_seen(db)
    people = []
    for person in sorted({*paired, *configured, *with_role}):
        platform = find_platform(person.platform)
        if platform is None:
            continue
        source = SessionSource(platform, person.user_id, user_id=person.user_id)
        last_seen = seen.get(person)
        people.append(
            KnownPerson(
                person,
                paired.get(person) or (last_seen.name if last_seen else ""),
                access.role_of(source),
                person in paired,
                person in configured,
                last_seen.at if last_seen else None,
            )
        )
    return people


def require_possible_role(db: SessionDB, config: GatewayConfig, person: Person, role: Role) -> None:
    """Raise UsageError if a person cannot have a role."""
    platform = find_platform(person.platform)
    if platform is Platform.WEBHOOK and role is Role.OWNER:
        raise UsageError("A webhook cannot have the role owner: others write its content.")
    access = AccessControl(db, config)
    is_named = platform is not None and access.is_named_owner(platform, person.user_id)
    if is_named and role is not Role.OWNER:
        raise UsageError(
            f"platforms.{person.platform}.allow_admin_from in config.yaml names "
            f"{person.user_id} as the owner. Remove it there first."
        )


def _configured(access: AccessControl, config: GatewayConfig) -> Iterator[Person]:
    for platform, platform_config in config.platforms.items():
        if platform is Platform.WEBHOOK:
            routes = platform_config.extra.get("routes")
            names = set(map(str, routes)) if isinstance(routes, dict) else set()
        elif platform in TRUSTED_PLATFORMS:
            names = set()
        else:
            names = access.listed_users(platform) - {ANY_USER}
        yield from (Person(platform.value, name) for name in names)


class LastSeen(NamedTuple):
    """The time of the last message of a person, and the name it came with."""

    at: float
    name: str


def _last_seen(db: SessionDB) -> dict[Person, LastSeen]:
    seen: dict[Person, LastSeen] = {}
    for route in db.routes.all():
        origin = route.entry.get("origin")
        if not isinstance(origin, dict) or not origin.get("user_id"):
            continue
        person = Person(str(origin.get("platform")), str(origin["user_id"]))
        if person not in seen or seen[person].at < route.updated_at:
            seen[person] = LastSeen(route.updated_at, str(origin.get("user_name") or ""))
    return seen


def take_role_notice(db: SessionDB, config: GatewayConfig) -> str:
    """The notice about roles, once, if people had access before there were roles."""
    if db.meta.get_meta(NOTICE_KEY) is not None:
        return ""
    people = known_people(db, config)
    db.meta.set_meta(NOTICE_KEY, "shown")
    if not people:
        return ""

    def names(role: Role) -> list[str]:
        return [str(item.person) for item in people if item.role is role]

    return NOTICE.format(
        owners="".join(f", {name}" for name in names(Role.OWNER)),
        members=", ".join(names(Role.MEMBER)) or "none",
        guests="".join(f", {name}" for name in names(Role.GUEST)),
    )
