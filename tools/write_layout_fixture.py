"""Writes a small history in the layout of this release, for the tests of migrations.

    .venv/bin/python tools/write_layout_fixture.py tests/state/layouts/3.db.gz

Run it once for every release that has a new layout, before the next migration is written.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

from hermes_state import SessionDB

CALL = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}


def write(path: Path) -> None:
    """A history that uses every kind of own row."""
    with SessionDB(path) as db:
        db.create_session("first", "cli", model="a/model", cwd="/project")
        db.set_session_title("first", "A first conversation")
        db.tags.replace("first", ["Work", "two words"])
        db.append_message("first", "user", "run it")
        db.append_message("first", "assistant", "", tool_calls=[CALL])
        db.append_message("first", "tool", "done", tool_call_id="c1", tool_name="terminal")
        last = db.append_message("first", "user", "again, and undone")
        db.rewind_to_message("first", last)
        db.edits.branch("first", "branch", title="Another way")
        db.append_message("branch", "user", "别的 way 🙂")
        db.end_session("first", "cli_close")
        db.create_session("deleted", "cli")
        db.append_message("deleted", "user", "to the trash")
        db.end_session("deleted", "cli_close")
        db.delete_session("deleted")
        _chat(db)
        db.end_session("branch", "cli_close")


def _chat(db: SessionDB) -> None:
    db.create_session("chat", "telegram", user_id="7")
    place = {"platform": "telegram", "account": "bot", "chat_id": "7", "session_key": "k"}
    for number in (1, 2):
        db.inbox.receive(**place, message_id=str(number), payload={"text": f"message {number}"})
    claimed = db.inbox.claim()
    lease = db.leases.acquire("chat", "gateway")
    db.append_message("chat", "user", "message 1")
    db.append_message("chat", "assistant", "answer 1")
    db.inbox.settle(claimed.inbox_id, "chat")
    db.leases.release(lease)
    db.outbox.add("key-1", platform="telegram", target="7", payload={"text": "answer 1"})
    db.pairings.approve("telegram", str(db.pairings.request("telegram", "7", "Ann")))
    db.end_session("chat", "idle")


def main(target: Path) -> None:
    """Write the history and compress it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        write(path)
        with SessionDB(path, is_recovering=False) as db:
            db.engine.write(lambda tx: tx.execute("DELETE FROM hermes_process"))  # names a machine
            db.vacuum()
        target.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
