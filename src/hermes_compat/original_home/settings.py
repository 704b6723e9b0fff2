"""Settings of hermes-agent that have an equivalent here; the others are listed with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.shell_hooks.config import EVENTS, STRICT_KEY
from hermes_agent.shell_hooks.config import SECTION as HOOKS_SECTION
from hermes_compat.original_home.home import (
    CONFIG_NAME,
    MODEL_SECTION,
    TOKENS,
    ItemState,
    MoveItem,
    read_json,
)
from hermes_compat.original_home.model import FALLBACKS, MODEL_KEYS
from hermes_core.config.settings import BLOCKS, SETTINGS
from hermes_core.config.values import find_setting, format_value, parse_value
from hermes_core.errors import ConfigError
from hermes_core.json_values import JsonObject, JsonValue, object_in, text_in
from hermes_core.roles import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from hermes_compat.original_home.home import MoveContext


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


KIND: Final = "setting"
READ_AS_IT_IS: Final = "read from config.yaml as it is"
# Names that both programs use with the same meaning.
SAME_NAMES: Final = (
    "session_reset.mode", "session_reset.at_hour", "session_reset.idle_minutes",
    "sessions.auto_prune", "sessions.retention_days", "gateway.max_concurrent_sessions",
    "gateway.group_sessions_per_user", "gateway.thread_sessions_per_user",
    "gateway.unauthorized_dm_behavior", "gateway.session_store_max_age_days",
)  # fmt: skip
# Its name, and ours.
TRANSLATED_NAMES: Final = {
    "timezone": "display.timezone",
    "display.busy_input_mode": "agent.busy_input",
    "agent.restart_drain_timeout": "gateway.drain_seconds",
    "max_concurrent_sessions": "gateway.max_concurrent_sessions",
    "group_sessions_per_user": "gateway.group_sessions_per_user",
    "thread_sessions_per_user": "gateway.thread_sessions_per_user",
    "unauthorized_dm_behavior": "gateway.unauthorized_dm_behavior",
}
# What other parts of the move read: sections, and keys of sections.
OTHER_SECTIONS: Final = frozenset({*FALLBACKS, "custom_providers", "providers"})
OTHER_KEYS: Final = {
    MODEL_SECTION: MODEL_KEYS,
    **dict.fromkeys(TOKENS, frozenset({*LIST_KEYS, ADMINS_KEY})),
}
SECRET_KEYS: Final = frozenset({"token", "api_key"})
HOOK_KIND: Final = "hook"
HOOKS_REFUSED: Final = (
    "shell hooks of hermes-agent do not run here, so they block nothing; write them as PreToolUse "
    "or UserPromptSubmit hooks (docs/reference/hooks.md)"
)
NO_EQUIVALENT: Final = "no such setting here"
REASONS: Final = {
    "agent": "turns are limited by time and budget here (agent.idle_seconds, agent.turn_seconds)",
    "approvals": "permissions are modes and rules here: hermes permissions",
    "auxiliary": "side tasks use the default model here",
    "browser": "no browser tool here; an MCP server can provide one",
    "compression": "older messages are summarized when the context window is full; not adjustable",
    "delegation": "sub-agents are not adjustable here",
    "display": "the display has settings of its own: hermes config list",
    "memory": "memory files are limited as in hermes-agent; only memory.review_turns is adjustable",
    "plugins": "plugins run code: enable each one with hermes plugins enable NAME",
    "quick_commands": "not available here; a plugin can add commands",
    "stt": "set gateway.transcribe_command or gateway.transcribe_url",
    "terminal": "commands run on this machine in a sandbox; other places are not available here",
    "toolsets": "the agent's tools are fixed here; see hermes permissions",
    "tts": "not available here",
    "voice": "not available here",
}


def plan_settings(context: MoveContext) -> Iterator[MoveItem]:
    """The settings of config.yaml, except the model."""
    home = context.home
    if home.problem:
        yield MoveItem(KIND, CONFIG_NAME, ItemState.SKIP, home.problem)
    if home.env_problem:
        yield MoveItem(KIND, ".env", ItemState.SKIP, home.env_problem)
    written = _flatten(home.config)
    for theirs, ours in _pairs(written):
        yield _item(context, theirs, ours, written[theirs])
    for name in BLOCKS:
        if name == HOOKS_SECTION:
            yield from _hooks(context)
        elif object_in(home.config, name):
            yield _block(context, name)
    yield from _not_taken(written)


def _flatten(config: JsonObject) -> dict[str, JsonValue]:
    """Settings by name: `section.key`, or the name of a plain value."""
    written: dict[str, JsonValue] = {}
    for section, block in config.items():
        if isinstance(block, dict) and section not in BLOCKS:
            written |= {f"{section}.{key}": value for key, value in block.items()}
        elif section not in BLOCKS:
            written[section] = block
    return written


def _pairs(written: dict[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Their names with ours, for the settings that are written."""
    for theirs, ours in ({name: name for name in SAME_NAMES} | TRANSLATED_NAMES).items():
        if written.get(theirs) is not None:
            yield theirs, ours


