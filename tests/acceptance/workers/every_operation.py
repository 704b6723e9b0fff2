"""Use every kind of operation of the store; after each, report whether our lock is still held.

every_operation.py REPORT DATABASE
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from reporting import Report

from hermes_state import SessionDB

report = Report()
database = Path(sys.argv[2])


def shared_memory_locks() -> list[str]:
    """This process's locks on the -shm file, which mark the database as in use."""
    inode = Path(f"{database}-shm").stat().st_ino
    inode_text = f":{inode} "
    lines = Path("/proc/locks").read_text().splitlines()
    return [line for line in lines if inode_text in line and f" {os.getpid()} " in line]


def run_operations(db: SessionDB) -> None:
    def step(name: str, call, *arguments, **options):
        result = call(*arguments, **options)
        report.write("step", name=name, locks=shared_memory_locks())
        return result

    step("create_session", db.create_session, "one", "cli", system_prompt="be kind")
    first = step("append_message", db.append_message, "one", "user", "hello")
    step("append_messages_batch", db.append_messages_batch, "one",
         [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "and?"}])  # fmt: skip
    draft = step("draft", db.messages.draft, "one")
    step("draft.write", draft.write, "streaming")
    step("draft.flush", draft.flush)
    step("draft.finish", draft.finish)
    step("get_messages", db.get_messages, "one")
    step("iter_messages", lambda: list(db.messages.iter_messages("one")))
    step("get_messages_as_conversation", db.get_messages_as_conversation, "one")
    step("get_messages_around", db.get_messages_around, "one", first)
    step("list_sessions_rich", db.list_sessions_rich)
    step("search_messages", db.search_messages, "hello")
    step("get_session", db.get_session, "one")
    step("set_session_title", db.set_session_title, "one", "A title")
    step("resolve", db.lookup.resolve, "one")
    step("undo", db.edits.undo, "one")
    step("redo", db.edits.redo, "one")
    step("branch_session", db.edits.branch, "one", "two")
    step("archive_and_compact", db.archive_and_compact, "two",
         [{"role": "user", "content": "summary"}])  # fmt: skip
    lease = step("acquire_turn", db.leases.acquire, "one")
    step("renew_turn", db.leases.renew, lease)
    step("release_turn", db.leases.release, lease)
    message_key = {"platform": "x", "account": "a", "chat_id": "c", "message_id": "m"}
    received = step("receive", db.inbox.receive, **message_key, session_key="k", payload={})
    step("claim_incoming", db.inbox.claim)
    step("settle_incoming", db.inbox.settle, received.inbox_id)
    step("owe_reply", db.outbox.add, "key", platform="x", target={}, payload={})
    step("claim_reply", db.outbox.claim)
    step("claim_boundaries", db.boundaries.claim)
    step("set_meta", db.set_meta, "key", "value")
    step("update_token_counts", db.update_token_counts, "one", input_tokens=3, model="m")
    step("stats", db.statistics.stats)
    step("export_session", db.export_session, "one")
    step("end_session", db.end_session, "one", "done")
    step("reopen_session", db.reopen_session, "one")
    step("delete_session", db.delete_session, "two")
    step("restore_session", db.trash.restore, "two")
    step("delete_session again", db.delete_session, "two")
    step("purge_session", db.trash.purge, "two")
    step("repair_index", db.statistics.repair_index)
    step("clean_up", db.statistics.clean_up)
    step("vacuum", db.vacuum)
    step("a second store", lambda: SessionDB(database).close())
    step("a reading store", lambda: SessionDB(database, read_only=True).close())


db = SessionDB(database)
run_operations(db)
# Control: a handle opened and closed outside of SQLite drops the lock.
libc = ctypes.CDLL(None)
libc.close(libc.open(os.fsencode(f"{database}-shm"), os.O_RDONLY))
report.write("control", locks=shared_memory_locks())
