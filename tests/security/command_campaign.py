"""Runs attack commands in a sandbox alone, without the analysis that asks before.

python command_campaign.py FOLDER COMMANDS_FILE BACKEND MODE STEP OFFSET

Prints the violations as JSON. Only the sandbox package is imported, so that another user can
run it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from hermes_agent.permissions.limits import CommandPlace, build_policy
from hermes_agent.sandbox import runner

SECRET = "canary-4f1c9e"
COMMAND_SECONDS = 5
# Programs that leave a process behind, or wait for another, end with their group.
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}


class Listener:
    """Counts the connections and packets that reach a port of this machine."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._packets.bind(("127.0.0.1", self.port))
        self.count = 0
        for target in (self._accept, self._receive):
            threading.Thread(target=target, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._server.accept()
            self.count += 1
            connection.close()

    def _receive(self) -> None:
        while self._packets.recv(100):
            self.count += 1


def read_commands(path: Path) -> dict[str, list[str]]:
    """The commands by section."""
    sections: dict[str, list[str]] = {}
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            sections.setdefault(section, []).append(line)
    return sections


def expand(sections: dict[str, list[str]], home: Path, port: int) -> list[tuple[str, str]]:
    """Every command with its section; those that write, for two files each."""
    targets = [
        home / ".bashrc",
        home / "notes" / "diary.txt",
        home / ".hermes" / "config.yaml",
        home / "new.txt",
    ]
    secrets = [home / ".ssh" / "id_ed25519", home / ".hermes" / ".env", home / ".netrc"]
    commands = []
    for section, templates in sections.items():
        for number, template in enumerate(templates):
            chosen = (targets[number % 4], targets[(number + 2) % 4])
            for target in chosen if section == "write" else chosen[:1]:
                text = template.format(target=target, secret=secrets[number % 3], port=port)
                commands.append((section, text.replace("@@", "{}")))
    return commands


def state(
    folder: Path, *, without: tuple[Path, ...] = (), has_modes: bool = True
) -> dict[str, Any]:
    """What tells whether any file below a folder changed; *has_modes* adds mode and times.

    Landlock has no rule for those of files that one owns (docs/explanation/security.md).
    """
    found = {}
    for base, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(base, name) not in without]
        for name in (*folders, *names):
            facts = Path(base, name).lstat()
            is_folder = name in folders
            found[f"{base}/{name}"] = (
                facts.st_uid, facts.st_ino, facts.st_mode if has_modes else 0,
                None if is_folder else (facts.st_size, facts.st_mtime_ns if has_modes else 0),
            )  # fmt: skip
    return found


def make_home(home: Path) -> Path:
    """A home with secrets, and the working folder in it."""
    work = home / "project"
    for folder in (work, home / ".ssh", home / ".hermes" / "sandbox", home / "notes"):
        folder.mkdir(parents=True)
    for name in (".ssh/id_ed25519", ".hermes/.env", ".netrc"):
        (home / name).write_text(f"TOKEN={SECRET}\n")
    (home / ".bashrc").write_text("# start-up file\n")
    (home / "notes" / "diary.txt").write_text("dear diary\n")
    (home / ".hermes" / "config.yaml").write_text("agent: {}\n")
    (work / "a.txt").write_text("one two\nthree\n")
    (work / "write.py").write_text("import sys\nopen(sys.argv[1], 'w').write('evil')\n")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], cwd=work, check=True, env={**os.environ, "HOME": "/"})
    return work


def run_all(
    home: Path, commands_file: Path, backend: str, mode: str, step: int, offset: int
) -> list[str]:
    """Run every *step*-th command; what each did that it must not do."""
    work, listener = make_home(home), Listener()
    temporary = home / ".hermes" / "sandbox" / "1"
    temporary.mkdir()
    policy = build_policy(mode, (), CommandPlace(work, home / ".hermes", home, temporary))
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    os.environ["OWN_SECRET"] = SECRET
    start = getattr(runner, f"start_in_{backend}")
    ignored = (temporary,) if mode == "plan" else (temporary, work)

    def look() -> dict[str, Any]:
        return state(home, without=ignored, has_modes=backend != "landlock")

    problems = []
    commands = expand(read_commands(commands_file), home, listener.port)[offset::step]
    for section, command in commands:
        before, connections = look(), listener.count
        launch = runner.ProgramLaunch(
            ("bash", "-c", command), work, policy, environment,
            options={**QUIET, "start_new_session": True},
        )  # fmt: skip
        output, code = _finish(start(launch))
        if look() != before:
            problems.append(f"files changed: {command}")
        if SECRET in output:
            problems.append(f"a secret was read: {command}")
        if listener.count != connections:
            problems.append(f"connected: {command}")
        if section == "harmless" and code not in (0, 127) and "tar" not in command:
            problems.append(f"harmless command failed ({code}): {command}: {output[-200:]}")
    return [f"{len(commands)} commands", *problems]


def _finish(process: subprocess.Popen[bytes]) -> tuple[str, int]:
    try:
        output = process.communicate(timeout=COMMAND_SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return output.decode(errors="replace"), process.returncode


if __name__ == "__main__":
    folder, file, backend, mode, step, offset = sys.argv[1:]
    home = Path(folder) / "home"
    report = run_all(home, Path(file), backend, mode, int(step), int(offset))
    sys.stdout.write(json.dumps(report))
