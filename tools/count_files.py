"""Count the files of `src` that one chat message enters, and the modules that commands load.

    .venv/bin/python tools/count_files.py [--list]

The message goes through a gateway in this process, from the local socket to the confirmed reply,
with a scripted model; messages before it have opened everything. `--list` names the files in the
order in which they are entered.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
SOURCE = f"{ROOT / 'src'}/"
sys.path.insert(0, str(ROOT / "tests"))

from hermes_state.engine.sqlite import driver  # noqa: E402 - after the path

driver.install()

from hermes_state import SessionDB  # noqa: E402 - as above
from support.gateways import running_gateway  # noqa: E402 - as above
from support.model_servers import configured_models  # noqa: E402 - as above

if TYPE_CHECKING:
    from types import FrameType

WARM_UP_MESSAGES = 3
LOADED = """
import atexit, sys
sys.argv[0] = "hermes"
@atexit.register
def report():
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    sys.stderr.write(f"\\n{sum(file.startswith(SOURCE) for file in files)}")
from hermes_cli.main import entry
entry()
"""


class FileCounter:
    """Notes the files that calls enter, in all threads."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.is_counting = False

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Called by the interpreter for each call."""
        # The scripted model answers in a thread of its server.
        is_server = "process_request" in threading.current_thread().name
        if self.is_counting and event == "call" and not is_server:
            name = frame.f_code.co_filename
            if name.startswith(SOURCE):
                self.files.setdefault(name.removeprefix(SOURCE))


async def send_messages(folder: Path, counter: FileCounter) -> None:
    """Send messages on the local socket, each after the reply to the one before."""
    reader, stream = await asyncio.open_unix_connection(str(folder / "s.sock"))
    for number in range(WARM_UP_MESSAGES + 1):
        counter.is_counting = number == WARM_UP_MESSAGES
        message = {"chat": "c1", "id": str(number), "text": f"hello {number}"}
        stream.write(json.dumps(message).encode() + b"\n")
        while "key" not in (line := json.loads(await reader.readline())):
            pass
        stream.write(json.dumps({"arrived": line["key"]}).encode() + b"\n")
    stream.close()


async def count_message(folder: Path) -> list[str]:
    """The files that a message enters, in order."""
    counter = FileCounter()
    threading.setprofile(counter.note)
    sys.setprofile(counter.note)
    with SessionDB() as db:
        async with running_gateway(db, folder):
            await send_messages(folder, counter)
            sys.setprofile(None)
            counter.is_counting = False
    return list(counter.files)


def count_modules(*arguments: str) -> int:
    """The modules of `src` that a command loads."""
    program = f"SOURCE = {SOURCE!r}\n{LOADED}"
    command = [sys.executable, "-P", "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stderr.rpartition("\n")[2])


def main(options: list[str]) -> None:
    """Print the counts."""
    steps = "[" + "{say: Hello.}, " * (WARM_UP_MESSAGES + 4) + "]"
    with tempfile.TemporaryDirectory() as name, configured_models() as answering:
        folder = Path(name)
        os.environ |= {"HERMES_HOME": name, "HOME": name, "HERMES_AGENT_AUTOMATIC_TITLES": "false"}
        answering(steps)
        files = asyncio.run(count_message(folder))
        if "--list" in options:
            sys.stdout.write("\n".join(files) + "\n")
        sys.stdout.write(f"a chat message enters {len(files)} files\n")
        for arguments in (["chat", "-q", "hello"], ["sessions", "list"], ["import", "--status"]):
            count = count_modules(*arguments)
            sys.stdout.write(f"hermes {' '.join(arguments)} loads {count} modules\n")


if __name__ == "__main__":
    main(sys.argv[1:])
