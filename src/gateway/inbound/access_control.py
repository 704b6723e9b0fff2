"""Access control: allow lists, pairing codes for unknown users, roles."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from gateway.config import Platform
from gateway.platforms.names import API_KEY_USER
from hermes_core.roles import Right, Role, may, parse_role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.config import GatewayConfig
    from gateway.routing.sources import SessionSource
    from hermes_state.store import SessionDB

ANY_USER: Final = "*"
# Callers of these are already authenticated: by file permissions, a key or a signature.
TRUSTED_PLATFORMS: Final = frozenset({Platform.LOCAL, Platform.API_SERVER, Platform.WEBHOOK})
PAIRING_REPLY: Final = (
    "You are not authorized to use this agent yet. Its owner can approve you with\n\n"
    "    hermes pairing approve {platform} {code}\n\n"
    "(with --owner if you are the owner). The code expires in an hour."
)


class AccessDecision(NamedTuple):
    """Whether a user has access, and the reply to one who has not."""

    is_allowed: bool
    reply: str = ""


class AccessControl:
    """Decides which senders have access, and their roles."""

    def __init__(
        self, db: SessionDB, config: GatewayConfig, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._db = db
        self._config = config
        self._environment = environment

    def decide(self, source: SessionSource) -> AccessDecision:
        """Whether a message of this sender is handled."""
        if self.has_access(source):
            return AccessDecision(True)
        if not source.user_id:
            return AccessDecision(False)
        return AccessDecision(False, self._pairing_reply(source, source.user_id))

    def has_access(self, source: SessionSource) -> bool:
        """Whether a user is trusted, listed or paired."""
        if source.platform in TRUSTED_PLATFORMS or self._is_listed(source):
            return True
        return bool(source.user_id) and self._db.pairings.is_allowed(
            source.platform.value, str(source.user_id)
        )

    def is_for_agent(self, source: SessionSource, *, is_addressed: bool) -> bool:
        """Whether a message is meant for the agent; in groups it has to be addressed to it."""
        if source.chat_type == "dm" or is_addressed:
            return True
        config = self._config.platforms.get(source.platform)
        extra = config.extra if config else {}
        is_free = source.chat_id in self._extra(source.platform, "free_response_channels")
        return is_free or not config_values.flag(extra.get("require_mention"), default=True)

    def role_of(self, source: SessionSource) -> Role:
        """The role of a sender.

        The owner is the local user, the user of API_SERVER_KEY, and the users that
        `allow_admin_from` or `hermes people` names. Approved and individually listed users are
        members. All others are guests.
        """
        if source.platform is Platform.LOCAL:
            return Role.OWNER
        if source.platform is Platform.API_SERVER:
            return self._api_role(source.user_id or "")
        user_ids = {source.user_id, source.user_id_alt} - {None, ""}
        stored = {self._stored_role(source.platform, str(user_id)) for user_id in user_ids}
        if source.platform is Platform.WEBHOOK:  # its content comes from third parties
            return Role.MEMBER if stored & {Role.MEMBER, Role.OWNER} else Role.GUEST
        if user_ids & self._extra(source.platform, "allow_admin_from"):
            return Role.OWNER
        known = [role for role in Role if role in stored]  # the highest first
        if known:
            return known[0]
        return Role.MEMBER if self._is_known(source) else Role.GUEST

    def _api_role(self, user: str) -> Role:
        prefix = API_KEY_USER.format(name="")
        if not user.startswith(prefix):
            return Role.OWNER
        return (
            parse_role(self._db.people.api_key_role(user.removeprefix(prefix)) or "") or Role.GUEST
        )

    def _stored_role(self, platform: Platform, user_id: str) -> Role | None:
        return parse_role(self._db.people.role_of(platform.value, user_id) or "")

    def _is_known(self, source: SessionSource) -> bool:
        """Whether the owner has approved or listed this very user."""
        user_ids = {source.user_id, source.user_id_alt} - {None, ""}
        if user_ids & (self._listed(source.platform) - {ANY_USER}):
            return True
        return bool(source.user_id) and self._db.pairings.is_allowed(
            source.platform.value, str(source.user_id)
        )

    def may(self, source: SessionSource, right: Right) -> bool:
        """Whether a sender has a right."""
        return may(self.role_of(source), right)

    def has_all_history(self, source: SessionSource) -> bool:
        """Whether the agent may search all conversations in this chat."""
        return source.chat_type == "dm" and self.may(source, Right.ALL_HISTORY)

    def listed_users(self, platform: Platform) -> set[str]:
        """The users named in the configuration, with access or as the owner."""
        return self._listed(platform) | self._extra(platform, "allow_admin_from")

    def is_named_owner(self, platform: Platform, user_id: str) -> bool:
        """Whether the configuration names a user as the owner."""
        return user_id in self._extra(platform, "allow_admin_from")

    def _is_listed(self, source: SessionSource) -> bool:
        """Whether the sender or the group is on an allow list."""
        listed = self._listed(source.platform)
        user_ids = {source.user_id, source.user_id_alt} - {None, ""}
        if ANY_USER in listed or user_ids & listed:
            return True
        return source.chat_type != "dm" and source.chat_id in self._groups(source.platform)

    def _listed(self, platform: Platform) -> set[str]:
        name = platform.value.upper()
        variables = (f"{name}_ALLOWED_USERS", "GATEWAY_ALLOWED_USERS")
        named = set().union(*(_split(self._environment.get(item)) for item in variables))
        return self._extra(platform, "allowed_users") | _as_ids(platform, named)

    def _groups(self, platform: Platform) -> set[str]:
        name = f"{platform.value.upper()}_GROUP_ALLOWED_CHATS"
        return self._extra(platform, "allowed_chats") | _split(self._environment.get(name))

    def _extra(self, platform: Platform, name: str) -> set[str]:
        config = self._config.platforms.get(platform)
        value = config.extra.get(name) if config else None
        ids = set(map(str, value)) if isinstance(value, list) else _split(value)
        return _as_ids(platform, ids)

    def _pairing_reply(self, source: SessionSource, user: str) -> str:
        """A pairing code for an unknown user in a direct chat; empty in groups or if disabled."""
        behaviour = self._config.get_unauthorized_dm_behavior(source.platform)
        if source.chat_type != "dm" or behaviour == "ignore" or self._listed(source.platform):
            return ""
        platform = source.platform.value
        code = self._db.pairings.request(platform, user, source.user_name or "")
        return PAIRING_REPLY.format(platform=platform, code=code) if code else ""


def _as_ids(platform: Platform, names: set[str]) -> set[str]:
    """Configured names as user IDs: addresses of e-mail are in lower case."""
    return {name.lower() for name in names} if platform is Platform.EMAIL else names


def _split(text: object) -> set[str]:
    return {part.strip() for part in str(text or "").split(",") if part.strip()}
