"""Input lines other than prompts: `!command` runs in a shell, `#text` is remembered."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_conversation.attachments import AttachedText
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

MAX_SHELL_SECONDS: Final = 120
MAX_OUTPUT_CHARACTERS: Final = 20_000
TIMEOUT_EXIT_CODE: Final = 124


class ShellOutput(NamedTuple):
    """The output of a command and its exit code."""

    command: str
    text: str
    code: int

    def attachment(self) -> AttachedText:
        """The output as the model gets it with the next message."""
        command = " ".join(self.command.split())
        label = f"output of the user's command `{command}`, exit code {self.code}"
        return AttachedText(label, self.text or "(no output)")


def shell_command(line: str) -> str:
    """The command of a line that starts with `!`; empty for other lines."""
    return line[1:].strip() if line.startswith("!") else ""


def memory_note(line: str) -> str:
    """The text of a single line that starts with `#`; empty for others, such as headings."""
    is_note = line.startswith("#") and not line.startswith("##") and "\n" not in line.strip()
    return line[1:].strip() if is_note else ""


def run_shell_line(command: str, folder: Path) -> ShellOutput:
    """Run a command of the user with a shell, as they would in another window."""
    shell = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"
    try:
        process = subprocess.Popen(
            [shell, "-c", command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"The command cannot be run: {error}") from error
    with process:
        try:
            data, _ = process.communicate(timeout=MAX_SHELL_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
            os.killpg(process.pid, signal.SIGKILL)
            data, _ = process.communicate()
            if isinstance(error, KeyboardInterrupt):
                return ShellOutput(command, _shown(data, "[stopped]"), 130)
            note = f"[stopped after {MAX_SHELL_SECONDS} s]"
            return ShellOutput(command, _shown(data, note), TIMEOUT_EXIT_CODE)
    return ShellOutput(command, _shown(data), process.returncode)


def _shown(data: bytes, note: str = "") -> str:
    """The output, without the middle of a long one."""
    text = data.decode(errors="replace").rstrip("\n")
    if len(text) > MAX_OUTPUT_CHARACTERS:
        half = MAX_OUTPUT_CHARACTERS // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half:,} characters cut …]\n{text[-half:]}"
    return "\n".join(filter(None, (text, note)))
