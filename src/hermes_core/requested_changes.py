"""MCP servers and roles that a web page has requested, as pending changes store them."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from hermes_core.json_values import list_in, object_in, parse_object, text_in

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject


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
        target = _without_password(text_in(self.fields, "url")) or shlex.join(words)
        hidden = [*object_in(self.fields, "env"), *object_in(self.fields, "headers")]
        return f"{target} (with {', '.join(hidden)})" if hidden else target


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return url if host == parts.netloc else urlunsplit(parts._replace(netloc=f"…@{host}"))


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
