"""`hermes chat` on a real terminal, and what is stored of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pexpect

from hermes_state import SessionDB
from support.command_line import command
from support.scripted import model

if TYPE_CHECKING:
    from hermes_agent.providers.scripted_server import ScriptServer

EDITOR = r"\x1b\[\?2004h"  # what the line editor begins with


def talk(server: ScriptServer, *more: str) -> pexpect.spawn[str]:
    """Somebody sits down to talk."""
    words = command("chat", "--model", model(server), *more)
    environment = {**os.environ, "TERM": "xterm-256color"}
    child = pexpect.spawn(
        words[0], words[1:], encoding="utf-8", timeout=90, dimensions=(40, 100), env=environment
    )
    child.expect("/help lists commands")
    return child


def left(child: pexpect.spawn[str]) -> None:
    """Leave as soon as the line editor is back."""
    child.expect(EDITOR)
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    child.close()


def said() -> list[tuple[str, str]]:
    """Who said what in the latest conversation."""
    with SessionDB(is_recovering=False) as db:
        row = db.list_sessions_rich(limit=1, order_by_last_active=True)[0]
        return [(one["role"], one["content"]) for one in db.get_messages(row["id"])]
