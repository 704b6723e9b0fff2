"""Who may chat with the agent: approved users, allow lists and admins of hermes-agent.

Listed users become approved users, which `hermes pairing list` shows and `revoke` removes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_compat.original_home.home import read_json
from hermes_compat.original_home.items import ItemState, MoveItem
from hermes_compat.original_home.secrets import TOKENS
from hermes_core.json_values import JsonObject, JsonValue, object_in, text_in
from hermes_core.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_compat.original_home.items import MoveContext

FOLDERS: Final = ("pairing", "platforms/pairing")
APPROVED_SUFFIX: Final = "-approved.json"
USERS_SUFFIX: Final = "_ALLOWED_USERS"
CHATS_SUFFIX: Final = "_GROUP_ALLOWED_CHATS"
ALL_SUFFIX: Final = "_ALLOW_ALL_USERS"
ANY_PLATFORM: Final = "gateway"
LIST_KEYS: Final = ("allow_from", "allowed_users")
ADMINS_KEY: Final = "allow_admin_from"
ANY_USER: Final = "*"
FALSE_TEXTS: Final = frozenset({"", "0", "false", "no", "off"})


class ListedUser(NamedTuple):
    """A user with access."""

    platform: str
    user_id: str
    name: str = ""
    approved_at: float = 0.0


def plan_access(context: MoveContext) -> Iterator[MoveItem]:
    """Approved users, allow lists, then admins."""
    seen: set[tuple[str, str]] = set()
    for path in _approved_files(context):
        problem = _problem(path)
        if problem:
            yield MoveItem("pairing", path.name, ItemState.SKIP, problem)
    for kind, user in (*_approved(context), *_listed(context)):
        if (user.platform, user.user_id) not in seen:
            seen.add((user.platform, user.user_id))
            yield _user_item(context, kind, user)
    yield from _open_access(context)
    for platform, user_id in _admins(context):
        yield _admin_item(context, platform, user_id)


# Approved users


def _approved_files(context: MoveContext) -> list[Path]:
    pattern = f"*{APPROVED_SUFFIX}"
    folders = [context.home.path / folder for folder in FOLDERS]
    return [path for folder in folders for path in sorted(folder.glob(pattern))]


def _approved(context: MoveContext) -> Iterator[tuple[str, ListedUser]]:
    for path in _approved_files(context):
        platform = path.name.removesuffix(APPROVED_SUFFIX)
        for user in _users(read_json(path).value, platform):
            yield "pairing", user


def _problem(path: Path) -> str:
    """Why a file has no users that can be read; empty if it has, or names none."""
    content = read_json(path)
    if content.problem or isinstance(content.value, (dict, list)):
        return content.problem
    return f"{path} has no list of users"


def _users(content: JsonValue, platform: str) -> Iterator[ListedUser]:
    """The users of a file: an object by user ID, or a list."""
    if isinstance(content, dict):
        for name in ("users", "approved"):
            if isinstance(content.get(name), (list, dict)):
                yield from _users(content[name], platform)
                return
        for user_id, about in content.items():
            if not user_id.startswith("_"):
                yield _user(platform, user_id, about)
    for about in content if isinstance(content, list) else ():
        fields = about if isinstance(about, dict) else {"id": about}
        listed = fields.get("user_id") or fields.get("id")
        if isinstance(listed, (str, int)):
            yield _user(platform, str(listed), about)


def _user(platform: str, user_id: str, about: JsonValue) -> ListedUser:
    fields = about if isinstance(about, dict) else {}
    name = text_in(fields, "user_name") or text_in(fields, "name")
    at = fields.get("approved_at")
    return ListedUser(platform, user_id, name, at if isinstance(at, (int, float)) else 0.0)


# Allow lists


def _listed(context: MoveContext) -> Iterator[tuple[str, ListedUser]]:
    env = context.home.env
    for name, value in env.items():
        platform = name.removesuffix(USERS_SUFFIX).lower()
        if not name.endswith(USERS_SUFFIX) or platform.endswith("_group"):
            continue
        for user_id in _split(value):
            for each in _platforms(context) if platform == ANY_PLATFORM else [platform]:
                if user_id != ANY_USER:
                    yield "allow list", ListedUser(each, user_id)
    for platform, block in _blocks(context):
        for key in LIST_KEYS:
            for user_id in _split(block.get(key)):
                if user_id != ANY_USER:
                    yield "allow list", ListedUser(platform, user_id)


def _platforms(context: MoveContext) -> list[str]:
    """The platforms with a token, which a list for all of them applies to."""
    return [name for name, variable in TOKENS.items() if context.home.env.get(variable)]


def _blocks(context: MoveContext) -> Iterator[tuple[str, JsonObject]]:
    """The sections of platforms: `platforms.NAME`, its `extra`, and `NAME`."""
    platforms = context.home.section("platforms")
    for name, block in platforms.items():
        if isinstance(block, dict):
            yield name, block
            yield name, object_in(block, "extra")
    for name in TOKENS:
        yield name, context.home.section(name)


def _split(value: JsonValue) -> list[str]:
    items = value if isinstance(value, list) else str(value or "").split(",")
    return [text for item in items if (text := str(item).strip())]


def _open_access(context: MoveContext) -> Iterator[MoveItem]:
    """What would give access to more than listed users: it is left to the owner."""
    for name, value in context.home.env.items():
        if name.endswith(ALL_SUFFIX) and value.lower() not in FALSE_TEXTS:
            reason = 'access for everyone is set by hand: platforms.NAME.allowed_users: ["*"]'
            yield MoveItem("allow list", name, ItemState.SKIP, reason)
        elif name.endswith(USERS_SUFFIX) and ANY_USER in _split(value):
            reason = 'access for everyone is set by hand: platforms.NAME.allowed_users: ["*"]'
            yield MoveItem("allow list", f"{name}=*", ItemState.SKIP, reason)
        elif name.endswith((CHATS_SUFFIX, f"_GROUP{USERS_SUFFIX}")) and value:
            reason = "groups are listed in config.yaml: platforms.NAME.allowed_chats"
            yield MoveItem("allow list", name, ItemState.SKIP, reason)


def _user_item(context: MoveContext, kind: str, user: ListedUser) -> MoveItem:
    name = f"{user.platform} {user.user_id}" + (f" ({user.name})" if user.name else "")
    if context.db.pairings.is_allowed(user.platform, user.user_id):
        return MoveItem(kind, name, ItemState.HERE, "approved here")

    def approve() -> None:
        context.db.pairings.add(user.platform, user.user_id, user.name, user.approved_at)

    mark = f"user:{user.platform}:{user.user_id}"
    return context.once(MoveItem(kind, name, ItemState.TAKE, "as approved user", approve, mark))


# Admins


def _admins(context: MoveContext) -> Iterator[tuple[str, str]]:
    """The admins that the configuration here does not name."""
    for name in TOKENS:
        for user_id in _split(context.home.section(name).get(ADMINS_KEY)):
            yield name, user_id


def _admin_item(context: MoveContext, platform: str, user_id: str) -> MoveItem:
    name = f"{platform} {user_id}"
    if context.db.people.role_of(platform, user_id) == Role.OWNER:
        return MoveItem("admin", name, ItemState.HERE, "owner here")

    def promote() -> None:
        context.db.people.set_role(platform, user_id, Role.OWNER)

    mark = f"admin:{platform}:{user_id}"
    return context.once(MoveItem("admin", name, ItemState.TAKE, "as owner", promote, mark))
