"""Text on its way through JSON, and the form in which errors are told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

MAX_ROW_ID: Final = 2**63 - 1


def carriable(value: Any) -> Any:
    """Text that UTF-8 can carry, whatever a file of another program holds in its place."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if not isinstance(value, str):
        return str(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode(errors="backslashreplace").decode()
    return value


def moment_of(value: Any) -> Any:
    """Seconds since 1970, of what a file of another process says; None if it is no moment."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return None
    return value if isinstance(value, (int, float)) else None


Words = Annotated[str, BeforeValidator(carriable)]
# What a caller may name: an id, the beginning of one, or a title.
Named = Annotated[str, StringConstraints(min_length=1, max_length=300)]
MessageId = Annotated[int, Field(ge=0, le=MAX_ROW_ID)]
NotedMoment = Annotated[float | None, BeforeValidator(moment_of)]
Moment = Annotated[float, Field(allow_inf_nan=False)]


class ProblemView(BaseModel):
    """The error and how to fix it."""

    detail: str


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The errors that an endpoint documents."""
    return {code: {"model": ProblemView, "description": MEANINGS[code]} for code in codes}


MEANINGS: Final = {
    400: "The request is invalid.",
    403: "Not allowed from a page.",
    404: "Not found.",
    409: "Conflict with the current state.",
    413: "The body is too large.",
    429: "Too many attempts; try again later.",
    503: "The store is currently unavailable.",
}
