"""Every command that runs for the agent: started, watched, ended, none left behind.

A command is held at a gate until the watchdog knows its group. So there is no moment at
which our death, by SIGKILL too, leaves it running.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import os
import re
import select
import shutil
import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.sandbox.git_guard import GitGuard
from hermes_agent.sandbox.host_proxy import HostProxy
from hermes_agent.sandbox.namespaces import NetworkNamespace
from hermes_agent.sandbox.runner import ProgramLaunch, start_limited
from hermes_agent.sandbox.start_up_guard import StartUpGuard
from hermes_agent.sandbox.temporary import private_folder
from hermes_agent.tools import process_groups
from hermes_agent.tools.base import ToolError
from hermes_agent.tools.process_groups import Watchdog
from hermes_core.isolate import attempt
from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO

    from hermes_agent.sandbox.policy import SandboxPolicy

MAX_OUTPUT_CHARACTERS = 30_000
TEMPORARY = Path("/tmp")  # noqa: S108 - as sandboxed commands see the private folder
KEPT_PREFIX = "output-"


MAX_KEPT_CHARACTERS = 20_000_000
PRIVATE_MODE = 0o600


# Colours, cursor movements, titles and links of a terminal.
TERMINAL_CODE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
)


def without_terminal_codes(text: str) -> str:
    """A text as a terminal shows it: of a progress bar, its last state."""
    if "\x1b" in text:
        text = TERMINAL_CODE.sub("", text)
    return "\n".join(map(_last_state, text.split("\n"))) if "\r" in text else text


def _last_state(line: str) -> str:
    """A line without what a later part of it has overwritten."""
    shown = line.rstrip("\r")
    return shown.rpartition("\r")[2] + line[len(shown) :]


class KeptOutput:
    """A long output in a file, as far as it fits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = MAX_KEPT_CHARACTERS
        self._file: TextIO | None = None
        self.name = ""  # once it exists

    def write(self, text: str) -> None:
        """Append a text."""
        if self._file is None and not self.name:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self._path, flags, PRIVATE_MODE)
            self._file = os.fdopen(handle, "w", encoding="utf-8", newline="")
            self.name = self._path.name
        if self._file is not None:
            self._file.write(text[: self._left])
            self._file.flush()
            self._left -= len(text)
            if self._left <= 0:
                self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class OutputBuffer:
    """Text of any length in bounded memory: the head and the tail stay, a file has the whole."""

    def __init__(self, limit: int = MAX_OUTPUT_CHARACTERS, kept: KeptOutput | None = None) -> None:
        self._limit = limit
        self._kept = kept
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self.total = 0  # characters printed so far

    def feed(self, data: bytes, *, is_last: bool = False) -> str:
        """Take what was printed; gives back the text of it that is complete."""
        text = self._decoder.decode(data, is_last)
        self.total += len(text)
        if self._kept is not None:
            self._keep(self._kept, text, is_last=is_last)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += text[:room]
        self._keep_end(text[max(room, 0) :])
        return text

    def _keep(self, kept: KeptOutput, text: str, *, is_last: bool) -> None:
        if self.total > self._limit:
            before = "" if kept.name else self._head + self._end()  # nothing of it was cut yet
            attempt("keep an output", lambda: kept.write(before + text))
        if is_last:
            kept.close()

    def _keep_end(self, text: str) -> None:
        if not text:
            return
        self._tail.append(text[-self._tail_limit :])
        self._tail_length += len(self._tail[-1])
        while self._tail_length - len(self._tail[0]) >= self._tail_limit:
            self._tail_length -= len(self._tail.popleft())

    def _end(self) -> str:
        return "".join(self._tail)[-self._tail_limit :] if self._tail else ""

    def text(self) -> str:
        """All of it as plain text, or its head and tail with the number of characters cut."""
        return without_terminal_codes(self._text())

    def _text(self) -> str:
        end = self._end()
        cut = self.total - len(self._head) - len(end)
        if cut <= 0:
            return self._head + end
        name = "" if self._kept is None else self._kept.name
        where = f"; `read_file` shows all of it: {TEMPORARY / name}" if name else ""
        return f"{self._head}\n\n[… {cut:,} characters cut{where} …]\n\n{end}"

    def tail(self, characters: int) -> str:
        """The newest of it."""
        end = self._end()
        if len(end) < characters and self.total <= len(self._head) + len(end):
            end = self._head + end
        return without_terminal_codes(end[-characters:])


