"""A tool result for people: how it ended, its output, its diff."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.classification.outcomes import classify_outcome, is_failure
from hermes_achievements.classification.tool_kinds import operation_of
from hermes_agent.permissions.approvals import DENIED_BY_USER, NOBODY_TO_ASK

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

PREVIEW_LINES: Final = 3
TODO_LINES: Final = 20
SHOWN_FIELDS: Final = ("output", "content", "todo")
DENIED: Final = "denied"
DONE: Final = "done"
FAILED: Final = "failed"


class ToolReport(NamedTuple):
    """A result as front ends show it."""

    is_failed: bool = False
    status: str = ""  # `denied` or an exit code other than 0
    lines: tuple[str, ...] = ()
    diff: str = ""
    preview_lines: int = PREVIEW_LINES  # shown before it is expanded

    @property
    def is_denied(self) -> bool:
        """Whether the call did not run, because it was not approved."""
        return self.status == DENIED

    def duration(self, seconds: float | None) -> str:
        """The duration; a denied call has none, its time is that of the question."""
        return "" if seconds is None or self.is_denied else f"{seconds:.1f} s"


def report_of(result: str) -> ToolReport:
    """The report of a result."""
    fields = _fields(result)
    if not fields:
        return ToolReport(lines=tuple(result.splitlines()))
    error, diff = fields.get("error"), fields.get("diff")
    if isinstance(error, str) and error.startswith((DENIED_BY_USER, NOBODY_TO_ASK)):
        said = error.removeprefix(DENIED_BY_USER).strip()
        lines = () if error.startswith(NOBODY_TO_ASK) or not said else (said,)
        return ToolReport(is_failed=True, status=DENIED, lines=lines)
    code = fields.get("exit_code")
    return ToolReport(
        is_failed=bool(error) or code not in {None, 0},
        status=f"exit code {code}" if code not in {None, 0} else "",
        lines=tuple(_readable(fields).splitlines()),
        diff=diff if isinstance(diff, str) else "",
        preview_lines=TODO_LINES if "todo" in fields else PREVIEW_LINES,
    )


def status_of(name: str | None, result: str) -> str:
    """How a call ended: `done`, `failed`, `denied`, or its exit code in words."""
    report = report_of(result)
    operation = operation_of(name) if name else ""
    has_failed = is_failure(classify_outcome(result.encode(errors="replace"), operation))
    return report.status or (FAILED if report.is_failed or has_failed else DONE)


def _readable(fields: JsonObject) -> str:
    """The error and the output, or all fields one per line."""
    error = fields.get("error")
    texts = [str(error)] if error else []
    has_output = any(isinstance(fields.get(name), str) for name in SHOWN_FIELDS)
    if has_output or error:
        texts += [str(fields[name]) for name in SHOWN_FIELDS if fields.get(name)]
        return "\n".join(texts)
    return "\n".join(f"{name}: {value}" for name, value in fields.items() if value is not None)


def _fields(result: str) -> JsonObject:
    try:
        document = json.loads(result)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
