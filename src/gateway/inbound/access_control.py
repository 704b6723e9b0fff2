"""Access control: allow lists, pairing codes for unknown users, admins, owners."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from gateway.config import Platform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.config import GatewayConfig
    from gateway.routing.sources import SessionSource
    from hermes_state import SessionDB

ANY_USER: Final = "*"
# Callers of these are already authenticated: by file permissions, a key or a signature.
TRUSTED_PLATFORMS: Final = frozenset({Platform.LOCAL, Platform.API_SERVER, Platform.WEBHOOK})
# The content of a webhook delivery comes from third parties.
OWNER_PLATFORMS: Final = TRUSTED_PLATFORMS - {Platform.WEBHOOK}
PAIRING_REPLY: Final = (
    "You are not authorized to use this agent yet. If it is yours, run\n\n"
    "    hermes pairing approve {platform} {code}\n\nThe code expires in an hour."
)


class AccessDecision(NamedTuple):
    """Whether a user has access, and the reply to one who has not."""

    is_allowed: bool
    reply: str = ""


class AccessControl:
    """Decides which senders have access, and which of them are admins."""

    def __init__(
        self, db: SessionDB, config: GatewayConfig, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._db = db
        self._config = config
        self._environment = environment

    def decide(self, source: SessionSource) -> AccessDecision:
        """Whether a message of this sender is handled."""
        if source.platform in TRUSTED_PLATFORMS or self._is_listed(source):
            return AccessDecision(True)
        user, platform = source.user_id, source.platform.value
        if not user:
            return AccessDecision(False)
        if self._db.is_user_allowed(platform, user):
            return AccessDecision(True)
        return AccessDecision(False, self._pairing_reply(source, user))

    def is_for_agent(self, source: SessionSource, *, is_addressed: bool) -> bool:
        """Whether a message is meant for the agent; in groups it has to be addressed to it."""
        if source.chat_type == "dm" or is_addressed:
            return True
        config = self._config.platforms.get(source.platform)
        extra = config.extra if config else {}
        is_free = source.chat_id in self._extra(source.platform, "free_response_channels")
        return is_free or not config_values.flag(extra.get("require_mention"), default=True)

    def is_admin(self, source: SessionSource) -> bool:
        """Whether a user may change the agent as a whole.

        Admins are listed. Without a list, every user who is approved or allowed by ID is an admin
        in a direct chat; a group member or a user allowed by `*` is not.
        """
        if source.platform in OWNER_PLATFORMS:
            return True
        user_ids = {source.user_id, source.user_id_alt} - {None, ""}
        listed = self._extra(source.platform, "allow_admin_from")
        if listed:
            return bool(user_ids & listed)
        if source.chat_type != "dm" or not source.user_id:
            return False
        is_approved = self._db.is_user_allowed(source.platform.value, source.user_id)
        return is_approved or bool(user_ids & self._listed(source.platform))

    def is_owner(self, source: SessionSource) -> bool:
        """Whether the entire history belongs to this user: a listed admin, or the only user."""
        if not self.is_admin(source) or source.chat_type != "dm":
            return False
        if source.platform in OWNER_PLATFORMS or self._extra(source.platform, "allow_admin_from"):
            return True
        platform = source.platform.value
        paired = {
            allowed_user["user_id"]
            for allowed_user in self._db.allowed_users()
            if allowed_user["platform"] == platform
        }
        return len(paired | self._listed(source.platform)) == 1

    def _is_listed(self, source: SessionSource) -> bool:
        """Whether the sender or the group is on an allow list."""
        listed = self._listed(source.platform)
        user_ids = {source.user_id, source.user_id_alt} - {None, ""}
        if ANY_USER in listed or user_ids & listed:
            return True
        return source.chat_type != "dm" and source.chat_id in self._groups(source.platform)

    def _listed(self, platform: Platform) -> set[str]:
        name = platform.value.upper()
        return (
            self._extra(platform, "allowed_users")
            | _split(self._environment.get(f"{name}_ALLOWED_USERS"))
            | _split(self._environment.get("GATEWAY_ALLOWED_USERS"))
        )

    def _groups(self, platform: Platform) -> set[str]:
        name = f"{platform.value.upper()}_GROUP_ALLOWED_CHATS"
        return self._extra(platform, "allowed_chats") | _split(self._environment.get(name))

    def _extra(self, platform: Platform, name: str) -> set[str]:
        config = self._config.platforms.get(platform)
        value = config.extra.get(name) if config else None
        return set(map(str, value)) if isinstance(value, list) else _split(value)

    def _pairing_reply(self, source: SessionSource, user: str) -> str:
        """A pairing code for an unknown user in a direct chat; empty in groups or if disabled."""
        behaviour = self._config.get_unauthorized_dm_behavior(source.platform)
        if source.chat_type != "dm" or behaviour == "ignore" or self._listed(source.platform):
            return ""
        platform = source.platform.value
        code = self._db.ask_to_pair(platform, user, source.user_name or "")
        return PAIRING_REPLY.format(platform=platform, code=code) if code else ""


def _split(text: object) -> set[str]:
    return {part.strip() for part in str(text or "").split(",") if part.strip()}
