"""A pending change in words: the value now, and the value after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from gateway.platforms.options import PlatformOptions
from hermes_core.config import values
from hermes_core.config.webhook_routes import parse_options, route_entries
from hermes_core.errors import ConfigError, FieldError
from hermes_core.requested_changes import (
    RequestedJob,
    RequestedRole,
    RequestedRoute,
    RequestedServer,
)

if TYPE_CHECKING:
    from hermes_core.config.file import ConfigFile
    from hermes_core.pending_changes import ChangeKind, PendingChange

EMPTY = "(empty)"


class ChangeTexts(NamedTuple):
    """The old and the new value; of a secret only whether it is set."""

    old: str
    new: str


def texts_of(change: PendingChange, config: ConfigFile) -> ChangeTexts:
    """The texts of *change*, with the current value of its setting."""
    if change.kind == "plugin":
        is_enabled = change.name in config.settings().get_list("plugins.enabled")
        return ChangeTexts("enabled" if is_enabled else "not enabled", "enabled")
    if change.kind == "job":
        new = "scheduled" if change.value is None else RequestedJob.of_text(change.value).summary
        return ChangeTexts("not scheduled", new)
    if change.kind == "mcp_server":
        new = (
            "configured" if change.value is None else RequestedServer.of_text(change.value).summary
        )
        return ChangeTexts("not configured", new)
    if change.kind == "webhook_route":
        return _route_texts(change, config)
    if change.kind in ("pairing", "role"):
        grant = RequestedRole.of_text(change.value or "")
        return ChangeTexts(grant.old or "no access", grant.new or "changed")
    return _value_texts(change, config)


def _route_texts(change: PendingChange, config: ConfigFile) -> ChangeTexts:
    entry = route_entries(config).get(change.name)
    try:
        old = "not configured" if entry is None else parse_options(entry).summary
    except FieldError:
        old = "(invalid)"
    new = old if change.value is None else RequestedRoute.of_text(change.value).summary
    return ChangeTexts(old, new)


def _value_texts(change: PendingChange, config: ConfigFile) -> ChangeTexts:
    """The texts of a setting, or of an option of a platform."""
    is_option, options = change.kind == "platform", PlatformOptions(config)
    name = change.name
    setting = options.find(name) if is_option else values.find_setting(config.table, name)
    try:
        entry = options.entry(setting) if is_option else config.entry(name)
        old = entry.text or EMPTY
    except ConfigError:
        old = "(invalid)"
    if change.applied_at is not None:
        return ChangeTexts(old, old)
    if setting.secret:
        return ChangeTexts(old, "not set" if change.value is None else "a new value (hidden)")
    new = values.format_value(setting.default) if change.value is None else change.value
    return ChangeTexts(old, new or EMPTY)


class ChangeFacts(TypedDict):
    """The JSON form of a change."""

    code: str
    kind: ChangeKind
    name: str
    old: str
    new: str
    expires_at: float


def facts_of(change: PendingChange, config: ConfigFile) -> ChangeFacts:
    """The JSON form of *change*; the value of a secret is omitted."""
    texts = texts_of(change, config)
    return {
        "code": change.code,
        "kind": change.kind,
        "name": change.name,
        "old": texts.old,
        "new": texts.new,
        "expires_at": change.expires_at,
    }