GRACE_SECONDS = 2.0
GUARD_SECONDS = 2.0  # for which the end waits for a command that is being started
POLL_SECONDS = 0.05
SANDBOX_END_SECONDS = 0.2
DRAIN_SECONDS = 0.3  # how long we listen to what a command left running
MAX_FINISHED_JOBS = 50
# The gate opens when a line comes; when we die before, `read` fails and nothing runs.
GATE_SCRIPT = 'read -r _ || exit 130; exec "$@" </dev/null'


class CommandJob:
    """One command, its group and what it printed."""

    def __init__(
        self, job_id: str, command: str, process: subprocess.Popen[bytes], kept: KeptOutput
    ) -> None:
        self.id = job_id
        self.command = command
        self.process = process
        self.started = time.monotonic()
        self.output = OutputBuffer(kept=kept)
        self._ended: float | None = None
        self.pipe_is_open = True
        self.is_awaited = False  # it runs in the background, and the model has not read its end

    @property
    def pid(self) -> int:
        """The process id of the leader, which is the number of the group, too."""
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """As shells count: 128 and the signal for one that a signal ended; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        return 128 - code if code < 0 else code

    @property
    def is_running(self) -> bool:
        """Whether the command, or anything it left in its group, still runs."""
        return self.process.poll() is None or process_groups.is_alive(self.pid)

    def runs_on(self) -> bool:
        """Whether it still runs, or left something running.

        The processes of a sandbox end a moment after its first one.
        """
        deadline = time.monotonic() + SANDBOX_END_SECONDS
        while self.is_running and self.process.poll() is not None:
            if self.pipe_is_open or time.monotonic() > deadline:
                return True
            time.sleep(POLL_SECONDS / 10)
        return self.is_running

    @property
    def seconds(self) -> float:
        """How long it has been running, or ran."""
        if self._ended is None and self.process.poll() is not None:
            self._ended = time.monotonic()
        return (self._ended or time.monotonic()) - self.started

    def end(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End the whole group."""
        process_groups.end([self.pid], grace_seconds)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1)

    def listen(self, until: Callable[[], bool], show: Callable[[str], object]) -> None:
        """Take what it prints until it ends or *until* returns true.

        A process that it left behind may hold the pipe open for ever; once the command
        itself has ended, output is read a little longer only.
        """
        quiet_at = None
        while self.pipe_is_open and not until():
            if text := self._read(POLL_SECONDS):
                show(text)
            if self.process.poll() is not None:
                quiet_at = quiet_at or time.monotonic() + DRAIN_SECONDS
                if time.monotonic() >= quiet_at:
                    return
        while not until():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=POLL_SECONDS)
                return

    def listen_on(self) -> None:
        """Take what it prints to the very end, so that no process blocks on a full pipe."""
        while self.pipe_is_open:
            self._read(None)
        self.process.wait()

    def _read(self, seconds: float | None) -> str:
        """What it printed, waited for at most so long."""
        if self.process.stdout is None:
            self.pipe_is_open = False
            return ""
        handle = self.process.stdout.fileno()
        if not select.select([handle], [], [], seconds)[0]:
            return ""
        data = os.read(handle, 65_536)
        if not data:
            self.pipe_is_open = False
            self.process.stdout.close()
        return self.output.feed(data, is_last=not data)


