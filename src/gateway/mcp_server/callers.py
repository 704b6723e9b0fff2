"""Who calls a tool, and which conversations that caller may see."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.platforms.names import API_KEY_USER, Platform
from hermes_core.errors import SessionNotFoundError, UsageError
from hermes_core.roles import Right, Role, may, parse_role

if TYPE_CHECKING:
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

MIN_OWNER_KEY_CHARS: Final = 16


class McpCaller(NamedTuple):
    """The role of a caller; others than the owner see only conversations of their own key."""

    role: Role
    chat_prefix: str = ""

    def require(self, right: Right, what: str) -> None:
        """UsageError if the caller does not have a right."""
        if not may(self.role, right):
            raise UsageError(f"{what} is not available to a key with the role {self.role}.")

    @property
    def sees_all(self) -> bool:
        """Whether the caller may read all conversations."""
        return may(self.role, Right.ALL_HISTORY)

    def may_see(self, row: SessionRow | None) -> bool:
        """Whether the caller may read a conversation."""
        if row is None or self.sees_all:
            return row is not None
        is_own = row.source == Platform.API_SERVER.value and bool(self.chat_prefix)
        has_right = may(self.role, Right.CHAT_HISTORY)
        return has_right and is_own and (row.chat_id or "").startswith(self.chat_prefix)

    def require_session(self, db: SessionDB, text: str) -> SessionRow:
        """The conversation with an ID, title or prefix; one of others does not exist."""
        row = db.sessions.find(db.lookup.resolve(text)) if self.sees_all else db.sessions.find(text)
        if row is None or not self.may_see(row):
            raise SessionNotFoundError(f"no conversation matches {text!r}")
        return row


OWNER: Final = McpCaller(Role.OWNER)


def find_caller(db: SessionDB, authorization: str, owner_key: str) -> McpCaller | None:
    """The caller of an `Authorization` header; None if it has no valid token."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        return None
    is_long = len(owner_key) >= MIN_OWNER_KEY_CHARS
    if is_long and hmac.compare_digest(token.encode(), owner_key.encode()):
        return OWNER
    found = db.people.find_api_key(token)
    if found is None:
        return None
    role = parse_role(found.role) or Role.GUEST
    prefix = "" if role is Role.OWNER else f"{API_KEY_USER.format(name=found.name)}/"
    return McpCaller(role, prefix)
