"""What is wrong with the values of a request, in sentences for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NotRequired, TypedDict, get_args

from pydantic_core.core_schema import ErrorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.json_values import JsonObject


class InvalidValue(TypedDict):
    """A problem as pydantic reports it."""

    type: str
    loc: tuple[int | str, ...]
    msg: str
    ctx: NotRequired[JsonObject]  # what the value is limited to


REQUIRED: Final = "A value is required."
INTEGER: Final = "Must be a whole number."
NUMBER: Final = "Must be a number."
BOOLEAN: Final = "Must be true or false."
OTHER: Final = "This value is not valid."
# The kinds of problems whose messages are pydantic's; those of Hermes have plain ones.
FOREIGN_KINDS: Final = frozenset(get_args(ErrorType))
# By the kind of the problem; braces are what it is limited to.
MESSAGES: Final[Mapping[str, str]] = {
    "missing": REQUIRED,
    "string_too_short": "At least {min_length:,} characters.",
    "string_too_long": "At most {max_length:,} characters.",
    "string_type": "Must be text.",
    "string_pattern_mismatch": "This value does not have the right format.",
    "string_unicode": "Contains characters that cannot be stored.",
    "too_short": "At least {min_length:,} entries.",
    "too_long": "At most {max_length:,} entries.",
    "list_type": "Must be a list.",
    "greater_than": "Must be more than {gt:,}.",
    "greater_than_equal": "Must be at least {ge:,}.",
    "less_than": "Must be less than {lt:,}.",
    "less_than_equal": "Must be at most {le:,}.",
    "int_type": INTEGER,
    "int_parsing": INTEGER,
    "int_parsing_size": INTEGER,
    "int_from_float": INTEGER,
    "float_type": NUMBER,
    "float_parsing": NUMBER,
    "finite_number": NUMBER,
    "bool_type": BOOLEAN,
    "bool_parsing": BOOLEAN,
    "literal_error": "Must be {expected}.",
    "enum": "Must be {expected}.",
    "extra_forbidden": "This field does not exist.",
    "json_invalid": "The request is not valid JSON.",
}


def message_of(problem: InvalidValue) -> str:
    """What is wrong with a value."""
    kind, limits = problem["type"], problem.get("ctx") or {}
    if kind == "string_too_short" and limits.get("min_length") == 1:
        return REQUIRED
    if kind not in FOREIGN_KINDS:
        return problem["msg"]
    return MESSAGES.get(kind, OTHER).format(**limits)
