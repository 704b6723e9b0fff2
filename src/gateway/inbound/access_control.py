"""Who is let in: those who were approved or are listed; strangers get a code, or nothing."""

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

EVERYBODY: Final = "*"
# Whoever reaches these has shown already who they are: a file's permissions, a key, a signature.
TRUSTED: Final = frozenset({Platform.LOCAL, Platform.API_SERVER, Platform.WEBHOOK})
OWNERS: Final = TRUSTED - {Platform.WEBHOOK}  # what a webhook brings was written by anybody
STRANGER: Final = (
    "I do not know you yet. If this is your Hermes, run\n\n"
    "    hermes pairing approve {platform} {code}\n\nThe code lives an hour."
)


class Verdict(NamedTuple):
    """Whether somebody is let in, and what a stranger is told."""

    is_in: bool
    answer: str = ""


class AccessControl:
    """Decides about senders."""

    def __init__(
        self, db: SessionDB, config: GatewayConfig, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._db = db
        self._config = config
        self._environment = environment

    def verdict(self, source: SessionSource) -> Verdict:
        """Whether a message of this sender is handled."""
        if source.platform in TRUSTED or self._is_listed(source):
            return Verdict(True)
        user, platform = source.user_id, source.platform.value
        if not user:
            return Verdict(False)
        if self._db.is_user_allowed(platform, user):
            return Verdict(True)
        return Verdict(False, self._invitation(source, user))

    def is_for_us(self, source: SessionSource, *, is_addressed: bool) -> bool:
        """Whether a message is meant for the agent: in groups, what is addressed to it."""
        if source.chat_type == "dm" or is_addressed:
            return True
        config = self._config.platforms.get(source.platform)
        extra = config.extra if config else {}
        is_free = source.chat_id in self._extra(source.platform, "free_response_channels")
        return is_free or not config_values.flag(extra.get("require_mention"), default=True)

    def is_admin(self, source: SessionSource) -> bool:
        """Whether somebody may decide for the whole agent.

        Those who are listed for it; where nobody is, whoever was let in by name and writes
        directly. In groups, and where everybody is let in, nobody is one by chance.
        """
        if source.platform in OWNERS:
            return True
        people = {source.user_id, source.user_id_alt} - {None, ""}
        listed = self._extra(source.platform, "allow_admin_from")
        if listed:
            return bool(people & listed)
        if source.chat_type != "dm" or not source.user_id:
            return False
        is_known = self._db.is_user_allowed(source.platform.value, source.user_id)
        return is_known or bool(people & self._listed(source.platform))

    def is_owner(self, source: SessionSource) -> bool:
        """Whether the whole history is this person's: an admin by name, or the only one let in."""
        if not self.is_admin(source) or source.chat_type != "dm":
            return False
        if source.platform in OWNERS or self._extra(source.platform, "allow_admin_from"):
            return True
        platform = source.platform.value
        paired = {one["user_id"] for one in self._db.allowed_users() if one["platform"] == platform}
        return len(paired | self._listed(source.platform)) == 1

    def _is_listed(self, source: SessionSource) -> bool:
        """Whether the sender, or the group, is on a list of the user's."""
        listed = self._listed(source.platform)
        people = {source.user_id, source.user_id_alt} - {None, ""}
        if EVERYBODY in listed or people & listed:
            return True
        return source.chat_type != "dm" and source.chat_id in self._groups(source.platform)

    def _listed(self, platform: Platform) -> set[str]:
        name = platform.value.upper()
        return (
            self._extra(platform, "allowed_users")
            | _words(self._environment.get(f"{name}_ALLOWED_USERS"))
            | _words(self._environment.get("GATEWAY_ALLOWED_USERS"))
        )

    def _groups(self, platform: Platform) -> set[str]:
        name = f"{platform.value.upper()}_GROUP_ALLOWED_CHATS"
        return self._extra(platform, "allowed_chats") | _words(self._environment.get(name))

    def _extra(self, platform: Platform, name: str) -> set[str]:
        config = self._config.platforms.get(platform)
        found = config.extra.get(name) if config else None
        return set(map(str, found)) if isinstance(found, list) else _words(found)

    def _invitation(self, source: SessionSource, user: str) -> str:
        """A code for a stranger who writes directly; nothing in a group, or when told so."""
        behaviour = self._config.get_unauthorized_dm_behavior(source.platform)
        if source.chat_type != "dm" or behaviour == "ignore" or self._listed(source.platform):
            return ""
        platform = source.platform.value
        code = self._db.ask_to_pair(platform, user, source.user_name or "")
        return STRANGER.format(platform=platform, code=code) if code else ""


def _words(text: object) -> set[str]:
    return {one.strip() for one in str(text or "").split(",") if one.strip()}
