"""Runs `hermes chat` on a real terminal, and reads the stored messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pexpect

from hermes_state import SessionDB
from support.model_servers import model_argument
from support.terminal import spawn
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from support.scripted_server import ScriptServer

EDITOR = r"\x1b\[\?2004h"  # printed when the line editor starts


def start_chat(server: ScriptServer, *extra_arguments: str) -> pexpect.spawn[str]:
    """Start an interactive chat."""
    child = spawn(
        *("chat", "--model", model_argument(server), *extra_arguments),
        environment={"TERM": "xterm-256color"},
        timeout=PATIENCE_SECONDS,
        dimensions=(40, 100),
    )
    child.expect("/help")
    return child


def quit_chat(child: pexpect.spawn[str]) -> None:
    """Exit as soon as the line editor is active."""
    child.expect(EDITOR)
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    child.close()


def stored_messages() -> list[tuple[str, str]]:
    """Role and content of the messages in the latest conversation."""
    with SessionDB(is_recovering=False) as db:
        row = db.list_sessions_rich(limit=1, order_by_last_active=True)[0]
        return [(message["role"], message["content"]) for message in db.get_messages(row["id"])]
