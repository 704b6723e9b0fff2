"""Changes that a web page requested and that wait for a confirmation in a terminal.

A page may not grant anything: its request is stored here, and `hermes dashboard confirm CODE`
shows it and applies it. The file is private, because a change may contain a credential.
"""

from __future__ import annotations

import json
import secrets
import shlex
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict

from gateway.platforms.options import PlatformOptions
from hermes_core.atomic_files import folder_locked
from hermes_core.clock import SystemClock
from hermes_core.config import values
from hermes_core.config.webhook_routes import (
    WebhookRouteOptions,
    parse_options,
    route_entries,
    without_password,
)
from hermes_core.errors import ConfigError, FieldError, UsageError
from hermes_core.json_files import read_json, write_json
from hermes_core.json_values import list_in, object_in, parse_object, text_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_core.clock import Clock
    from hermes_core.config.file import ConfigFile
    from hermes_core.json_values import JsonObject

ChangeKind = Literal[
    "setting", "plugin", "job", "platform", "pairing", "role", "mcp_server", "webhook_route"
]
ChangeState = Literal["pending", "applied"]

FILE_NAME: Final = "pending-changes.json"
CODE_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no 0 and O, no 1 and I
CODE_CHARACTERS: Final = 6
EXPIRY_SECONDS: Final = 15 * 60
SHOWN_SECONDS: Final = 10 * 60  # how long an applied change stays listed
MAX_PENDING: Final = 20
TOO_MANY: Final = (
    "Too many changes wait for confirmation. Confirm or cancel some of them: "
    "`hermes dashboard confirm` lists them."
)


@dataclass(frozen=True)
class PendingChange:
    """A requested change: what it concerns, and the new value (None: the default)."""

    code: str
    kind: ChangeKind
    name: str
    value: str | None
    requested_at: float
    expires_at: float
    applied_at: float | None = None

    @property
    def state(self) -> ChangeState:
        """Whether it was applied."""
        return "pending" if self.applied_at is None else "applied"


class PendingChanges:
    """The changes of a Hermes folder; the file may be changed by several processes."""

    def __init__(self, home: Path, clock: Clock | None = None) -> None:
        self.path = home / "run" / FILE_NAME
        self._clock = clock or SystemClock()

    def add(self, kind: ChangeKind, name: str, value: str | None) -> PendingChange:
        """Store a change; it replaces an earlier pending one of the same thing."""
        now = self._clock.now()
        code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARACTERS))
        change = PendingChange(code, kind, name, value, now, now + EXPIRY_SECONDS)

        def append(changes: list[PendingChange]) -> list[PendingChange]:
            others = [
                each
                for each in changes
                if each.state == "applied" or (each.kind, each.name) != (kind, name)
            ]
            if sum(each.state == "pending" for each in others) >= MAX_PENDING:
                raise UsageError(TOO_MANY)
            return [*others, change]

        self._update(append)
        return change

    def current(self) -> list[PendingChange]:
        """Pending changes, and those applied a short time ago, oldest first."""
        now = self._clock.now()
        return [change for change in self._read() if _is_current(change, now)]

    def find(self, code: str) -> PendingChange:
        """The pending change with this code, in any case of letters."""
        for change in self.current():
            if change.state == "pending" and change.code == code.strip().upper():
                return change
        raise UsageError(
            f"Unknown or expired code {code!r}. `hermes dashboard confirm` lists pending changes."
        )

    def mark_applied(self, code: str) -> None:
        """Record that a change was applied, without its value."""
        now = self._clock.now()
        self._update(
            lambda changes: [
                replace(change, applied_at=now, value=None) if change.code == code else change
                for change in changes
            ]
        )

    def remove(self, code: str) -> bool:
        """Forget a change; whether there was one."""
        before = {change.code for change in self.current()}
        self._update(lambda changes: [change for change in changes if change.code != code])
        return code in before

    def _update(self, change: Callable[[list[PendingChange]], list[PendingChange]]) -> None:
        with folder_locked(self.path.parent):
            write_json(self.path, [asdict(each) for each in change(self.current())])

    def _read(self) -> list[PendingChange]:
        rows = read_json(self.path, [], self._clock).value
        found = [_parse(row) for row in rows] if isinstance(rows, list) else []
        return [change for change in found if change is not None]


def _is_current(change: PendingChange, now: float) -> bool:
    if change.applied_at is not None:
        return now < change.applied_at + SHOWN_SECONDS
    # A clock that was set back must not prolong a request.
    return change.requested_at - EXPIRY_SECONDS <= now < change.expires_at


def _parse(row: Any) -> PendingChange | None:
    try:
        return PendingChange(**row)
    except TypeError:
        return None  # written by another release


# What is requested, in its stored form


class RequestedJob(NamedTuple):
    """A job that is created after a confirmation in a terminal."""

    schedule: str
    prompt: str
    name: str
    zone: str

    def to_text(self) -> str:
        """The stored form."""
        return json.dumps(self._asdict(), ensure_ascii=False)

    @classmethod
    def of_text(cls, text: str) -> RequestedJob:
        """The job of a stored form."""
        return cls(**json.loads(text))

    @property
    def summary(self) -> str:
        """One line for a person who decides about it."""
        zone = f" ({self.zone})" if self.zone else ""
        return f"{self.schedule}{zone}: {self.prompt}"


class RequestedServer(NamedTuple):
    """A server that is written into config.yaml after a confirmation in a terminal."""

    fields: JsonObject

    def to_text(self) -> str:
        """The stored form."""
        return json.dumps(self.fields, ensure_ascii=False)

    @classmethod
    def of_text(cls, text: str) -> RequestedServer:
        """The server of a stored form."""
        return cls(parse_object(text) or {})

    @property
    def summary(self) -> str:
        """One line for a person who decides about it; values of variables are hidden."""
        words = [text_in(self.fields, "command"), *map(str, list_in(self.fields, "args"))]
        target = without_password(text_in(self.fields, "url")) or shlex.join(words)
        hidden = [*object_in(self.fields, "env"), *object_in(self.fields, "headers")]
        return f"{target} (with {', '.join(hidden)})" if hidden else target


class RequestedRoute(NamedTuple):
    """A webhook route that is written after a confirmation, and the new value of its secret."""

    options: WebhookRouteOptions
    secret: str = ""  # empty: as it is

    def to_text(self) -> str:
        """The stored form."""
        fields: JsonObject = {"entry": self.options.fields(), "secret": self.secret}
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def of_text(cls, text: str) -> RequestedRoute:
        """The route of a stored form."""
        fields = parse_object(text) or {}
        return cls(parse_options(object_in(fields, "entry")), text_in(fields, "secret"))

    @property
    def summary(self) -> str:
        """One line for a person who decides about it; the secret is hidden."""
        new_secret = f", with a new value of {self.options.secret_env}" if self.secret else ""
        return f"{self.options.summary}{new_secret}"


class RequestedRole(NamedTuple):
    """The role before and after; a new person is approved with a pairing code."""

    old: str
    new: str
    code: str = ""

    def to_text(self) -> str:
        """The stored form."""
        return " ".join((self.old or "-", self.new, self.code)).strip()

    @classmethod
    def of_text(cls, text: str) -> RequestedRole:
        """The request of a stored form."""
        old, new, code, *_ = [*text.split(), "", "", ""]
        return cls("" if old == "-" else old, new, code)


# The value now, and the value after the change

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
