"""Edits a text in an external editor while the application is suspended."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_core.errors import UsageError
from hermes_core.system_programs import program_on_path, system_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App


def edit_text(app: App[Any], text: str) -> str:
    """The edited text; UsageError or OSError if the editor fails."""
    command = _editor()
    with tempfile.NamedTemporaryFile(
        "w+", suffix=".md", encoding="utf-8", errors="replace"
    ) as file:
        file.write(text)
        file.flush()
        # An exception in this block would leave the screen suspended.
        with app.suspend():
            problem = _run([*command, file.name])
        if problem:
            raise UsageError(problem)
        return Path(file.name).read_text(encoding="utf-8", errors="replace").rstrip()


def _editor() -> list[str]:
    name = next(
        (variable for variable in ("VISUAL", "EDITOR") if os.environ.get(variable, "").strip()), ""
    )
    line = os.environ[name] if name else system_program("vi") or "vi"
    try:
        command = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"${name} cannot be parsed: {error}. Its value: {line}") from error
    if not command or program_on_path(command[0]) is None:
        raise UsageError(
            f"Editor not found: `{command[0] if command else line}`. "
            f"Set ${name or 'EDITOR'} to one that is installed."
        )
    return command


def _run(command: list[str]) -> str:
    """Run an editor; returns the error message, or an empty text."""
    name = Path(command[0]).name
    try:
        with _catch_interrupts():
            code = subprocess.run(command, check=False).returncode
    except (OSError, ValueError) as error:
        return f"{name} failed to start: {error}"
    return f"{name} exited with code {code}; the text is unchanged." if code else ""


@contextlib.contextmanager
def _catch_interrupts() -> Iterator[None]:
    """Leave Ctrl+C to the editor.

    SIGINT is caught, not ignored, because an ignored signal is inherited by the editor.
    """
    previous = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if previous is None else previous)
