"""Failed shell hooks, in a file: another process lists them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import folder_locked
from hermes_core.clock import SystemClock
from hermes_core.isolate import attempt
from hermes_core.json_files import read_json, write_json
from hermes_core.json_values import number_in, text_in
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from hermes_agent.shell_hooks.config import ShellHook
    from hermes_core.json_values import JsonObject

log = logging.getLogger(__name__)

FAILURES_FILE: Final = "hook_failures.json"
MAX_FAILURES: Final = 100


class HookFailure(NamedTuple):
    """The last failure of a hook."""

    error: str
    times: int
    last_at: int


def record_failure(hook: ShellHook, error: str) -> None:
    """Log a failure and keep it for `hermes hooks list`."""
    log.warning("shell hook failed: %s: %s", hook.label, error)
    attempt("keep the failure of a shell hook", lambda: _keep(hook, error))


def failures() -> dict[str, HookFailure]:
    """The last failure of each hook by its label."""
    return {
        label: HookFailure(text_in(row, "error"), number_in(row, "count"), number_in(row, "at"))
        for label, row in _rows().items()
        if isinstance(row, dict)
    }


def _keep(hook: ShellHook, error: str) -> None:
    path = hermes_home() / FAILURES_FILE
    with folder_locked(path.parent):
        rows = _rows()
        before = rows.pop(hook.label, None)
        count = number_in(before, "count") if isinstance(before, dict) else 0
        at = int(SystemClock().now())
        rows[hook.label] = {"error": error, "count": count + 1, "at": at}
        write_json(path, dict(list(rows.items())[-MAX_FAILURES:]))


def _rows() -> JsonObject:
    value = read_json(hermes_home() / FAILURES_FILE, {}, SystemClock()).value
    return value if isinstance(value, dict) else {}
