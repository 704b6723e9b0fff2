"""Every command on a full and on a read-only disk: reading works, nothing ends in a traceback."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hermes_state import SessionDB
from support.command_line import command
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

READING = {
    "list": ("sessions", "list"),
    "show": ("sessions", "show", "s0"),
    "search": ("sessions", "search", "message"),
    "stats": ("sessions", "stats"),
    "export elsewhere": ("sessions", "export", "{other}/export.jsonl"),
    "backup elsewhere": ("backup", "{other}/backup.zip"),
    "settings": ("config", "list"),
    "people": ("people",),
    "pairing": ("pairing", "list"),
    "API keys": ("api-keys", "list"),
    "overview": (),
}
WRITING = {
    "rename": ("sessions", "rename", "s0", "other"),
    "delete": ("sessions", "delete", "s1", "--yes"),
    "import": ("sessions", "import", "{other}/import.jsonl"),
    "backup here": ("backup", "{home}/"),
    "people set": ("people", "set", "telegram:42", "--role", "owner"),
    "api-keys add": ("api-keys", "add", "ci"),
    "config set": ("config", "set", "log.level", "debug"),
    "models use": ("models", "use", "anthropic:x"),
    "dashboard": ("dashboard", "--no-open", "--port", "0"),
    "dashboard password": ("dashboard", "password"),
    "chat": ("chat", "--model", "script:{other}/script.yaml", "-q", "hello"),
    "doctor": ("doctor",),
}  # fmt: skip
# Fills or locks the disk that holds the home, then runs all commands and prints what they did.
RUN_ALL = """
import json, os, pathlib, subprocess, sys
kind, disk, commands = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
def sh(line):
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    if done.returncode:
        print(json.dumps({"problem": done.stderr}))
        sys.exit()
prepare = sys.argv[4]
if kind == "full":
    sh(f"mount -t tmpfs -o size=3m tmpfs {disk}")
    sh(prepare)
    with open(f"{disk}/filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(1024)):
                pass
        except OSError:
            pass
else:
    sh(prepare)
    sh(f"mount --bind {disk} {disk} && mount -o remount,ro,bind {disk}")
results = {}
for name, arguments in commands.items():
    typed = "" if name == "overview" else "long enough\\n"  # piped text would be a question
    options = {"capture_output": True, "text": True, "input": typed, "timeout": 100}
    done = subprocess.run(arguments, **options)
    results[name] = [done.returncode, done.stdout, done.stderr]
print(json.dumps(results))
"""


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture(params=["full", "read-only"])
def outcomes(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Outcome]:
    """The outcome of every command on a disk that cannot be written."""
    disk, other = tmp_path / "disk", tmp_path / "other"
    for folder in (disk, other, disk / "home"):
        folder.mkdir()
    with SessionDB(other / "state.db") as db:
        for number in range(3):
            db.create_session(f"s{number}", "cli")
            db.append_message(f"s{number}", "user", f"message {number}")
        (other / "import.jsonl").write_bytes(
            b"".join(db.portable.iter_export_file(db.portable.sessions_to_export()))
        )
    (other / "script.yaml").write_text("steps:\n  - say: Hello.\n")
    home = disk / "home"
    monkeypatch.setenv("HERMES_HOME", str(home))
    names = {"home": str(home), "other": str(other)}
    commands = {
        name: command(*(argument.format(**names) for argument in arguments))
        for name, arguments in (READING | WRITING).items()
    }
    prepare = f"mkdir -p {home} && chmod 700 {home} && cp {other}/state.db {home}/"
    script = [
        sys.executable,
        "-c",
        RUN_ALL,
        request.param,
        str(disk),
        json.dumps(commands),
        prepare,
    ]
    done = subprocess.run(
        ["unshare", "--mount", *script],
        capture_output=True, text=True, check=False, timeout=2 * PATIENCE_SECONDS,
    )  # fmt: skip
    if done.returncode or not done.stdout:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    results: dict[str, Any] = json.loads(done.stdout)
    if "problem" in results:
        pytest.skip(f"nothing can be mounted here: {results['problem']}")
    return {name: Outcome(*result) for name, result in results.items()}


def test_reading_works_and_everything_else_ends_with_one_sentence(
    outcomes: dict[str, Outcome],
) -> None:
    for name, outcome in outcomes.items():
        assert "Traceback" not in outcome.err + outcome.out, (name, outcome)
        assert "disk I/O error" not in outcome.err, (name, outcome)
        assert "unable to open" not in outcome.err, (name, outcome)
    for name in READING:
        assert outcomes[name].code == 0, (name, outcomes[name])
    for name in ("list", "search", "overview"):
        assert "message 1" in outcomes[name].out, (name, outcomes[name])
    for name in WRITING:
        lines = outcomes[name].err.strip().splitlines()
        assert outcomes[name].code in {1, 2}, (name, outcomes[name])
        if name != "doctor":
            assert len(lines) == 1, (name, outcomes[name])
            assert lines[0].startswith("hermes: "), (name, outcomes[name])
            assert any(word in lines[0] for word in ("full", "ead-only")), (name, lines)
    assert "✗ disk" in outcomes["doctor"].out, shlex.join(outcomes["doctor"].out.splitlines())
