"""What the model passed to a tool, read with care; what it did wrong becomes an answer."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.tools.base import failure
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.tools.base import ToolContext
    from hermes_core.json_values import JsonObject, JsonValue

    Run = Callable[[JsonObject, ToolContext], str]


class ToolError(HermesError):
    """A tool cannot do what was asked; the text goes to the model."""


def reporting_errors(run: Run) -> Run:
    """Make a failure of *run* an answer: of its arguments, of files, of the system."""

    @functools.wraps(run)
    def answered(arguments: JsonObject, context: ToolContext) -> str:
        try:
            return run(arguments, context)
        except ToolError as error:
            return failure(str(error))
        except OSError as error:
            return failure(describe_os_error(error))
        except UnicodeEncodeError:
            return failure("The text contains characters that are not valid Unicode.")

    return answered


def describe_os_error(error: OSError) -> str:
    """An error of the system with the file it is about."""
    where = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{where}"


def text(arguments: JsonObject, name: str, default: str | None = None) -> str:
    """A text; one without a default must be given."""
    value = arguments.get(name)
    if value is None:
        value = default
    if not isinstance(value, str):
        raise ToolError(
            f"`{name}` must be a string." if value is not None else f"`{name}` is missing."
        )
    return value


def choice(arguments: JsonObject, name: str, choices: tuple[str, ...]) -> str:
    """One of a few words; the first is the default."""
    value = arguments.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise ToolError(f"`{name}` must be one of {', '.join(choices)}.")
    return str(value)


def number(arguments: JsonObject, name: str, default: int, low: int, high: int) -> int:
    """A whole number, brought into its bounds; models like to write it as a text."""
    value = arguments.get(name)
    if value is None or value == "":
        return default
    try:
        wanted = int(float(value if isinstance(value, int | float) else str(value)))
    except (ValueError, OverflowError):
        raise ToolError(f"`{name}` must be a number.") from None
    return max(low, min(high, wanted))


def flag(arguments: JsonObject, name: str) -> bool:
    """Yes or no; no when it is not given."""
    value = arguments.get(name)
    if isinstance(value, str):
        return value.strip().lower() in {"true", "yes", "1"}
    return bool(value)


def resolve_path(path: str, cwd: Path) -> Path:
    """A path as the model wrote it: relative to *cwd*, `~` is the home folder."""
    if not path.strip() or "\0" in path:
        raise ToolError("`path` is not a path.")
    try:
        wanted = Path(path).expanduser()
    except RuntimeError:
        raise ToolError(f"Unknown user in {path}.") from None
    return cwd / wanted


def schema(required: str, **properties: JsonValue) -> JsonObject:
    """The parameters of a tool as a JSON schema; *required* names those that must be given."""
    return {"type": "object", "properties": properties, "required": [*required.split()]}


def parameter(kind: str, description: str = "", **more: JsonValue) -> JsonObject:
    """One parameter."""
    return {"type": kind, **({"description": description} if description else {}), **more}