def _item(context: MoveContext, theirs: str, ours: str, value: JsonValue) -> MoveItem:
    config = context.config
    if context.home.is_in_place and theirs == ours:
        return MoveItem(KIND, theirs, ItemState.HERE, READ_AS_IT_IS)
    try:
        wanted = format_value(parse_value(find_setting(SETTINGS, ours), value, CONFIG_NAME))
        entry = config.entry(ours)
    except ConfigError as error:
        return MoveItem(KIND, theirs, ItemState.SKIP, str(error))
    if entry.text == wanted:
        return MoveItem(KIND, theirs, ItemState.HERE, f"{ours} has this value")
    if entry.source != "default":
        reason = f"{ours} is set here to {entry.text}"
        return MoveItem(KIND, theirs, ItemState.SKIP, reason)

    def save() -> None:
        config.set(ours, wanted)

    return MoveItem(KIND, theirs, ItemState.TAKE, f"as {ours} = {wanted}", save)


def _block(context: MoveContext, name: str, without: Collection[str] = ()) -> MoveItem:
    """A section whose names the user has chosen; it is copied if it is missing here."""
    if context.home.is_in_place:
        return MoveItem(KIND, name, ItemState.HERE, READ_AS_IT_IS)
    written = object_in(context.home.config, name)
    block = _without_secrets({key: value for key, value in written.items() if key not in without})
    here = context.config.block(name)
    if here == block:
        return MoveItem(KIND, name, ItemState.HERE, "the same here")
    if here:
        reason = "the section exists here; compare and merge by hand"
        return MoveItem(KIND, name, ItemState.SKIP, reason)

    def save() -> None:
        context.config.add_block(name, block)

    return MoveItem(KIND, name, ItemState.TAKE, f"section with {', '.join(block)}", save)


def _hooks(context: MoveContext) -> Iterator[MoveItem]:
    """The shell hooks; those with the events of hermes-agent do not run here."""
    written = object_in(context.home.config, HOOKS_SECTION)
    refused = [name for name in written if name not in (*EVENTS, STRICT_KEY)]
    if refused:
        names = ", ".join(refused)
        yield MoveItem(HOOK_KIND, names, ItemState.SKIP, HOOKS_REFUSED)
    if len(refused) < len(written):
        yield _block(context, HOOKS_SECTION, without=refused)


def _without_secrets(block: JsonObject) -> JsonObject:
    """A copy without tokens, which are saved in `.env`."""
    return {
        name: {key: item for key, item in value.items() if key not in SECRET_KEYS}
        if isinstance(value, dict)
        else value
        for name, value in block.items()
    }


def _not_taken(written: dict[str, JsonValue]) -> Iterator[MoveItem]:
    """What has no equivalent, grouped by section."""
    ours = {setting.name for setting in SETTINGS}
    taken = {theirs for theirs, _ in _pairs(written)}
    groups: dict[str, list[str]] = {}
    for name, value in written.items():
        section = name.partition(".")[0]
        key = name.partition(".")[2]
        is_elsewhere = section in OTHER_SECTIONS or key in OTHER_KEYS.get(section, ())
        if name in taken | ours or is_elsewhere or value is None or name == MODEL_SECTION:
            continue
        groups.setdefault(section, []).append(name)
    for section, names in groups.items():
        reason = REASONS.get(section, NO_EQUIVALENT)
        if section in TOKENS:
            reason = f"options of a platform are in platforms.{section} here"
        yield MoveItem(KIND, ", ".join(names), ItemState.SKIP, reason)
