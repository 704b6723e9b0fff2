"""The terminal: CPU until one can type, and for each key in a long conversation."""

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
    from surroundings import Surroundings

STARTS: Final = 10
KEYS: Final = 60
KEY_SECONDS: Final = 0.1  # between two keys, as a quick typist
MESSAGES: Final = 1_000
TYPING: Final = "abcdefghij"
NOWHERE: Final = "http://127.0.0.1:9/v1#m"  # nobody is asked anything
CHAT: Final = ("chat", "--model", NOWHERE)
ANSWER: Final = "A paragraph with *some* `marks` in it.\n\n* a list\n* of two\n"
MOST_START_SECONDS: Final = 1.0
MOST_KEY_MILLISECONDS: Final = 30.0


def measure(around: Surroundings) -> list[Figure]:
    """Every figure of this benchmark."""
    with around.home():
        rounds = around.rounds(STARTS)
        bare = median([_bare() for _ in range(rounds)])
        chat = median([_start(CHAT, "\N{GREATER-THAN SIGN}") for _ in range(rounds)])
        screen = median([_start(_tui(), "F1 keys") for _ in range(rounds)])
        short, long = (_key(around, count) for count in (2, MESSAGES))
    return [
        Figure("hermes chat to its prompt, CPU", chat, "s", bare, MOST_START_SECONDS),
        Figure("hermes tui to its prompt, CPU", screen, "s", bare, MOST_START_SECONDS),
        Figure("key in a new conversation, CPU", short, "ms"),
        Figure(f"key at {MESSAGES:,} messages, CPU", long, "ms", short, MOST_KEY_MILLISECONDS),
    ]


def _tui(*more: str) -> tuple[str, ...]:
    """The full screen, with all its work in the one process that is measured."""
    text = subprocess.run(
        [sys.executable, "-m", "hermes_cli", "tui", "--help"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    alone = ("--no-daemon",) if "--no-daemon" in text else ()
    return ("tui", *alone, "--model", NOWHERE, *more)


def _bare() -> float:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], os.environ)
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime


def _start(arguments: tuple[str, ...], prompt: str) -> float:
    """CPU seconds of a process until it shows its prompt."""
    with Window(*arguments) as window:
        window.wait_for(prompt)
        return window.end()


def _key(around: Surroundings, messages: int) -> float:
    """Milliseconds of CPU for a key, less what the same time costs without any."""
    with SessionDB() as db:
        session_id = db.create_session(f"{messages}-messages", "tui", cwd=os.getcwd())  # noqa: PTH109
        pair = ({"role": "user", "content": "And?"}, {"role": "assistant", "content": ANSWER})
        db.append_messages_batch(session_id, [dict(pair[n % 2]) for n in range(messages)])
    keys = max(10, around.rounds(KEYS))
    with Window(*_tui("-r", session_id)) as window:
        window.wait_for("F1 keys")
        window.wait_for_quiet()
        idle = _spent(window, keys, "")
        typed = _spent(window, keys, TYPING)
    return max(0.0, typed - idle) * 1000 / keys


def _spent(window: Window, keys: int, typing: str) -> float:
    """CPU seconds while keys are pressed, or while the same time passes."""
    before = window.cpu_seconds()
    for number in range(keys):
        if typing:
            window.press(typing[number % len(typing)])
        time.sleep(KEY_SECONDS)
    window.wait_for_quiet()  # the last ones are still being drawn
    return window.cpu_seconds() - before
