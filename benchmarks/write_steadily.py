"""A process that writes to a history until it is stopped."""

from __future__ import annotations

import sys
import time

from hermes_state import SessionDB

PAUSE_SECONDS = 0.02


def main() -> None:
    """Append messages until the process is stopped."""
    with SessionDB(sys.argv[1]) as db:
        session_id = db.create_session(f"steady-{time.time_ns()}", "cli")
        while True:
            db.append_message(session_id, "user", "one more line of a long conversation")
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
