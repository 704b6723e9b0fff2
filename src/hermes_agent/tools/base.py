"""Tools: their interface, their arguments, their results."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.messages import ToolFunction, ToolSchema
    from hermes_agent.tools.prompter import Prompter
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonData, JsonObject, JsonValue

    Run = Callable[[JsonObject, "ToolContext"], str]


def unchanged_output(command: str, output: str, exit_code: int | None) -> str:
    """The output of a command where no plugin changes it."""
    del command, exit_code
    return output


def no_preparation(path: Path) -> None:
    """Before an edit of which nothing is kept."""
    del path


class ToolContext(NamedTuple):
    """The circumstances of a call, besides its arguments."""

    session_id: str
    turn_id: str
    call_id: str
    cwd: Path
    cancel: Cancel
    prompter: Prompter
    show: Callable[[str], None]  # output while it runs, for people
    filter_output: Callable[[str, str, int | None], str] = unchanged_output  # of a command
    before_edit: Callable[[Path], None] = no_preparation  # with the real path of a file
    is_review: bool = False  # a review of the conversation calls, not its turn


def never_only_reads(arguments: JsonObject, context: ToolContext) -> bool:
    """Of a tool that may change something."""
    del arguments, context
    return False


def always_reads(arguments: JsonObject, context: ToolContext) -> bool:
    """Of a tool that changes nothing."""
    del arguments, context
    return True


class Tool(NamedTuple):
    """Something the agent can do."""

    name: str
    description: str
    parameters: JsonObject
    run: Callable[[JsonObject, ToolContext], str]
    # Whether a call is known to change nothing; adjacent calls of this kind run together.
    only_reads: Callable[[JsonObject, ToolContext], bool] = never_only_reads
    is_offered: Callable[[], bool] | None = None  # whether the model sees it now; None: always

    def schema(self) -> ToolSchema:
        """The schema for the model."""
        function: ToolFunction = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


def success(**facts: JsonData) -> str:
    """A result as JSON; success is `error: null`."""
    facts.setdefault("error", None)
    return json.dumps(facts, ensure_ascii=False)


def failure(message: str, **facts: JsonData) -> str:
    """A failure as JSON."""
    return json.dumps({**facts, "error": message}, ensure_ascii=False)


def with_news(result: str, news: str, key: str = "background") -> str:
    """A result with what has happened in the background; unchanged without news."""
    if not news:
        return result
    try:
        document = json.loads(result)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return f"{result}\n\n{news}"
    return json.dumps({**document, key: news}, ensure_ascii=False)


def error_in(result: str) -> str | None:
    """The error of a result; None if it is not a JSON object with one."""
    if '"error"' not in result:
        return None
    try:
        document = json.loads(result)
    except ValueError:
        return None
    error = document.get("error") if isinstance(document, dict) else None
    return None if not error else error if isinstance(error, str) else json.dumps(error)


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
            return failure(describe_os_error(error, arguments.get("path")))
        except UnicodeEncodeError:
            return failure("The text contains characters that are not valid Unicode.")

    return answered


def describe_os_error(error: OSError, path: JsonValue = None) -> str:
    """An error of the system with the file it is about: *path* where only its name is known."""
    name = error.filename if isinstance(error.filename, str) else ""
    where = name if name.startswith("/") or not isinstance(path, str) else path
    return f"{error.strerror or error}{where and f': {where}'}"


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
