"""Field types for JSON, and the models of errors and progress."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

MAX_ROW_ID: Final = 2**63 - 1


def encodable_text(value: Any) -> Any:
    """Any stored value as text that UTF-8 can encode."""
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


def timestamp_of(value: Any) -> Any:
    """The Unix timestamp of a value written by another process, or None."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return None
    return value if isinstance(value, (int, float)) else None


Text = Annotated[str, BeforeValidator(encodable_text)]
# An ID, the beginning of an ID, or a title.
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=300)]
MessageId = Annotated[int, Field(ge=0, le=MAX_ROW_ID)]
OptionalTimestamp = Annotated[float | None, BeforeValidator(timestamp_of)]
Timestamp = Annotated[float, Field(allow_inf_nan=False)]
Rounded = Annotated[int, BeforeValidator(round)]
Dollars = Annotated[float, BeforeValidator(lambda amount: round(amount, 6))]


class ProblemView(BaseModel):
    """The error and how to fix it."""

    detail: str
    field: str | None = Field(default=None, description="the field of the body that is wrong")


class ProgressView(BaseModel):
    """Progress of an operation."""

    done: int
    total: int


class View(BaseModel):
    """A part of a response that is made from a row with the same fields."""

    model_config = ConfigDict(from_attributes=True)


Responses = dict[int | str, dict[str, Any]]  # as FastAPI documents them


def problems(*codes: int) -> Responses:
    """The documented error responses of an endpoint."""
    return {code: {"model": ProblemView, "description": ERROR_DESCRIPTIONS[code]} for code in codes}


ERROR_DESCRIPTIONS: Final = {
    400: "The request is invalid.",
    403: "Not allowed from a page.",
    404: "Not found.",
    409: "Conflict with the current state.",
    413: "The body is too large.",
    429: "Too many attempts; try again later.",
    503: "The store is currently unavailable.",
}
