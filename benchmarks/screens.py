"""The terminal UI: CPU time until the prompt, and for each key in a long conversation."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from figures import Figure, median
from hermes_state import SessionDB
from window import Window

if TYPE_CHECKING:
    from surroundings import BenchmarkContext

STARTS: Final = 10
KEYS: Final = 60
SETTLING_KEYS: Final = 20
QUICK_KEYS: Final = 2
KEY_SECONDS: Final = 0.1  # between two keys, like a fast typist
MESSAGES: Final = (100, 1_000)
QUICK_MESSAGES: Final = (100,)
TYPING: Final = "abcdefghij"
UNUSED_MODEL: Final = "http://127.0.0.1:9/v1#m"  # no request is sent
CHAT: Final = ("chat", "--model", UNUSED_MODEL)
ANSWER: Final = "A paragraph with *some* `marks` in it.\n\n* a list\n* of two\n"
MAX_CHAT_START_SECONDS: Final = 0.5
MAX_TUI_START_SECONDS: Final = 0.7
MAX_KEY_MILLISECONDS: Final = 5.0


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    with context.home():
        rounds = context.rounds(STARTS)
        bare = median([_bare() for _ in range(rounds)])
        chat = median([_start(CHAT, "\N{GREATER-THAN SIGN}") for _ in range(rounds)])
        screen = median([_start(_tui(), "F1 keys") for _ in range(rounds)])
        counts = QUICK_MESSAGES if context.is_quick else MESSAGES
        short, *longer = (_key(context, count) for count in (2, *counts))
    return [
        Figure("hermes chat to its prompt, CPU", chat, "s", bare, MAX_CHAT_START_SECONDS),
        Figure("hermes tui to its prompt, CPU", screen, "s", bare, MAX_TUI_START_SECONDS),
        Figure("key in a new conversation, CPU", short, "ms"),
        *(
            Figure(f"key at {count:,} messages, CPU", cost, "ms", short, MAX_KEY_MILLISECONDS)
            for count, cost in zip(counts, longer, strict=True)
        ),
    ]


def _tui(*arguments: str) -> tuple[str, ...]:
    """Arguments of the terminal UI with all work in the measured process."""
    text = subprocess.run(
        [sys.executable, "-m", "hermes_cli", "tui", "--help"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    no_daemon = ("--no-daemon",) if "--no-daemon" in text else ()
    return ("tui", *no_daemon, "--model", UNUSED_MODEL, *arguments)


def _bare() -> float:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], os.environ)
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime


def _start(arguments: tuple[str, ...], prompt: str) -> float:
    """CPU seconds of a process until its prompt appears."""
    with Window(*arguments) as window:
        window.wait_for(prompt)
        return window.end()


def _key(context: BenchmarkContext, messages: int) -> float:
    """CPU milliseconds per key, minus the cost of the same time without keys."""
    with SessionDB() as db:
        session_id = db.create_session(f"{messages}-messages", "tui", cwd=os.getcwd())  # noqa: PTH109
        pair = ({"role": "user", "content": "And?"}, {"role": "assistant", "content": ANSWER})
        db.append_messages_batch(session_id, [dict(pair[n % 2]) for n in range(messages)])
    keys, settling = (QUICK_KEYS, 1) if context.is_quick else (KEYS, SETTLING_KEYS)
    with Window(*_tui("-r", session_id)) as window:
        window.wait_for("F1 keys")
        window.wait_for_quiet()
        _cpu_seconds(window, settling, "")  # what follows the first screen is no idle cost
        idle = _cpu_seconds(window, keys, "")
        typed = _cpu_seconds(window, keys, TYPING)
    return max(0.0, typed - idle) * 1000 / keys


def _cpu_seconds(window: Window, keys: int, typing: str) -> float:
    """CPU seconds while keys are pressed, or during the same time without keys."""
    before = window.cpu_seconds()
    for number in range(keys):
        if typing:
            window.press(typing[number % len(typing)])
        time.sleep(KEY_SECONDS)
    window.wait_for_quiet()  # the last keys are still being drawn
    return window.cpu_seconds() - before
