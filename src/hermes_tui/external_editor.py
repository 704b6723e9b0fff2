"""A text in another editor, which has the terminal for itself meanwhile."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App


def edited(app: App[Any], text: str) -> str:
    """What *text* has become; UsageError or OSError say why it has not."""
    words = _editor()
    with tempfile.NamedTemporaryFile(
        "w+", suffix=".md", encoding="utf-8", errors="replace"
    ) as file:
        file.write(text)
        file.flush()
        # Nothing may leave this block by an error: the screen would not come back.
        with app.suspend():
            problem = _run([*words, file.name])
        if problem:
            raise UsageError(problem)
        return Path(file.name).read_text(encoding="utf-8", errors="replace").rstrip()


def _editor() -> list[str]:
    name = next((one for one in ("VISUAL", "EDITOR") if os.environ.get(one, "").strip()), "")
    line = os.environ[name] if name else "vi"
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"${name} cannot be parsed: {error}. Its value: {line}") from error
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"Editor not found: `{words[0] if words else line}`. "
            f"Set ${name or 'EDITOR'} to one that is installed."
        )
    return words


def _run(words: list[str]) -> str:
    """Run an editor until it ends; what went wrong, or nothing."""
    name = Path(words[0]).name
    try:
        with _unstoppable():
            code = subprocess.run(words, check=False).returncode
    except (OSError, ValueError) as error:
        return f"{name} failed to start: {error}"
    return f"{name} exited with code {code}; the text is unchanged." if code else ""


@contextlib.contextmanager
def _unstoppable() -> Iterator[None]:
    """Ctrl+C is for the editor and not for us.

    It is caught, not ignored: what is ignored here would be ignored by the editor, too.
    """
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
