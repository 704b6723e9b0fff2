"""Parsing and validation of setting values.

A value is text (command line, environment) or a YAML value; `parse_value` handles both
with the same rules. yes, no, on and off are booleans, because configurations written for
YAML 1.1 use them.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_core.config.schema import Setting, Value

PASSWORD_IN_URL = re.compile(r"://[^/@]*:[^/@]*@|\bpassword\s*=", re.IGNORECASE)
DATABASE_URL = re.compile(r"(postgres(ql)?://|[a-z_]+=\S).*")
FORMATS = {
    "url": "a URL that starts with http:// or https://",
    "database_url": (
        "postgresql://USER@HOST/DATABASE or service=NAME; the password is store.password"
    ),
}
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True} | {
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def find_setting(table: Sequence[Setting], name: str) -> Setting:
    """The setting called *name*; the error suggests the most similar name."""
    for setting in table:
        if setting.name == name:
            return setting
    raise ConfigError(
        f"Unknown setting {name!r}.{did_you_mean(name, (s.name for s in table))} "
        "`hermes config list` shows all of them."
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence (with a leading space) that suggests the most similar name, or ''."""
    import difflib  # noqa: PLC0415 - only a misspelt name needs it

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


def parse_value(setting: Setting, raw: object, where: str = "") -> Value:
    """*raw* as a value of this setting; *where* names its file or variable in the error."""
    value = _convert(setting, raw)
    if value is None or not _in_range(setting, value):
        shown = "a URL with a password" if _has_password(setting, raw) else _shorten(raw)
        raise ConfigError(
            f"{setting.name}{where and f' in {where}'} is {shown}; "
            f"it must be {describe_allowed(setting)}."
        )
    return value


def describe_allowed(setting: Setting) -> str:
    """A description of the values that the setting accepts."""
    if setting.kind == "choice":
        return "one of " + ", ".join(setting.choices)
    if setting.format == "time_zone":
        return "a time zone such as Europe/Berlin or UTC, or empty for the system's"
    if setting.format:
        return FORMATS[setting.format]
    noun = {
        "bool": "true or false",
        "int": "a whole number",
        "float": "a number",
        "str": "text",
        "list": "a list of names",
    }[setting.kind]
    return noun + _describe_range(setting)


def format_value(value: Value) -> str:
    """*value* in the syntax of `hermes config set`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)


def _describe_range(setting: Setting) -> str:
    low, high = setting.minimum, setting.maximum
    if low is not None and high is not None:
        return f" from {low:.12g} to {high:.12g}"
    if low is not None:
        return f" of at least {low:.12g}"
    if high is not None:
        return f" of at most {high:.12g}"
    return ""


def _shorten(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= 80 else text[:77] + "..."


def _has_password(setting: Setting, raw: object) -> bool:
    return setting.format == "database_url" and PASSWORD_IN_URL.search(str(raw)) is not None


def _in_range(setting: Setting, value: Value) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    low, high = setting.minimum, setting.maximum
    return (low is None or value >= low) and (high is None or value <= high)


def _convert(setting: Setting, raw: object) -> Value | None:
    if setting.kind == "choice":
        return _choice(setting, raw)
    if setting.format:
        return _formatted(setting, raw)
    readers: dict[str, Callable[[object], Value | None]] = {
        "bool": _bool,
        "int": _int,
        "float": _float,
        "str": _str,
        "list": _list,
    }
    return readers[setting.kind](raw)


def _bool(raw: object) -> bool | None:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, (str, int)):
        return _BOOLEANS.get(str(raw).strip().lower())
    return None


def _int(raw: object) -> int | None:
    number = _float(raw)
    if number is None or number != int(number):
        return None
    return int(number)


def _float(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        return None
    try:
        number = float(raw)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _str(raw: object) -> str | None:
    if isinstance(raw, str):
        return str(raw)
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return str(raw)
    return None


def _formatted(setting: Setting, raw: object) -> str | None:
    if setting.format == "time_zone":
        return _time_zone(raw)
    text = _str(raw)
    if not text or not (text := text.strip()):
        return text
    if setting.format == "url":
        return text if is_url(text) else None
    is_database = DATABASE_URL.fullmatch(text) is not None
    return text if is_database and not _has_password(setting, text) else None


def is_url(text: str) -> bool:
    """Whether a text is the URL of an HTTP server."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - most have no such setting

    try:
        parts = urlsplit(text)
        port = parts.port  # ValueError if it is not a number
    except ValueError:
        return False
    has_host = parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0
    return has_host and text.isprintable() and " " not in text


def _time_zone(raw: object) -> str | None:
    from hermes_core.time_zones import find_zone  # noqa: PLC0415 - most have no such setting

    name = _str(raw)
    if name:
        try:
            find_zone(name)
        except ConfigError:
            return None
    return name


def _choice(setting: Setting, raw: object) -> str | None:
    if not isinstance(raw, str):
        return None
    choice = raw.strip().lower()
    choice = dict(setting.old_choices).get(choice, choice)
    return choice if choice in setting.choices else None


def _list(raw: object) -> tuple[str, ...] | None:
    if isinstance(raw, str):
        inner = raw.strip()
        if inner.startswith("[") and inner.endswith("]"):
            inner = inner[1:-1]
        names = [name.strip().strip("\"'") for name in inner.split(",")]
        return tuple(dict.fromkeys(name for name in names if name))
    if not isinstance(raw, (list, tuple)):
        return None
    items = [_str(item) for item in raw]
    if any(item is None for item in items):
        return None
    return tuple(dict.fromkeys(item for item in items if item))