class Jobs:
    """All commands that run for one agent. Closing it ends every one of them.

    `close` may be called at any moment, twice, from a signal handler too: it waits only a
    moment for the lock of this object, and the thread that starts a command checks afterwards
    whether it was called.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        allowed_hosts: tuple[str, ...] = (),
    ) -> None:
        self._environment = environment
        self._temporary: Path | None = None
        self._proxy = HostProxy(allowed_hosts)
        self._namespace = NetworkNamespace(self._proxy)
        self._numbers = itertools.count(1)
        self._jobs: dict[str, CommandJob] = {}
        self._watchdog = Watchdog()
        self._git_guard = GitGuard()
        self._start_up_guard = StartUpGuard()
        self._guards_lock = threading.RLock()  # of both guards
        self._is_closed = False
        self._shell = system_program("bash") or "/bin/sh"

    @property
    def temporary(self) -> Path:
        """The private folder that commands see as /tmp; removed with this object."""
        if self._temporary is None:
            self._temporary = private_folder()
        return self._temporary

    def kept_output(self, path: Path) -> Path | None:
        """The file with a whole output, by the path that its result names."""
        is_kept = path.parent == TEMPORARY and path.name.startswith(KEPT_PREFIX)
        return self.temporary / path.name if is_kept else None

    def start(self, command: str, cwd: Path, policy: SandboxPolicy | None = None) -> CommandJob:
        """Run *command* in a process group of its own, under the limits of *policy*."""
        if "\0" in command:
            raise ToolError("A command cannot contain NUL characters.")
        if self._is_closed:
            raise ToolError("Hermes is shutting down; no new work is started.")
        launch = ProgramLaunch(
            command=(self._shell, "-c", command),
            cwd=cwd,
            policy=policy,
            environment=os.environ if self._environment is None else self._environment,
            gate=("/bin/sh", "-c", GATE_SCRIPT, "hermes-gate"),
            namespace=self._namespace,
            options={
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.STDOUT,
                "start_new_session": True,
            },
        )
        process = start_limited(launch)
        job_id = f"job{next(self._numbers)}"
        # A name that no earlier process has used in this conversation.
        kept = KeptOutput(self.temporary / f"{KEPT_PREFIX}{job_id}-{os.urandom(3).hex()}.txt")
        job = CommandJob(job_id, command, process, kept)
        self._jobs[job.id] = job
        try:
            self._watchdog.guard(job.pid)
            if self._is_closed:
                raise ToolError("Hermes is shutting down; no new work is started.")
        except (OSError, ToolError):
            self._abandon(job)
            raise
        _open_gate(process)
        return job

    def start_reader(
        self, command: Sequence[str], cwd: Path, policy: SandboxPolicy | None
    ) -> subprocess.Popen[bytes]:
        """Start a program of a tool in a process group of its own; the caller ends it."""
        return start_limited(
            ProgramLaunch(
                command=command,
                cwd=cwd,
                policy=policy,
                environment=os.environ if self._environment is None else self._environment,
                options={
                    "stdin": subprocess.DEVNULL,
                    "stdout": subprocess.PIPE,
                    "stderr": subprocess.PIPE,
                    "start_new_session": True,
                },
            )
        )

    def _abandon(self, job: CommandJob) -> None:
        """A command that has not left the gate is not running."""
        for pipe in (job.process.stdin, job.process.stdout):
            if pipe is not None:
                pipe.close()
        self._end_all([job])
        self.forget(job)
        if self._is_closed:
            self._watchdog.close()

    def follow(self, job: CommandJob) -> None:
        """Keep a command that runs in the background, and read its output."""
        job.is_awaited = True
        threading.Thread(target=job.listen_on, name=f"hermes {job.id}", daemon=True).start()
        for old in [item for item in self.all() if not item.is_running][:-MAX_FINISHED_JOBS]:
            self.forget(old)

    def forget(self, job: CommandJob) -> None:
        """Forget a finished command."""
        self._watchdog.release(job.pid)
        self._jobs.pop(job.id, None)

    def leave(self, job: CommandJob) -> bool:
        """Stop waiting for a command; whether something of it runs on.

        Processes that still hold its pipe are read from, or they would end when they print.
        """
        runs_on = job.runs_on()
        if job.pipe_is_open:
            self.follow(job)
        if not runs_on:
            self.forget(job)
        job.is_awaited = runs_on
        return runs_on

    def pop_news(self) -> str:
        """Which background jobs have ended since the last call, a line for each; or empty."""
        ended = [job for job in self.all() if job.is_awaited and not job.is_running]
        for job in ended:
            job.is_awaited = False
        commands = {job.id: " ".join(job.command.split())[:100] for job in ended}
        return "\n".join(
            f"Background {job.id} (`{commands[job.id]}`) has ended with exit code "
            f"{job.exit_code}; `process` shows its output."
            for job in ended
        )

    def find(self, job_id: str) -> CommandJob:
        """The job of that name."""
        job = self._jobs.get(job_id)
        if job is None:
            known = ", ".join(self._jobs) or "none"
            raise ToolError(f"Unknown job {job_id!r}; running: {known}.")
        return job

    def all(self) -> list[CommandJob]:
        """Every job, the oldest first."""
        return list(self._jobs.values())

    @property
    def watchdog_pid(self) -> int | None:
        """The process that ends the rest should we be killed; None before the first command."""
        return self._watchdog.pid

    def start_watched(
        self, command: str, cwd: Path, policy: SandboxPolicy | None, workspace: Path
    ) -> tuple[CommandJob, list[str]]:
        """Start a command, and watch the files that it must not change.

        Returns it, and the files that an earlier command changed and that were restored. The
        watch and the start are one step: a parallel command that ends would end the watch.
        """
        with self._guards_lock:
            restored = self._restore()
            self._watch(policy, workspace)
            return self.start(command, cwd, policy), restored

    def _watch(self, policy: SandboxPolicy | None, workspace: Path) -> None:
        if policy is not None:
            self._start_up_guard.begin(policy.protected)
        if policy is None or not policy.protects_git:
            self._git_guard = GitGuard()  # the user allowed a command to change hooks
        else:
            self._git_guard.begin(workspace, keeps=any(job.is_running for job in self.all()))

    def restore_files(self) -> list[str]:
        """Undo changes of hooks and new startup files since the last command; their paths.

        After the last running command the user may change them again.
        """
        with self._guards_lock:
            return self._restore()

    def _restore(self) -> list[str]:
        is_over = not any(job.is_running for job in self.all())
        restored = self._git_guard.restore() + self._start_up_guard.restore()
        if is_over:
            self._git_guard.end()
            self._start_up_guard.end()
        return restored

    def settle(self) -> None:
        """Tell the watchdog which groups are over; their numbers may come back."""
        for job in self.all():
            if not job.is_running:
                self._watchdog.release(job.pid)

    def close(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End everything that is left."""
        self._is_closed = True
        self._end_all(self.all(), grace_seconds)
        has_lock = self._guards_lock.acquire(timeout=GUARD_SECONDS)
        try:
            self._restore()
        finally:
            if has_lock:
                self._guards_lock.release()
        self._watchdog.close()
        self._namespace.close()
        self._proxy.close()
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)

    def _end_all(self, jobs: list[CommandJob], grace_seconds: float = GRACE_SECONDS) -> None:
        running = [job for job in jobs if job.is_running]
        process_groups.end([job.pid for job in running], grace_seconds)
        for job in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.process.wait(timeout=1)
        for job in jobs:
            self._watchdog.release(job.pid)


def _open_gate(process: subprocess.Popen[bytes]) -> None:
    """A command that was ended at the gate has closed it from the other side."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(b"go\n")
            process.stdin.flush()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
