"""The clipboard: programs of the desktop, and the terminal's own (OSC 52)."""

from __future__ import annotations

import base64
import os
import subprocess
from typing import Final, NamedTuple

from hermes_core.system_programs import system_program

MAX_TERMINAL_BYTES: Final = 74_994  # several terminals ignore a longer sequence
TIMEOUT_SECONDS: Final = 3.0


class ClipboardProgram(NamedTuple):
    """Commands of one desktop; `variable` has to be set for them."""

    variable: str
    copy: tuple[str, ...]
    paste: tuple[str, ...]
    paste_image: tuple[str, ...]


PROGRAMS: Final = (
    ClipboardProgram(
        "WAYLAND_DISPLAY",
        ("wl-copy",),
        ("wl-paste", "--no-newline"),
        ("wl-paste", "--type", "image/png"),
    ),
    ClipboardProgram(
        "DISPLAY",
        ("xclip", "-selection", "clipboard"),
        ("xclip", "-selection", "clipboard", "-out"),
        ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ),
    ClipboardProgram("", ("pbcopy",), ("pbpaste",), ("pngpaste", "-")),
)


def terminal_sequence(text: str) -> str:
    """The sequence that gives a text to the terminal's clipboard; empty if it is too long."""
    data = base64.b64encode(text.encode()).decode()
    return f"\x1b]52;c;{data}\a" if len(data) <= MAX_TERMINAL_BYTES else ""


def copy_by_program(text: str) -> bool:
    """Give a text to the desktop; whether a program did."""
    return any(
        _run(program.copy, text.encode()) is not None for program in PROGRAMS if _is_usable(program)
    )


def paste_text() -> str:
    """The text of the clipboard; empty if there is none or no program."""
    found = (_run(program.paste) for program in PROGRAMS if _is_usable(program))
    return next(filter(None, found), b"").decode(errors="replace")


def paste_image() -> bytes:
    """The picture of the clipboard as PNG; empty if there is none or no program."""
    found = (_run(program.paste_image) for program in PROGRAMS if _is_usable(program))
    return next(filter(None, found), b"")


def _is_usable(program: ClipboardProgram) -> bool:
    return not program.variable or bool(os.environ.get(program.variable))


def _run(command: tuple[str, ...], data: bytes = b"") -> bytes | None:
    """What a program writes; None if it fails or is not installed."""
    path = system_program(command[0])
    if path is None:
        return None
    # A program that copies stays in the background with its output open.
    output = subprocess.DEVNULL if data else subprocess.PIPE
    try:
        done = subprocess.run(
            [path, *command[1:]],
            input=data,
            stdout=output,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or b"") if done.returncode == 0 else None
