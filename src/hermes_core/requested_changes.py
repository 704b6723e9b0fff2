"""MCP servers, webhook routes and roles that a web page requested, in their stored form."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.config.webhook_routes import WebhookRouteOptions, parse_options, without_password
from hermes_core.json_values import list_in, object_in, parse_object, text_in

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject


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
