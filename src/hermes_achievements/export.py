"""What has been earned, as a file: JSON, Markdown, or a picture.

Exports are made to be shown around, so no conversation is named in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from hermes_achievements import markdown
from hermes_achievements.pictures import badges, raster
from hermes_achievements.pictures.card import card
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_achievements.catalogue import Catalogue

    Snapshot = Mapping[str, Any]

__all__ = ["FORMATS", "Exported", "card", "render"]

COUNTS: Final = ("unlocked_count", "discovered_count", "secret_count", "total_count")
STEP: Final = frozenset({"tier", "value", "at"})  # of a tier's history, for everybody


class Exported(NamedTuple):
    """A file to be handed out."""

    name: str
    media_type: str
    content: bytes


def render(snapshot: Snapshot, catalogue: Catalogue, form: str) -> Exported:
    """What has been earned, in the form asked for."""
    kind = KINDS.get(form.lower())
    if kind is None:
        raise UsageError(f"format is {form!r}; accepted: {', '.join(FORMATS)}")
    return Exported(kind.name, kind.media_type, kind.write(snapshot, catalogue))


def _json(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    del catalogue
    public = {
        "generated_at": snapshot["generated_at"],
        **{name: snapshot[name] for name in COUNTS},
        "achievements": [_public(one) for one in snapshot["achievements"]],
    }
    return orjson.dumps(public, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _public(one: Mapping[str, Any]) -> dict[str, Any]:
    """An achievement without the conversations that earned it."""
    shown = {name: value for name, value in one.items() if name != "evidence"}
    if "tier_history" in shown:
        shown["tier_history"] = [
            {name: step[name] for name in step if name in STEP} for step in one["tier_history"]
        ]
    return shown


def _markdown(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return markdown.page(snapshot, catalogue).encode(errors="replace")


def _svg(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return badges.wall(snapshot, catalogue).encode()


def _png(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return raster.png(badges.wall(snapshot, catalogue))


class _Kind(NamedTuple):
    name: str
    media_type: str
    write: Callable[[Snapshot, Catalogue], bytes]


KINDS: Final = {
    "json": _Kind("achievements.json", "application/json", _json),
    "markdown": _Kind("achievements.md", "text/markdown; charset=utf-8", _markdown),
    "svg": _Kind("achievements.svg", "image/svg+xml", _svg),
    "png": _Kind("achievements.png", "image/png", _png),
}
FORMATS: Final = tuple(KINDS)
