"""Signals and the exit of `hermes chat`."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_cli import history
from hermes_core.config.file import ConfigFile
from hermes_core.isolate import Step, run_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_conversation.conversation import Conversation

DOUBLE_INTERRUPT_SECONDS: Final = 2.0
INTERRUPT_RETRY_SECONDS: Final = 0.5
MAX_FIRST_SCAN_SESSIONS: Final = 300


def report_new_achievements(out: CommandOutput) -> None:
    """Print new achievements on a terminal, unless the scan would take long."""
    if not out.is_watched:
        return
    from hermes_cli.commands.achievements import display  # noqa: PLC0415 - only on a terminal
    from hermes_cli.commands.achievements.report import open_report  # noqa: PLC0415 - as above
    from hermes_conversation import achievements  # noqa: PLC0415 - only on a terminal

    settings = ConfigFile.of_home().settings()
    if not (achievements.is_enabled() and settings.get_bool("achievements.notify")):
        return
    is_first = achievements.service().current() is None
    if is_first:
        with history.open_for_reading() as db:
            if db.lists.session_count() > MAX_FIRST_SCAN_SESSIONS:
                return  # the first scan would take too long
    with open_report(out) as report:
        if report.news["count"]:
            out.note(display.notice_text({**report.news, "is_first_scan": False}))


class ChatShutdown:
    """Handles signals and ends the conversation on exit.

    Signal handlers only enqueue a request, without a lock; a thread forwards it to the agent.
    The turn then stores its output and ends, and the row is ended on exit.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._requests: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._is_busy = False
        self._interrupted_at = 0.0
        self._is_prompting = False
        self.code = 0  # the exit code of a terminating signal
        self.is_exiting = False
        self._previous_handlers = dict(self._install())

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Defer shutdown requests until the turn has stored its output."""
        self._interrupted_at = 0.0
        forwarder = threading.Thread(
            target=self._forward_requests, name="hermes-signals", daemon=True
        )
        forwarder.start()
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False
            self._requests.put(None)
            forwarder.join(timeout=5)

    @contextlib.contextmanager
    def prompt(self) -> Iterator[None]:
        """Raise KeyboardInterrupt on Ctrl+C while a line is read."""
        self._is_prompting = True
        try:
            yield
        finally:
            self._is_prompting = False

    def _forward_requests(self) -> None:
        """Interrupt the turn on request; repeat it for a turn that has only just started."""
        reason: str | None = ""
        while reason is not None:
            with contextlib.suppress(queue.Empty):
                reason = self._requests.get(timeout=INTERRUPT_RETRY_SECONDS if reason else None)
            if reason:
                self._conversation.agent.interrupt(reason)

    def is_second_interrupt(self) -> bool:
        """Whether Ctrl+C was pressed twice in a short time."""
        now = time.monotonic()
        is_second = now - self._interrupted_at < DOUBLE_INTERRUPT_SECONDS
        self._interrupted_at = now
        return is_second

    def _install(self) -> Iterator[tuple[int, Any]]:
        yield signal.SIGINT, signal.signal(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            yield number, signal.signal(number, self._end)

    def _interrupt(self, _number: int, _frame: object) -> None:
        """Interrupt the turn on the first Ctrl+C; exit on the second."""
        if self._is_prompting:
            raise KeyboardInterrupt
        if self.is_second_interrupt():
            self.is_exiting = True
            raise KeyboardInterrupt
        if self._is_busy:
            self._requests.put("interrupted")

    def _end(self, number: int, _frame: object) -> None:
        self.is_exiting = True
        self.code = 128 + number
        if not self._is_busy:
            raise SystemExit(self.code)
        self._requests.put(signal.Signals(number).name)

    def finish(self, out: CommandOutput, *, is_interactive: bool) -> None:
        """Stop the agent, end the conversation's row, notify plugins."""
        existed = self._conversation.exists
        jobs = self._conversation.bundle.jobs.all()
        stopped = [job.command[:100] for job in jobs if job.is_running]
        steps = [
            Step("leave the conversation", lambda: self._conversation.leave("cli_close")),
            Step("notify plugins", lambda: history.deliver_events(self._conversation.db)),
        ]
        if is_interactive and existed and not self.is_exiting:
            steps.append(Step("report new achievements", lambda: report_new_achievements(out)))
        run_all(steps)
        for command in stopped:
            out.note(f"Stopped a background job: {command}")
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        if is_interactive and existed:
            out.note(f"To continue: `hermes chat -r {self._conversation.session_id}`")
