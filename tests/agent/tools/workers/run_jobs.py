"""Runs jobs until it is killed: python run_jobs.py HOW FOLDER."""

import signal
import sys
import time
from pathlib import Path

from hermes_agent.tools.jobs import Jobs

COMMANDS = {
    "plain": "echo $$ > {mark}; sleep 100",
    "deep": "(sleep 100 & echo $! > {mark}; wait) | cat",
    "deaf": "trap '' TERM HUP INT; echo $$ > {mark}; while :; do sleep 0.1; done",
}


def main(how: str, folder: Path) -> None:
    jobs = Jobs()

    def shut_down(*_details: object) -> None:
        jobs.close(0.5)
        jobs.close(0.5)
        sys.exit(0)

    signal.signal(signal.SIGTERM, shut_down)
    for name, command in COMMANDS.items():
        jobs.follow(jobs.start(command.format(mark=folder / name), folder))
    (folder / "ready").write_text(str(jobs.watchdog_pid))
    number = 0
    while how == "storm":
        number += 1
        jobs.follow(jobs.start(f"echo $$ > {folder}/storm{number}; sleep 100", folder))
    time.sleep(100)


main(sys.argv[1], Path(sys.argv[2]))
