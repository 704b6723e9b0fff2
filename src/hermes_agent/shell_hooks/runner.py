"""Runs one command of a hook: event on stdin, time limit, bounded output, decision.

The command runs as the user, outside of the sandbox of the agent, without the secrets of
Hermes in its environment. Its process group is ended at the time limit.
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import subprocess
import threading
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from hermes_agent.shell_hooks.config import DECIDING_EVENTS
from hermes_agent.tools import process_groups
from hermes_core.json_values import object_in, parse_object, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hermes_agent.shell_hooks.config import ShellHook
    from hermes_core.json_values import JsonObject

log = logging.getLogger(__name__)

BLOCK_EXIT_CODE: Final = 2
SHELL_START_FAILURES: Final = (126, 127)  # exit codes of the shell
SIGNALLED: Final = 128  # plus the number of the signal
MAX_SIGNAL: Final = 64
MAX_OUTPUT_BYTES: Final = 64 * 1024
READ_BYTES: Final = 8192
DRAIN_SECONDS: Final = 1.0  # for output of a command that has left a process behind
GRACE_SECONDS: Final = 1.0
# Events whose plain output is added to the prompt.
CONTEXT_EVENTS: Final = frozenset({"SessionStart", "UserPromptSubmit"})


class HookResult(NamedTuple):
    """The decision of a command: a reason to block, text for the model, or a failure."""

    block: str = ""
    context: str = ""
    failure: str = ""
    has_answered: bool = True  # False if it did not start, was killed, took too long or is cut


def run_hook(
    hook: ShellHook, event: JsonObject, cwd: Path, environment: Mapping[str, str]
) -> HookResult:
    """Run a command and read its decision; never raises."""
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", hook.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        return HookResult(failure=f"cannot be started: {error.strerror}", has_answered=False)
    out, err = _Output(process.stdout), _Output(process.stderr)
    writer = threading.Thread(
        target=_write, args=(process.stdin, json.dumps(event).encode()), daemon=True
    )
    writer.start()
    try:
        code = process.wait(hook.timeout_seconds)
    except subprocess.TimeoutExpired:
        process_groups.end([process.pid], GRACE_SECONDS)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        failure = f"did not end within {hook.timeout_seconds:g} s"
        return HookResult(failure=failure, has_answered=False)
    finally:
        if process.poll() is None:
            process_groups.send(process.pid, signal.SIGKILL)
            process.wait()
    return read_decision(hook.event, code, out.text(), err.text())


def read_decision(event: str, code: int, out: str, err: str) -> HookResult:
    """The decision in the exit code and the output of a command.

    `allow` and `approve` mean that the hook has no objection: approvals are asked for anyway.
    """
    if code == BLOCK_EXIT_CODE:
        return HookResult(block=err.strip() or "A hook blocked this.")
    if code != 0:
        detail = (err.strip() or out.strip()).splitlines()[-1:]
        failure = f"exit code {code}{': ' if detail else ''}{''.join(detail)}"
        return HookResult(failure=failure, has_answered=not _is_without_answer(code))
    is_json = out.lstrip().startswith("{")
    document = parse_object(out) if is_json else None
    if is_json and document is None and event in DECIDING_EVENTS:
        failure = f"its JSON output cannot be read ({len(out)} characters)"
        return HookResult(failure=failure, has_answered=False)
    if document is None:
        return HookResult(context=out.strip() if event in CONTEXT_EVENTS else "")
    context = text_in(object_in(document, "hookSpecificOutput"), "additionalContext")
    if event == "Stop" and document.get("continue") is False:
        return HookResult(context=context)  # the turn is to end
    return HookResult(_objection(document), context)


def _is_without_answer(code: int) -> bool:
    """Whether an exit code means that a command did not start, or that a signal ended it."""
    return code < 0 or code in SHELL_START_FAILURES or SIGNALLED < code <= SIGNALLED + MAX_SIGNAL


def _objection(document: JsonObject) -> str:
    """The reason to block in the JSON output of a command; empty if there is none."""
    specific = object_in(document, "hookSpecificOutput")
    if document.get("continue") is False:
        return text_in(document, "stopReason") or "A hook stopped this."
    if text_in(document, "decision") in {"block", "deny"}:
        return text_in(document, "reason") or "A hook blocked this."
    reason = text_in(specific, "permissionDecisionReason")
    if text_in(specific, "permissionDecision") == "deny":
        return reason or "A hook denied this."
    if text_in(specific, "permissionDecision") == "ask":  # hooks cannot start a question here
        return f"A hook wants a person to decide this{': ' if reason else '.'}{reason}"
    return ""


class _Output:
    """Reads a pipe to its end in a thread, and keeps the beginning."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        self._kept = bytearray()
        self._pipe = pipe
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What was written; a process left behind is not waited for."""
        self._thread.join(DRAIN_SECONDS)
        return bytes(self._kept).decode(errors="replace")

    def _read(self) -> None:
        if self._pipe is None:
            return
        with self._pipe as pipe:
            while block := pipe.read1(READ_BYTES):  # type: ignore[attr-defined]
                self._kept += block[: MAX_OUTPUT_BYTES - len(self._kept)]


def _write(pipe: IO[bytes] | None, data: bytes) -> None:
    """Write the event; a command may end without reading it."""
    if pipe is None:
        return
    with contextlib.suppress(OSError):
        pipe.write(data)
    with contextlib.suppress(OSError):
        pipe.close()
