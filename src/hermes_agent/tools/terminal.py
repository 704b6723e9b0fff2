"""`terminal` runs commands, `process` looks after those that run in the background."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from hermes_agent.sandbox.denials import find_denial
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    choice,
    failure,
    flag,
    number,
    parameter,
    reporting_errors,
    resolve_path,
    schema,
    success,
    text,
)
from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.sandbox.denials import Denial
    from hermes_agent.sandbox.policy import SandboxPolicy
    from hermes_agent.tools.base import ToolContext
    from hermes_agent.tools.jobs import CommandJob, Jobs
    from hermes_core.json_values import JsonData, JsonObject

TIMEOUT_EXIT_CODE = 124
INTERRUPTED_EXIT_CODE = 130
DEFAULT_SECONDS = 120
MAX_SECONDS = 3600
FINAL_OUTPUT_SECONDS = 0.2
INTERRUPT_GRACE_SECONDS = 0.5
TAIL_CHARACTERS = 8_000
RESTORED = (
    "Commands must not change the hooks of a git repository or settings that name programs, or "
    "create startup files. These files were restored: {files}"
)


class LimitsCommands(Protocol):
    """Decides under which limits commands run, and asks for those that they ran into."""

    def policy(
        self, command: str, cwd: Path, context: ToolContext, denial: Denial | None = None
    ) -> SandboxPolicy | None:
        """The limits of an allowed command; None for none."""

    def may_exceed(self, command: str, denial: Denial, context: ToolContext) -> bool:
        """Whether a person allows what the sandbox denied."""

    def only_reads(self, command: str, context: ToolContext) -> bool:
        """Whether a command is known to change nothing."""

    def is_hidden(self, path: Path, context: ToolContext) -> bool:
        """Whether a file is hidden from the tools."""

    def real_path(self, path: Path, context: ToolContext) -> Path:
        """The real path that was reviewed before the call, without symbolic links."""


def terminal_tools(jobs: Jobs, limits: LimitsCommands) -> list[Tool]:
    """The two tools that run programs."""
    return [
        Tool(
            "terminal",
            "Run a shell command in the working folder (`cd` does not last); returns stdout and "
            "stderr together, without the middle of more than 30,000 characters. No stdin. Calls "
            "of one answer run in order. For servers and long work set background, then `process`.",
            schema(
                "command",
                command=parameter("string"),
                timeout=parameter("integer", "seconds, default 120"),
                background=parameter("boolean"),
                cwd=parameter("string"),
            ),
            reporting_errors(
                lambda arguments, context: _terminal(jobs, limits, arguments, context)
            ),
            lambda arguments, context: _only_reads(limits, arguments, context),
        ),
        Tool(
            "process",
            "Manage background jobs.",
            schema(
                "action",
                action=parameter("string", enum=list(ACTIONS)),
                job=parameter("string"),
                timeout=parameter("integer", "seconds"),
            ),
            reporting_errors(lambda arguments, context: _process(jobs, arguments, context)),
        ),
    ]


def _only_reads(limits: LimitsCommands, arguments: JsonObject, context: ToolContext) -> bool:
    command = arguments.get("command")
    try:
        return isinstance(command, str) and limits.only_reads(command, context)
    except OSError:  # a path that cannot be looked up; the review of the call reports it
        return False


def _terminal(
    jobs: Jobs, limits: LimitsCommands, arguments: JsonObject, context: ToolContext
) -> str:
    command = text(arguments, "command")
    seconds = number(arguments, "timeout", DEFAULT_SECONDS, 1, MAX_SECONDS)
    cwd = resolve_path(text(arguments, "cwd", "."), context.cwd)
    if not cwd.is_dir():
        raise ToolError(f"{cwd} does not exist.")
    if not command.strip():
        raise ToolError("`command` is empty.")
    if context.cancel.is_requested:
        return failure("Interrupted before it started.", output="", exit_code=INTERRUPTED_EXIT_CODE)
    jobs.settle()
    policy = limits.policy(command, cwd, context)
    job, restored = jobs.start_watched(command, cwd, policy, context.cwd)
    if flag(arguments, "background"):
        jobs.follow(job)
        return success(job=job.id, pid=job.pid)
    result = _wait_for(jobs, job, seconds, context)
    restored += jobs.restore_files()
    if restored:
        return _result(result, restored)
    denial = find_denial(job.output.text(), policy, cwd) if policy and job.exit_code else None
    if denial is not None and not context.cancel.is_requested:
        if not limits.may_exceed(command, denial, context):
            reason = f"The sandbox denied this: the command {denial.reason}."
            return success(**result, sandbox=reason)
        policy = limits.policy(command, cwd, context, denial)
        job, _ = jobs.start_watched(command, cwd, policy, context.cwd)
        result = _wait_for(jobs, job, seconds, context)
        restored = jobs.restore_files()
    return _result(result, restored)


def _result(facts: dict[str, JsonData], restored: list[str]) -> str:
    if not restored:
        return success(**facts)
    return success(**facts, sandbox=RESTORED.format(files=", ".join(restored)))


def _wait_for(
    jobs: Jobs, job: CommandJob, seconds: int, context: ToolContext
) -> dict[str, JsonData]:
    """Let a command run to its end, its time limit, or a stop."""
    deadline = time.monotonic() + seconds
    _listen(job, context, deadline)
    if job.exit_code is not None and not context.cancel.is_requested:
        return _finished_result(jobs, job, context)
    is_stopped = context.cancel.is_requested
    job.end(*([INTERRUPT_GRACE_SECONDS] if is_stopped else []))
    last_words = time.monotonic() + FINAL_OUTPUT_SECONDS
    job.listen(lambda: time.monotonic() > last_words, lambda piece: _show(context, piece))
    jobs.leave(job)
    if is_stopped:
        why, code = f"Stopped: {context.cancel.reason}.", INTERRUPTED_EXIT_CODE
    else:
        why = f"Stopped after {seconds} s. Give a longer timeout, or run it in the background."
        code = TIMEOUT_EXIT_CODE
    output = context.filter_output(job.command, job.output.text(), code)
    return {"error": why, "output": output, "exit_code": code}


def _listen(job: CommandJob, context: ToolContext, deadline: float) -> None:
    def is_over() -> bool:
        return context.cancel.is_requested or time.monotonic() > deadline

    job.listen(is_over, lambda piece: _show(context, piece))


def _finished_result(jobs: Jobs, job: CommandJob, context: ToolContext) -> dict[str, JsonData]:
    output = context.filter_output(job.command, job.output.text(), job.exit_code)
    facts: dict[str, JsonData] = {"output": output, "exit_code": job.exit_code}
    if jobs.leave(job):
        facts["still_running"] = job.id
    return facts


def _show(context: ToolContext, piece: str) -> None:
    """What a front end does with output must not end a command."""
    attempt("show output", lambda: context.show(piece))


def _process(jobs: Jobs, arguments: JsonObject, context: ToolContext) -> str:
    action = choice(arguments, "action", tuple(ACTIONS))
    jobs.settle()
    jobs.restore_files()
    if action == "list":
        return success(jobs=[_job_fields(job) for job in jobs.all()])
    job = jobs.find(text(arguments, "job"))
    if action == "kill":
        job.end()
    if action == "wait":
        _wait(job, number(arguments, "timeout", 60, 0, MAX_SECONDS), context)
    job.is_awaited = job.is_awaited and job.is_running
    tail = job.output.tail(TAIL_CHARACTERS)
    output = context.filter_output(job.command, tail, job.exit_code)
    return success(**_job_fields(job), output=output)


def _wait(job: CommandJob, seconds: int, context: ToolContext) -> None:
    deadline = time.monotonic() + seconds
    while job.exit_code is None and time.monotonic() < deadline:
        if context.cancel.wait(0.05):
            return
    time.sleep(FINAL_OUTPUT_SECONDS if job.pipe_is_open else 0)


def _job_fields(job: CommandJob) -> dict[str, JsonData]:
    """A job that was left running after its command ended has an exit code and runs."""
    return {
        "job": job.id,
        "pid": job.pid,
        "command": job.command[:200],
        "running": job.is_running,
        "exit_code": job.exit_code,
        "seconds": round(job.seconds, 1),
    }


ACTIONS = ("list", "output", "kill", "wait")
